#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/error.h"
#include "predict/counterfactual.h"

namespace lockstep::plan {
namespace {

using predict::Prediction;
using predict::Strategy;
using predict::Training;

constexpr double kBurstSeconds = 0.002;
constexpr double kLeastBurst = 128 * 1024;
/// Simulated steps of all workers together, and the least of each worker.
constexpr int64_t kSteps = 2000;
constexpr int64_t kLeastSteps = 6;
/// Buffers in a server, in sizes of the parameters: two versions, and gradients being received.
constexpr double kServerCopies = 3;
constexpr double kProcessBytes = 30e6;

std::string no_worker(int64_t nodes, int64_t servers) {
  return fmt::format("{} nodes hold no worker beside {} parameter server{}; take more --nodes or fewer --ps", nodes,
                     servers, servers == 1 ? "" : "s");
}

struct Factors {
  double work = 1;
  double costs = 1;
  double rate = 1;
};

class Planner {
 public:
  Planner(const Basis& basis, const Choices& choices) {
    plan_.basis = basis;
    plan_.choices = choices;
    fill_in(plan_.choices);
  }

  Plan make() {
    for (const int64_t nodes : plan_.choices.nodes) {
      for (const double batch : plan_.choices.batches) add_nodes(nodes, batch);
    }
    if (plan_.rows.empty()) throw UsageError("plan: " + (left_out_.empty() ? "nothing to plan" : left_out_));
    if (!left_out_.empty()) plan_.notes.push_back(left_out_ + "; left out.");
    choose();
    say_notes();
    return std::move(plan_);
  }

 private:
  void fill_in(Choices& choices) const {
    const Basis& basis = plan_.basis;
    if (choices.rates.empty()) choices.rates = {basis.rate};
    if (choices.delays.empty()) choices.delays = {basis.delay};
    if (choices.batches.empty()) choices.batches = {basis.batch};
    if (choices.epochs == 0 && basis.epochs > 0) choices.epochs = basis.epochs;
    if (choices.cores == 0) choices.cores = basis.node_cores;
    if (choices.memory == 0 && std::isfinite(basis.node_memory)) choices.memory = basis.node_memory;
    std::sort(choices.nodes.begin(), choices.nodes.end());
  }

  void add_nodes(int64_t nodes, double batch) {
    if (nodes == 1) {
      Row row;
      row.batch = batch;
      row.rate = plan_.choices.rates.front();
      return add(std::move(row));
    }
    for (const double rate : plan_.choices.rates) {
      for (const double delay : plan_.choices.delays) {
        for (const Strategy strategy : plan_.choices.strategies) add_ways(nodes, batch, rate, delay, strategy);
      }
    }
  }

  void add_ways(int64_t nodes, double batch, double rate, double delay, Strategy strategy) {
    Row row{.nodes = nodes, .workers = nodes, .rate = rate, .delay = delay, .strategy = strategy, .batch = batch};
    if (strategy == Strategy::all_reduce) return add(std::move(row));
    for (const int64_t servers : plan_.choices.servers) {
      if (servers >= nodes) {
        left_out_ = no_worker(nodes, servers);
        continue;
      }
      for (const bool sync : plan_.choices.sync) {
        row.servers = servers;
        row.workers = nodes - servers;
        row.sync = sync;
        add(row);
      }
    }
  }

  /// `number`: from 1.
  [[nodiscard]] predict::Node node_of(const Row& row, int64_t number) const {
    const Choices& choices = plan_.choices;
    predict::Node node{.name = fmt::format("node{}", number), .cores = choices.cores, .speed = choices.speed};
    for (const auto& [other, cores] : choices.other_cores) {
      if (other == number) node.cores = cores;
    }
    if (plan_.basis.quota || node.cores < 1) {
      node.quota_period = predict::quota_period(node.cores);
      node.kept = predict::kept_of_quota(node.cores);
    }
    node.link.rate = row.rate;
    node.link.latency = row.delay;
    if (plan_.basis.quota && row.rate < predict::kUnlimited) {
      node.link.burst = std::max(kLeastBurst, row.rate * kBurstSeconds);
    }
    return node;
  }

  /// Threads share a pass evenly; more cores than measured are taken to help as much.
  [[nodiscard]] predict::Work work_of(const Row& row, const Factors& factors) const {
    const Basis& basis = plan_.basis;
    const double cores = std::max(1.0, std::floor(plan_.choices.cores));
    const double threads = basis.quota ? basis.threads : cores;
    const double scale = factors.work * basis.threads / threads;
    predict::Work work;
    work.forward = basis.forward.of(row.batch) * scale;
    work.backward = basis.backward.of(row.batch) * scale;
    work.optimizer = row.strategy == Strategy::servers ? 0 : optimizer_seconds() * scale;
    work.rest = basis.rest * factors.work;
    work.load = basis.load_each * row.batch * factors.work;
    work.spread = basis.spread;
    work.threads = threads;
    return work;
  }

  /// A run with parameter servers did not update in its workers.
  [[nodiscard]] double optimizer_seconds() const {
    if (plan_.basis.optimizer > 0) return plan_.basis.optimizer;
    return elements() * 4 * plan_.basis.costs.update_byte;
  }

  [[nodiscard]] double elements() const {
    double sum = 0;
    for (const predict::Tensor& tensor : plan_.basis.tensors) sum += static_cast<double>(tensor.count);
    return sum;
  }

  [[nodiscard]] Training training_of(const Row& row, const Factors& factors = {}) const {
    const Basis& basis = plan_.basis;
    Training training;
    training.strategy = row.strategy;
    training.sync = row.sync;
    training.batch = row.batch;
    training.tensors = basis.tensors;
    training.element_bytes = basis.element_bytes;
    training.all_reduce_bucket = basis.all_reduce_bucket;
    training.costs = basis.costs;
    for (double predict::Costs::*cost : {&predict::Costs::message, &predict::Costs::byte, &predict::Costs::wake,
                                         &predict::Costs::add, &predict::Costs::update, &predict::Costs::update_byte}) {
      training.costs.*cost *= factors.costs;
    }
    for (int64_t i = 0; i < row.nodes; ++i) {
      training.nodes.push_back(node_of(row, i + 1));
      training.nodes.back().link.rate *= factors.rate;
    }
    if (row.servers > 0 && row.sync && plan_.choices.backups > 0) {
      training.aggregate = static_cast<int>(std::max<int64_t>(1, row.workers - plan_.choices.backups));
    }
    for (int64_t i = 0; i < row.servers; ++i) training.servers.push_back({.node = static_cast<size_t>(i)});
    for (int64_t i = 0; i < row.workers; ++i) {
      training.workers.push_back({.node = static_cast<size_t>(row.servers + i),
                                  .work = work_of(row, factors),
                                  .cost = basis.worker_cost,
                                  .exchange = basis.worker_exchange});
    }
    training.machine_cores = plan_.choices.machine_cores;
    return training;
  }

  static bool in_step(const Row& row) { return row.strategy != Strategy::servers || row.sync; }

  [[nodiscard]] static predict::SimulationOptions options_of(const Row& row) {
    return {.steps = static_cast<int>(std::clamp(kSteps / row.workers, kLeastSteps, int64_t{40}))};
  }

  void add(Row row) {
    const double error = plan_.basis.error;
    row.training = training_of(row);
    const Prediction prediction = predict::simulate(row.training, options_of(row));
    const Prediction low =
        predict::simulate(training_of(row, {1 - error, 1 / (1 + 4 * error), 1 + error}), options_of(row));
    const Prediction high = predict::simulate(training_of(row, {1 + error, 1 + 4 * error, 1 - error}), options_of(row));
    row.step = ordered(low.step, prediction.step, high.step);
    row.examples = ordered(low.examples_per_second, prediction.examples_per_second, high.examples_per_second);
    set_loads(prediction, row);
    set_memory(row);
    set_end(row);
    row.limit = limit_of(row, prediction);
    compare(row);
    plan_.rows.push_back(std::move(row));
  }

  static Interval ordered(double a, double value, double b) {
    return {std::min({a, b, value}), value, std::max({a, b, value})};
  }

  static void set_loads(const Prediction& prediction, Row& row) {
    for (size_t i = 0; i < prediction.nodes.size(); ++i) {
      row.network = std::max(row.network, std::min(1.0, prediction.nodes[i].link));
      if (i < static_cast<size_t>(row.servers)) {
        row.server = std::max(row.server, std::min(1.0, prediction.nodes[i].cpu));
      }
    }
  }

  void set_memory(Row& row) const {
    const Basis& basis = plan_.basis;
    const double parameters = elements() * 4;
    const double more = basis.from_run ? row.batch - basis.batch : row.batch;
    const double worker = basis.memory_fixed + basis.memory_each * more;
    const double server = parameters * (kServerCopies + static_cast<double>(row.workers)) /
                              static_cast<double>(std::max<int64_t>(row.servers, 1)) +
                          kProcessBytes;
    row.memory = row.servers > 0 && server > worker ? server : worker;  // not known if the worker's is not
    if (plan_.choices.memory > 0 && row.memory > plan_.choices.memory) row.fits = false;
  }

  /// Sets time and cost to the goal, or to the end of the epochs.
  void set_end(Row& row) const {
    const Choices& choices = plan_.choices;
    double examples = choices.epochs * plan_.basis.epoch_examples;
    if (choices.goal) {
      examples = in_step(row) ? examples_needed(*choices.goal, row.batch * static_cast<double>(row.workers)) : kUnknown;
    }
    if (!(examples > 0)) return;
    // The chief evaluates for all; if workers are not in step, the others train meanwhile.
    const double aside = examples * plan_.basis.aside_each / (in_step(row) ? 1 : static_cast<double>(row.workers));
    const double error = plan_.basis.error;
    row.seconds = {examples / row.examples.high + aside * (1 - error), examples / row.examples.value + aside,
                   examples / row.examples.low + aside * (1 + error)};
    if (choices.price > 0) {
      row.money = row.seconds.value / 3600 * choices.price * static_cast<double>(row.nodes);
    }
  }

  [[nodiscard]] static std::string limit_of(const Row& row, const Prediction& prediction) {
    struct Part {
      predict::Resource resource;
      const char* name;
    };
    constexpr std::array<Part, 6> kParts{{{predict::Resource::network, "network"},
                                          {predict::Resource::servers, "servers"},
                                          {predict::Resource::messages, "messages"},
                                          {predict::Resource::compute, "computing"},
                                          {predict::Resource::data, "data"},
                                          {predict::Resource::unevenness, "uneven steps"}}};
    std::string text = "computing";
    double most = 0;
    for (const Part& part : kParts) {
      if (row.strategy != Strategy::servers && part.resource == predict::Resource::servers) continue;
      if (row.nodes == 1 && part.resource != predict::Resource::compute && part.resource != predict::Resource::data) {
        continue;
      }
      const double step = predict::simulate(predict::without(row.training, part.resource), options_of(row)).step;
      const double saved = 1 - step / prediction.step;
      if (!(saved > most)) continue;
      most = saved;
      text = fmt::format("{} {:.0f} %", part.name, 100 * saved);
    }
    // Where two things are at their limit at once, either alone saves little.
    constexpr double kFull = 0.9;
    constexpr double kLittle = 0.25;
    if (most < kLittle && row.network > kFull) text = fmt::format("network ({:.0f} % full)", 100 * row.network);
    if (most < kLittle && row.server > kFull) text = fmt::format("servers ({:.0f} % busy)", 100 * row.server);
    return text;
  }

  /// Sets the speed-up over one process on one such node with the same batch.
  void compare(Row& row) {
    if (alone_batch_ != row.batch) {
      Row one;
      one.batch = alone_batch_ = row.batch;
      one.rate = row.rate;
      alone_ = predict::simulate(training_of(one), options_of(one)).examples_per_second;
    }
    row.speed_up = row.examples.value / alone_;
    row.efficiency = row.speed_up / static_cast<double>(row.nodes);
  }

  static bool same_way(const Row& a, const Row& b) {
    return a.strategy == b.strategy && a.sync == b.sync && a.servers == b.servers && a.rate == b.rate &&
           a.delay == b.delay && a.batch == b.batch;
  }

  void choose() {
    const auto better = [&](std::optional<size_t>& best, size_t i, auto value) {
      const double now = value(plan_.rows[i]);
      if (plan_.rows[i].fits && std::isfinite(now) && (!best || now < value(plan_.rows[*best]))) best = i;
    };
    const bool timed = std::any_of(plan_.rows.begin(), plan_.rows.end(),
                                   [](const Row& row) { return std::isfinite(row.seconds.value); });
    for (size_t i = 0; i < plan_.rows.size(); ++i) {
      better(plan_.fastest, i, [&](const Row& row) { return timed ? row.seconds.value : 1 / row.examples.value; });
      better(plan_.cheapest, i, [](const Row& row) { return row.money; });
    }
    if (plan_.fastest) find_knee();
  }

  void find_knee() {
    const Row& fastest = plan_.rows[*plan_.fastest];
    const double alone = fastest.examples.value / fastest.speed_up;
    double nodes = 1;
    double speed = alone;
    for (size_t i = 0; i < plan_.rows.size(); ++i) {
      const Row& row = plan_.rows[i];
      if (!same_way(row, fastest) || row.nodes == 1 || !row.fits) continue;
      const double more = (row.examples.value - speed) / (static_cast<double>(row.nodes) - nodes);
      constexpr double kWorth = 0.5;
      if (more >= kWorth * alone) plan_.knee = i;
      nodes = static_cast<double>(row.nodes);
      speed = row.examples.value;
    }
  }

  void say_notes() {
    for (const std::string& note : plan_.basis.notes) plan_.notes.push_back(note);
    const Choices& choices = plan_.choices;
    if (std::any_of(choices.delays.begin(), choices.delays.end(), [](double delay) { return delay > 0; })) {
      plan_.notes.emplace_back("Delays of links are modelled, but the model was not checked against delayed links.");
    }
    const Basis& basis = plan_.basis;
    if (basis.from_run && basis.memory_each == 0 && std::isfinite(basis.memory_fixed) &&
        *std::max_element(choices.batches.begin(), choices.batches.end()) > basis.batch) {
      plan_.notes.push_back(
          fmt::format("Memory is that of the run's batch of {:.0f}; larger batches need more.", basis.batch));
    }
    if (choices.goal && std::none_of(plan_.rows.begin(), plan_.rows.end(),
                                     [](const Row& row) { return std::isfinite(row.seconds.value); })) {
      plan_.notes.push_back(
          fmt::format("The time to {} {} of {:g} is not known: {} recorded global batch{} reached it, and two near the "
                      "planned ones "
                      "are needed.",
                      choices.goal->field == "accuracy" ? "an" : "a", choices.goal->field, choices.goal->value,
                      choices.goal->reached.size(), choices.goal->reached.size() == 1 ? "" : "es"));
    }
    if (plan_.fastest) compare_with_slower_machines();
  }

  /// A quota pauses a node, a slower processor slows it: says what the difference would be.
  void compare_with_slower_machines() {
    const Row& row = plan_.rows[*plan_.fastest];
    Training slower = row.training;
    bool limited = false;
    for (predict::Node& node : slower.nodes) {
      if (node.quota_period == 0 || node.cores >= 1) continue;
      limited = true;
      node.quota_period = 0;
      node.speed *= node.cores;
      node.cores = 1;
    }
    if (!limited) return;
    plan_.slower_machines = predict::simulate(slower, options_of(row)).step / row.step.value;
    plan_.notes.push_back(
        fmt::format("Nodes with {:.2g} cores are nodes with a quota here: they pause. On processors of that speed the "
                    "fastest choice "
                    "would take {:.2f} times as long per step.",
                    plan_.choices.cores, plan_.slower_machines));
  }

  Plan plan_;
  std::string left_out_;
  double alone_ = 1;
  double alone_batch_ = 0;
};

}  // namespace

void check(const Choices& choices) {
  const auto has = [&](Strategy strategy) {
    return std::find(choices.strategies.begin(), choices.strategies.end(), strategy) != choices.strategies.end();
  };
  const int64_t most = *std::max_element(choices.nodes.begin(), choices.nodes.end());
  const int64_t least = *std::min_element(choices.nodes.begin(), choices.nodes.end());
  const int64_t servers = *std::min_element(choices.servers.begin(), choices.servers.end());
  if (least == 1 || has(Strategy::all_reduce) || servers < most) return;
  throw UsageError("plan: " + no_worker(most, servers));
}

Plan make_plan(const Basis& basis, const Choices& choices) { return Planner(basis, choices).make(); }

std::string way_text(const Row& row) {
  if (row.strategy == Strategy::local) return "one process";
  if (row.strategy == Strategy::all_reduce) return "all-reduce";
  return fmt::format("ps {} {}", row.servers, row.sync ? "sync" : "async");
}

}  // namespace lockstep::plan
