#include "records/fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/error.h"
#include "records/fit_machines.h"
#include "records/fit_recorded.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

using predict::Prediction;
using predict::Training;
using predict::Work;
using predict::WorkerTimes;

constexpr int kRounds = 12;
constexpr double kMostWorkers = 4096;
constexpr double kMostParameters = 2e9;
/// A waiting thread of a busy machine starts to run after this time at most; what is beyond stays unexplained.
constexpr double kLongestWake = 1.5e-3;
constexpr double kLongestWakeWhenIdle = 0.3e-3;
/// A worker's work on messages, relative to what it costs without knowing better.
constexpr double kLeastMessageCost = 0.25;
constexpr double kLeastSpread = 0.03;

double step_of(const RunRecord& run, const std::vector<Recorded>& all) {
  if (in_step(run)) return all.front().times.all();
  double sum = 0;
  for (const Recorded& recorded : all) sum += recorded.times.all();
  return sum / static_cast<double>(all.size());
}

/// Returns the share of the forward pass that does not grow with the batch, from evaluations: their batches are large.
double fixed_share(const RunRecord& run, const Recorded& chief) {
  const double batch = run.number_setting("batch");
  const double large = run.number_setting("eval_batch");
  if (!(batch > 0) || !(large >= 4 * batch)) return 0;
  const CsvTable& evals = run.chief().evals;
  const std::span<const double> seconds = evals.column("eval_seconds");
  const std::span<const double> examples = evals.column("examples");
  std::vector<double> per_example;
  for (size_t i = 0; i < std::min(seconds.size(), examples.size()); ++i)
    per_example.push_back(seconds[i] / examples[i]);
  // The first evaluations are slower: they allocate memory.
  const double each = smallest_above_zero(per_example);
  if (!known(each) || !(chief.times.forward > 0)) return 0;
  // An evaluation also makes its batches, so it is an upper bound of the time per example.
  return std::clamp(1 - each * batch / chief.times.forward, 0.0, 1.0);
}

void set_rules(const RunRecord& run, Training& training) {
  const double parameters = run.summary().number("parameters");
  training.tensors = predict::even_tensors(static_cast<size_t>(bounded(parameters, 1, kMostParameters)));
  training.sync = in_step(run);
  training.aggregate = static_cast<int>(bounded(run.number_setting("aggregate"), 0, kMostWorkers));
  const double stale = run.number_setting("max_staleness");
  training.max_staleness = known(stale) && stale >= 0 && stale < 1e6 ? static_cast<int>(stale) : -1;
  training.batch = std::max(1.0, bounded(run.number_setting("batch"), 1, 1e9) *
                                     std::max(1.0, bounded(run.number_setting("accumulate"), 1, 1e6)));
  const std::string wire = run.setting("wire");
  training.element_bytes = wire == "bf16" || wire == "f16" ? 2 : 4;
  const double bucket = run.number_setting("bucket_mb");
  if (bucket > 0) training.all_reduce_bucket = static_cast<size_t>(bounded(bucket, 0.001, 1e6) * (1 << 20));
  // A model with countless tiny buckets would take longer to simulate than to train.
  constexpr size_t kMostBuckets = 512;
  training.all_reduce_bucket = std::max(training.all_reduce_bucket, training.elements() * 4 / kMostBuckets + 1);
  if (run.setting("placement") == "round-robin") training.placement = schedule::Placement::round_robin;
}

/// The rounds of a fit: each scales what the model gets wrong.
class Fitter {
 public:
  Fitter(Fit& fit, std::vector<Recorded> recorded, bool busy)
      : fit_(fit), recorded_(std::move(recorded)), busy_(busy), options_(few_steps(fit.training)) {}

  void run() {
    if (calm()) return run_calm();
    for (int round = 0; round < kRounds; ++round) {
      fit_.prediction = predict::simulate(fit_.training, options_);
      adjust_work();
      if (fit_.training.strategy != predict::Strategy::local) adjust_exchange(round);
    }
    fit_.prediction = predict::simulate(fit_.training, options_);
    if (fit_.training.strategy != predict::Strategy::local) prefer_plain();
    fit_.unexplained = std::min(1.0, std::fabs(fit_.step - fit_.prediction.step) / fit_.step);
  }

 private:
  /// Returns whether quotas limit all workers, and a period is much longer than a step: then most steps are not paused,
  /// and their medians say how long things take. Into which phase the pauses fall is chance.
  [[nodiscard]] bool calm() const {
    for (size_t i = 0; i < recorded_.size(); ++i) {
      if (!calm(i)) return false;
    }
    return true;
  }
  [[nodiscard]] bool calm(size_t i) const {
    const WorkerTimes& usual = recorded_[i].usual;
    const double work = usual.compute() + usual.push + usual.rest;
    if (recorded_[i].pause > 0 || recorded_[i].times.data > 0 || !known(recorded_[i].cpu)) return false;
    return usual.compute() > 0 && known(usual.exchange()) && much_shorter(work, i);
  }
  /// Returns whether something takes much less than a quota gives a worker's node in a period: it is rarely paused.
  [[nodiscard]] bool much_shorter(double seconds, size_t i) const {
    constexpr double kMuchShorter = 0.4;
    const predict::Node& node = fit_.training.nodes[fit_.training.workers[i].node];
    return seconds > 0 && seconds < kMuchShorter * node.cores * node.quota_period;
  }

  /// The training if no quota paused anything.
  [[nodiscard]] Training without_quotas() const {
    Training training = fit_.training;
    for (predict::Node& node : training.nodes) {
      node.cores = std::ceil(node.cores);
      node.quota_period = 0;
    }
    return training;
  }

  void run_calm() {
    for (size_t i = 0; i < recorded_.size(); ++i) {
      Work& work = fit_.training.workers[i].work;
      work.optimizer = recorded_[i].usual.optimizer;
      work.rest = recorded_[i].usual.rest;
    }
    for (int round = 0; round < kRounds; ++round) {
      fit_.prediction = predict::simulate(without_quotas(), options_);
      for (size_t i = 0; i < recorded_.size(); ++i) {
        Work& work = fit_.training.workers[i].work;
        work.forward *= factor(recorded_[i].usual.forward, fit_.prediction.workers[i].forward);
        work.backward *= factor(recorded_[i].usual.backward, fit_.prediction.workers[i].backward);
        adjust_messages(i);
      }
      WorkerTimes wanted;
      for (const Recorded& recorded : recorded_) {
        wanted.transfer += recorded.usual.exchange() / static_cast<double>(recorded_.size());
      }
      if (fit_.training.strategy != predict::Strategy::local) adjust_wake(wanted.transfer);
    }
    fit_.prediction = predict::simulate(fit_.training, options_);
    fit_.unexplained = std::min(1.0, std::fabs(fit_.step - fit_.prediction.step) / fit_.step);
  }

  /// Returns the factor by which to change what takes `predicted` and should take `recorded`.
  static double factor(double recorded, double predicted) {
    constexpr double kMost = 4;
    if (!(predicted > 1e-12)) return 1;
    return std::clamp(recorded / predicted, 1 / kMost, kMost);
  }

  void adjust_work() {
    for (size_t i = 0; i < recorded_.size(); ++i) {
      const Recorded& recorded = recorded_[i];
      Work& work = fit_.training.workers[i].work;
      const WorkerTimes& wanted = recorded.times;
      const WorkerTimes& got = fit_.prediction.workers[i];
      const bool limited = fit_.training.nodes[fit_.training.workers[i].node].quota_period > 0;
      if (limited) {
        adjust_limited(i);
      } else {
        work.forward *= factor(wanted.forward, got.forward);
        work.backward *= factor(wanted.backward, got.backward);
      }
      if (limited && much_shorter(recorded.usual.optimizer, i)) {
        work.optimizer = recorded.usual.optimizer;
      } else {
        work.optimizer *= factor(wanted.optimizer, got.optimizer);
      }
      if (!limited) work.rest *= factor(wanted.rest - recorded.pause, got.rest - recorded.pause);
      if (wanted.data > 0) {
        const predict::Node& node = fit_.training.nodes[fit_.training.workers[i].node];
        const double slower = node.quota_period > 0 ? 1 : std::max(1.0, (node.others + 1) / node.cores);
        if (work.load == 0) work.load = (got.all() - got.data) / slower;
        work.load = std::max(0.0, work.load + (wanted.data - got.data) / slower);
      }
      adjust_messages(i);
    }
  }

  /// Where a quota pauses is chance. So the CPU time says how much a worker computes, and the times of its passes only
  /// how that divides; unless most steps are not paused at all.
  void adjust_limited(size_t i) {
    const Recorded& recorded = recorded_[i];
    const WorkerTimes& wanted = recorded.times;
    const WorkerTimes& got = fit_.prediction.workers[i];
    Work& work = fit_.training.workers[i].work;
    if (calm(i)) {
      work.forward = recorded.usual.forward;
      work.backward = recorded.usual.backward;
      return;
    }
    const double both = wanted.forward + wanted.backward;
    double by = factor(both, got.forward + got.backward);
    double most = predict::kUnlimited;
    if (work.threads == 1 && known(recorded.cpu)) {
      const predict::Worker& worker = fit_.training.workers[i];
      const double own = recorded.cpu - got.messages - work.optimizer - work.rest - (servers() ? 0 : worker.exchange);
      by = std::clamp(own / both, 0.05, 1.0) * both / std::max(work.forward + work.backward, 1e-12);
      most = recorded.cpu - got.messages * kLeastMessageCost / worker.cost - work.optimizer - work.rest;
    }
    work.forward = recorded.forward > 0 ? recorded.forward : work.forward * by;
    work.backward = recorded.backward > 0 ? recorded.backward : work.backward * by;
    // A small quota pauses most steps, and the medians are no better; but passes take no more than the CPU time.
    const double left = std::clamp(most / std::max(work.forward + work.backward, 1e-12), 0.05, 1.0);
    work.forward *= left;
    work.backward *= left;
  }

  [[nodiscard]] bool servers() const { return fit_.training.strategy == predict::Strategy::servers; }

  /// What a process of one thread computes is known, so the rest of its CPU time went to messages.
  void adjust_messages(size_t i) {
    predict::Worker& worker = fit_.training.workers[i];
    const double own = worker.work.forward + worker.work.backward + worker.work.optimizer + worker.work.rest;
    const double messages = fit_.prediction.workers[i].messages;
    const bool limited = fit_.training.nodes[worker.node].quota_period > 0;
    if (limited && !calm(i) && (recorded_[i].forward == 0 || recorded_[i].backward == 0)) return;  // see adjust_limited
    if (worker.work.threads > 1 || !known(recorded_[i].cpu) || !(messages > 0)) return;
    // What the messages do not explain belongs to the exchange as a whole: waking up, and threads beside.
    const double used = recorded_[i].cpu - own;
    const double plain = std::max(0.0, messages - (servers() ? worker.exchange : 0)) / worker.cost;
    worker.cost = std::clamp(used / std::max(plain, 1e-12), kLeastMessageCost, 1.0);
    worker.exchange = std::clamp(used - plain * worker.cost, 0.0, 4 * plain + 1e-4);
  }

  [[nodiscard]] WorkerTimes recorded_mean() const {
    WorkerTimes sum;
    const auto count = static_cast<double>(recorded_.size());
    for (const Recorded& recorded : recorded_) {
      sum.push += recorded.times.push / count;
      sum.pull += recorded.times.pull / count;
      sum.transfer += recorded.times.transfer / count;
      sum.others += recorded.times.others / count;
    }
    return sum;
  }

  /// Links whose rate is not known take what the exchange lacks, otherwise waking up does.
  void adjust_exchange(int round) {
    const WorkerTimes wanted = recorded_mean();
    const WorkerTimes got = fit_.prediction.mean();
    if (in_step_ && round % 2 == 1 && !stopped()) adjust_spread(wanted.others, got.others);
    if (!fit_.links_known && separate_) {
      const double change = factor(wanted.exchange(), got.exchange());
      for (predict::Node& node : fit_.training.nodes) {
        node.link.rate = std::clamp(node.link.rate / change, 1e4, 1e11);
        node.link.latency = std::clamp(node.link.latency * change, 1e-6, 0.1);
      }
      return;
    }
    adjust_wake(wanted.exchange());
  }

  /// Returns whether a worker was stopped: then the others wait for it irregularly, and not because steps vary.
  [[nodiscard]] bool stopped() const {
    return std::any_of(recorded_.begin(), recorded_.end(), [](const Recorded& r) { return r.pause > 0; });
  }

  /// Sets how long threads take to wake up, so that an exchange takes as long as wanted.
  void adjust_wake(double wanted) {
    const double lacking = wanted - fit_.prediction.mean().exchange();
    const double waits = fit_.training.strategy == predict::Strategy::servers ? 3 : 2;
    double& wake = fit_.training.costs.wake;
    wake = std::clamp(wake + 0.7 * lacking / waits, 2e-6, busy_ ? kLongestWake : kLongestWakeWhenIdle);
  }

  /// A longer wake that changes nothing, because links are the limit, would only mislead.
  void prefer_plain() {
    constexpr double kSame = 0.02;
    Training plain = fit_.training;
    plain.costs.wake = std::min(plain.costs.wake, kPlainWake);
    Prediction prediction = predict::simulate(plain, options_);
    if (std::fabs(prediction.step - fit_.prediction.step) > kSame * fit_.prediction.step) return;
    fit_.training = std::move(plain);
    fit_.prediction = std::move(prediction);
  }

  void adjust_spread(double wanted, double got) {
    const double by = got > 1e-9 ? std::clamp(std::sqrt(wanted / got), 0.5, 2.0) : 1;
    for (size_t i = 0; i < recorded_.size(); ++i) {
      double& spread = fit_.training.workers[i].work.spread;
      // Workers that are exactly alike would all be paused by their quotas in the same moments.
      spread = std::clamp(spread * by, kLeastSpread, std::min(kMostSpread, 2 * std::max(0.05, recorded_[i].spread)));
    }
  }

  Fit& fit_;
  std::vector<Recorded> recorded_;
  bool busy_;
  predict::SimulationOptions options_;

 public:
  bool in_step_ = true;    ///< workers wait for each other
  bool separate_ = false;  ///< roles are on several hosts
};

/// Returns the CPU time that each server used for a step; nothing if one was not sampled.
std::vector<double> cpu_of_servers(const RunRecord& run, const RunFacts& facts, const Fit& fit) {
  const double began = began_steps(*run.role(facts.workers.front().role), facts.workers.front());
  std::vector<double> used;
  for (size_t i = 0; i < fit.servers.size(); ++i) {
    const RoleRecord* role = run.role(fit.servers[i]);
    if (role == nullptr || role->samples < kEnoughSamples) return {};
    const double all = cores_used(*role, began);
    used.push_back(fit.whole() * std::max(all - fit.training.nodes[fit.training.servers[i].node].kept, 0.2 * all));
  }
  return used;
}

/// Scales the costs of the exchange so that the servers use as much CPU as they did; then each server's.
void fit_server_costs(const RunRecord& run, const RunFacts& facts, Fit& fit) {
  const std::vector<double> used = cpu_of_servers(run, facts, fit);
  const Prediction now = predict::simulate(fit.training, few_steps(fit.training));
  const double all = std::accumulate(used.begin(), used.end(), 0.0);
  const double modelled = now.step * std::accumulate(now.servers.begin(), now.servers.end(), 0.0);
  if (!(all > 0) || !(modelled > 0)) return;
  const double by = std::clamp(all / modelled, 0.25, 4.0);
  predict::Costs& costs = fit.training.costs;
  for (double predict::Costs::*cost : {&predict::Costs::message, &predict::Costs::byte, &predict::Costs::add,
                                       &predict::Costs::update, &predict::Costs::update_byte}) {
    costs.*cost *= by;
  }
  for (size_t i = 0; i < used.size(); ++i) {
    const double own = now.servers[i] * now.step * all / modelled;
    if (own > 0) fit.training.servers[i].cost = std::clamp(used[i] / own, 0.25, 4.0);
  }
}

std::string what_is_missing(const RunRecord& run, const RunFacts& facts) {
  if (facts.workers.empty()) return "it recorded no phases of its steps (phases.csv)";
  if (facts.workers.front().steps < 2) return "its workers recorded fewer than two steps";
  if (!(facts.all.seconds > 0) || !(facts.all.seconds < 1e12)) return "the times of its phases are not usable";
  if (run.workers() > kMostWorkers) return "it names more workers than a model is fitted to";
  return "";
}

/// Evaluations and checkpoints are the chief's. In step, all wait for them; otherwise they are a part of the time of
/// one worker.
void set_aside(const RunRecord& run, const RunFacts& facts, Fit& fit) {
  const Pace& chief = facts.workers.front();
  const double share = in_step(run) ? 1 : 1 / static_cast<double>(facts.workers.size());
  fit.evaluation = share * chief.per_step(chief.evaluation);
  fit.checkpoint = share * chief.per_step(chief.checkpoint);
}

Fit fit_of(const RunRecord& run, const RunFacts& facts) {
  Fit fit;
  set_rules(run, fit.training);
  MachineNotes notes = set_machines(run, facts, fit);
  std::vector<Recorded> recorded = recorded_steps(run, facts, fit);
  for (size_t i = 0; i < recorded.size(); ++i) {
    const WorkerTimes& times = recorded[i].times;
    Work& work = fit.training.workers[i].work;
    const double pace = notes.pace[std::min(i, notes.pace.size() - 1)];
    work.forward = times.forward * pace;
    work.backward = times.backward * pace;
    work.optimizer = times.optimizer * pace;
    work.rest = (times.rest - recorded[i].pause) * pace;
    work.pause = recorded[i].pause;
    work.spread = notes.limited ? std::clamp(recorded[i].spread, kLeastSpread, 0.1) : recorded[i].spread;
  }
  set_aside(run, facts, fit);
  fit.fixed_compute = fixed_share(run, recorded.front());
  fit.step = step_of(run, recorded);
  if (fit.training.strategy == predict::Strategy::servers) fit_server_costs(run, facts, fit);
  Fitter fitter(fit, std::move(recorded), notes.busy);
  fitter.in_step_ = fit.training.strategy == predict::Strategy::all_reduce || fit.training.sync;
  fitter.separate_ = notes.separate;
  fitter.run();
  return fit;
}

}  // namespace

predict::SimulationOptions few_steps(const Training& training) {
  constexpr size_t kMostSteps = 4000;
  const size_t steps = kMostSteps / std::max<size_t>(training.workers.size(), 1);
  return {.steps = static_cast<int>(std::clamp<size_t>(steps, 8, 60))};
}

Fit fit(const RunRecord& run) {
  const RunFacts facts = facts_of(run);
  Fit result;
  result.missing = what_is_missing(run, facts);
  if (!result.there()) return result;
  try {
    return fit_of(run, facts);
  } catch (const Error& error) {
    result.missing = error.what();
    return result;
  }
}

}  // namespace lockstep::records
