#include "records/fit_recorded.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::records {
namespace {

using predict::WorkerTimes;

/// Returns the share of the time by which samples of the monitor came late: its thread does not run either while the
/// process is stopped. A busy machine or a quota delays it hardly at all.
double monitor_late(const RoleRecord& role) {
  constexpr size_t kFewSamples = 6;
  constexpr double kSlack = 0.04;   // of the time between two samples; without stops they are late by a hundredth
  constexpr double kLeast = 0.025;  // seconds; more than a quota pauses
  const std::span<const double> times = role.monitor.column("seconds");
  const double every = role.summary.number("resources.every");
  if (times.size() < kFewSamples || !(every > 0)) return 0;
  double late = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    const double gap = times[i] - times[i - 1];
    if (gap - every > std::max(kSlack * every, kLeast)) late += gap - every;
  }
  const double all = times.back() - times.front();
  return all > 0 && known(late) ? std::clamp(late / all, 0.0, 1.0) : 0;
}

/// Returns the medians of a worker's phases; NaN where they were not recorded.
WorkerTimes medians_of(const RoleRecord& role) {
  WorkerTimes usual;
  const auto of = [&](std::string_view name) {
    for (const PhaseTotals& phase : role.phases) {
      if (phase.name == name) return phase.p50;
    }
    return 0.0;
  };
  usual.forward = of("forward");
  usual.backward = of("backward");
  usual.optimizer = of("optimizer");
  usual.push = of("push");
  usual.pull = of("pull");
  usual.transfer = of("transfer");
  usual.others = of("others");
  usual.rest = of("rest");
  return usual;
}

/// Returns the CPU time of a role's evaluations: the fastest one was paused least.
double cpu_of_evaluations(const RoleRecord& role, const Pace& pace, const predict::Node& node) {
  const std::span<const double> seconds = role.evals.column("eval_seconds");
  double each = smallest_above_zero(seconds);
  if (!known(each)) return pace.evaluation;
  if (node.quota_period > 0) each = std::min(each, node.cores * (each + 2 * node.quota_period));
  const double all = each * static_cast<double>(seconds.size());
  return known(all) && all >= 0 ? std::min(all, pace.evaluation) : pace.evaluation;
}

/// Returns the CPU time of a role's checkpoints: half of them were paused no more than the median.
double cpu_of_checkpoints(const RoleRecord& role, const Pace& pace) {
  for (const PhaseTotals& phase : role.phases) {
    const double all = phase.p50 * phase.count;
    if (phase.name == "checkpoint" && known(all) && all >= 0) return std::min(all, pace.checkpoint);
  }
  return 0;
}

/// Returns the CPU time of a role's step; the monitor's samples are also of its evaluations.
double cpu_of_steps(const RoleRecord& role, const Pace& pace, const predict::Node& node) {
  const double use = cores_used(role, began_steps(role, pace));
  const double all = std::max(use - node.kept, 0.2 * use) * pace.seconds;
  const double beside = cpu_of_evaluations(role, pace, node) + cpu_of_checkpoints(role, pace);
  return std::max(all - beside, 0.2 * all) / std::max(pace.steps, 1.0);
}

/// Parts of a step that a worker does itself: a stop of its process falls on it alone there.
constexpr std::array kOwnParts{&WorkerTimes::forward, &WorkerTimes::backward, &WorkerTimes::optimizer,
                               &WorkerTimes::push, &WorkerTimes::rest};

/// Returns by how much the mean of a part of a step is above its median: rare long delays.
double late_part(const Recorded& recorded, double WorkerTimes::*part) {
  const double late = recorded.times.*part - recorded.usual.*part;
  return late > 0 ? std::min(late, recorded.times.*part) : 0;  // 0 also if the median is not known
}

/// Takes that much out of what a worker does itself, where it is late, and returns how much was there.
double take_late(Recorded& recorded, double seconds) {
  double all = 0;
  for (const auto part : kOwnParts) all += late_part(recorded, part);
  if (!(all > 0) || !(seconds > 0)) return 0;
  const double share = std::min(1.0, seconds / all);
  for (const auto part : kOwnParts) recorded.times.*part -= share * late_part(recorded, part);
  return share * all;
}

Recorded recorded_of(const RoleRecord& role, const Pace& pace, const predict::Node& node) {
  Recorded recorded;
  WorkerTimes& times = recorded.times;
  times.data = pace.per_step(pace.data);
  times.forward = pace.per_step(pace.forward);
  times.backward = pace.per_step(pace.backward);
  times.optimizer = pace.per_step(pace.optimizer);
  times.push = pace.per_step(pace.push);
  times.pull = pace.per_step(pace.pull);
  times.transfer = pace.per_step(pace.transfer);
  times.others = pace.per_step(pace.others);
  times.rest = pace.per_step(pace.rest);
  recorded.usual = medians_of(role);
  for (const auto part : kOwnParts) recorded.late += late_part(recorded, part);
  for (const PhaseTotals& phase : role.phases) {
    const double late = std::max(0.0, phase.mean - phase.p50);
    if (known(late) && phase.name == "pull") recorded.late_answers = late;
    if (known(late) && phase.name == "transfer") recorded.late_sums = late;
    if (phase.name != "backward" && phase.name != "forward") continue;
    constexpr double kQuantile = 1.645;  // of the normal distribution, for 95 %
    const double spread = std::log(phase.p95 / phase.p50) / kQuantile;
    recorded.spread = std::max(recorded.spread, bounded(spread, 0, kMostSpread));
    constexpr double kPauses = 1.2;  // of the mean to the median
    const double usual = phase.mean > kPauses * phase.p50 ? phase.p50 : 0;
    (phase.name == "forward" ? recorded.forward : recorded.backward) = usual;
  }
  recorded.silent = monitor_late(role);
  if (role.samples >= kEnoughSamples) {
    recorded.cpu = cpu_of_steps(role, pace, node);
  }
  // A loader that nearly keeps up is late now and then; the model's loader never is.
  constexpr double kLate = 0.05;
  if (times.data < kLate * times.all()) {
    times.rest += times.data;
    times.data = 0;
  }
  return recorded;
}

/// Returns how long the other workers wait for one in a step, at least; 0 if it waits for them as long.
double waited_for(const std::vector<Recorded>& all, size_t i) {
  double least = all[i == 0 ? 1 : 0].times.others;
  for (size_t other = 0; other < all.size(); ++other) {
    if (other != i) least = std::min(least, all[other].times.others);
  }
  return least > all[i].times.others ? least : 0;
}

/// A worker that is often late, and that the others wait for, was stopped again and again: its process did not run.
/// Pauses by a quota are known, and are not counted. A server that pauses also makes answers late, but those of all.
void find_pauses(const RunRecord& run, std::vector<Recorded>& all, const std::vector<std::string>& roles) {
  constexpr double kMuch = 0.15;
  if (all.size() < 2) return;
  const auto late = [](const Recorded& recorded) { return recorded.late + recorded.late_answers; };
  double usual = late(all.front());
  for (const Recorded& recorded : all) usual = std::min(usual, late(recorded));
  for (size_t i = 0; i < all.size(); ++i) {
    Recorded& recorded = all[i];
    double paused = late(recorded) - usual;
    const auto held = run.throttling.find(roles[i]);
    const double steps = run.steps();
    if (held != run.throttling.end() && known(held->second.seconds) && steps > 0)
      paused -= held->second.seconds / steps;
    if (in_step(run)) paused = std::min(paused, waited_for(all, i));
    if (!(paused > kMuch * recorded.times.all())) continue;
    const double answers = std::clamp(recorded.late_answers, 0.0, paused);
    recorded.times.pull -= answers;
    const double own = take_late(recorded, paused - answers);
    recorded.times.rest += answers + own;
    recorded.pause = answers + own;
  }
}

/// Returns the member of an all-reduce whose monitor was late much more than the others', or none.
Recorded* silent_member(std::vector<Recorded>& all) {
  constexpr double kSilent = 0.04;
  constexpr double kMuchMore = 3;
  const auto worst = std::max_element(all.begin(), all.end(),
                                      [](const Recorded& a, const Recorded& b) { return a.silent < b.silent; });
  double others = 0;
  for (const Recorded& recorded : all) {
    if (&recorded != &*worst) others = std::max(others, recorded.silent);
  }
  return worst->silent > kSilent && worst->silent >= kMuchMore * others ? &*worst : nullptr;
}

/// Takes out of a member's step what stops cost it while it computed, and returns the seconds per step. That is the
/// time by which it is late beyond the latest of the other members and beyond what its quota paused it. `sure`: that it
/// was stopped is known; otherwise a little is none.
double take_own_pauses(const RunRecord& run, std::vector<Recorded>& all, size_t i, const std::string& role, bool sure) {
  constexpr double kMuch = 0.15;
  Recorded& recorded = all[i];
  double usual = 0;
  for (const Recorded& other : all) {
    if (&other != &recorded) usual = std::max(usual, other.late);
  }
  double paused = recorded.late - usual;
  const auto held = run.throttling.find(role);
  if (held != run.throttling.end() && known(held->second.seconds) && run.steps() > 0)
    paused -= held->second.seconds / run.steps();
  if (!(paused > (sure ? 0 : kMuch * recorded.times.all()))) return 0;
  return take_late(recorded, paused);
}

/// In an all-reduce all members wait alike for one that is stopped while it exchanges. The monitor of that one is late,
/// too. If it is stopped while it computes, only its own computing takes longer.
void find_stopped_member(const RunRecord& run, std::vector<Recorded>& all, const std::vector<std::string>& roles) {
  if (all.size() < 2) return;
  const Recorded* silent = silent_member(all);
  for (size_t i = 0; i < all.size(); ++i) {
    Recorded& stopped = all[i];
    if (silent != nullptr && silent != &stopped) continue;
    const double own = take_own_pauses(run, all, i, roles[i], silent != nullptr);
    double late = silent != nullptr ? stopped.late_sums : 0;
    for (const Recorded& recorded : all) late = std::min({late, recorded.late_sums, recorded.times.transfer});
    if (!(own + late > 0)) continue;
    for (Recorded& recorded : all) {
      recorded.times.transfer -= late;
      (&recorded == &stopped ? recorded.times.rest : recorded.times.others) += late;
    }
    stopped.times.rest += own;
    stopped.pause = own + late;
    return;
  }
}

}  // namespace

std::vector<Recorded> recorded_steps(const RunRecord& run, const RunFacts& facts, const Fit& fit) {
  std::vector<Recorded> recorded;
  for (size_t i = 0; i < facts.workers.size(); ++i) {
    const Pace& pace = facts.workers[i];
    const predict::Node& node = fit.training.nodes[fit.training.workers[i].node];
    recorded.push_back(recorded_of(*run.role(pace.role), pace, node));
  }
  const size_t copies = run.in_process() ? run.workers() : 1;  // replicas are alike; one of them recorded its time
  while (recorded.size() < copies) recorded.push_back(recorded.front());
  if (fit.training.strategy == predict::Strategy::all_reduce) {
    find_stopped_member(run, recorded, fit.workers);
  } else {
    find_pauses(run, recorded, fit.workers);
  }
  return recorded;
}

}  // namespace lockstep::records
