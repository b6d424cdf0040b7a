#include "predict/simulate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "base/random.h"
#include "lockstep/error.h"
#include "predict/exchange.h"
#include "schedule/all_reduce_way.h"

namespace lockstep::predict {
namespace {

/// A simulation of nodes that quotas pause counts at least this many periods of the quota. It leaves out some periods
/// before, in which nodes use up what they saved at the beginning. Each worker makes at most this many steps.
constexpr double kPeriods = 8;
constexpr double kPeriodsBefore = 3;
constexpr uint64_t kMostSteps = 4000;

/// Returns a normally distributed number, which depends on its arguments only.
double normal(uint64_t seed, uint64_t worker, uint64_t step) {
  const base::Philox::Block bits = base::Philox(seed, worker)(step, 0);
  const double u = (static_cast<double>(bits[0]) + 0.5) * 0x1p-32;
  const double v = (static_cast<double>(bits[1]) + 0.5) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// Returns how long a worker's loader takes for a batch, on a thread that shares the node's cores with other programs.
double load_of(const Training& training, const Worker& worker) {
  const Node& node = training.nodes[worker.node];
  const bool limited = node.quota_period > 0;
  return worker.work.load * std::max(1.0, limited ? 1.0 : (node.others + 1) / node.cores);
}

/// The training threads: they compute, call the exchange, and begin again.
class Player {
 public:
  Player(World& world, ExchangeModel& exchange, int steps)
      : world_(world), exchange_(exchange), steps_(steps), workers_(world.training.workers.size()) {
    for (const Node& node : world.training.nodes) longest_period_ = std::max(longest_period_, node.quota_period);
  }

  void play();
  /// Returns the counted steps of a worker, and the time from the first one's beginning to the last one's end.
  [[nodiscard]] double counted(size_t worker) const { return static_cast<double>(workers_[worker].counted); }
  [[nodiscard]] double seconds(size_t worker) const { return workers_[worker].ended - began_; }
  [[nodiscard]] double began() const { return began_; }
  [[nodiscard]] const ExchangeTotals& before() const { return before_; }

 private:
  struct Runner {
    uint64_t step = 0;
    uint64_t counted = 0;
    double factor = 1;  ///< scales the computing times of this step
    double loaded = 0;  ///< when the loader has made the next batch
    double taken = 0;   ///< when the batch before the latest was taken
    double latest = 0;
    double ended = 0;
  };

  [[nodiscard]] double start_of(size_t worker) const;
  void start(size_t worker);
  void take_batch(size_t worker);
  void forward(size_t worker);
  void compute_loss(size_t worker);
  void backward(size_t worker, size_t part);
  void rest(size_t worker);
  void end(size_t worker);
  [[nodiscard]] bool over() const;
  void start_counting();

  World& world_;
  ExchangeModel& exchange_;
  int steps_;
  double longest_period_ = 0;
  std::vector<Runner> workers_;
  uint64_t all_steps_ = 0;
  double began_ = 0;
  ExchangeTotals before_;
};

void Player::play() {
  for (size_t i = 0; i < workers_.size(); ++i) world_.events.at(start_of(i), [this, i] { start(i); });
  while (!over()) {
    if (!world_.events.step()) throw Error("the simulation of the training came to a halt");
  }
}

/// Workers that do not wait for each other do not keep in step by chance either: they begin evenly spread over the time
/// that one of them alone would need for a step.
double Player::start_of(size_t worker) const {
  const Training& training = world_.training;
  if (training.strategy != Strategy::servers || training.sync) return 0;
  const Worker& own = training.workers[worker];
  const double bytes = static_cast<double>(training.elements()) * training.element_bytes;
  const double link = training.nodes[own.node].link.rate;
  const double alone = own.work.forward + own.work.backward + (link < kUnlimited ? 2 * bytes / link : 0);
  return alone * static_cast<double>(worker) / static_cast<double>(workers_.size());
}

/// Asynchronous workers may differ much in speed; then the fast ones make more steps.
bool Player::over() const {
  const uint64_t all = static_cast<uint64_t>(steps_) * workers_.size();
  if (!world_.counting || all_steps_ < all) return false;
  const bool long_enough = world_.events.now() - began_ >= kPeriods * longest_period_;
  if (!long_enough && all_steps_ < kMostSteps * workers_.size()) return false;
  const auto few = [](const Runner& runner) { return runner.counted < 3; };
  return all_steps_ > 20 * all || std::none_of(workers_.begin(), workers_.end(), few);
}

void Player::start_counting() {
  world_.counting = true;
  all_steps_ = 0;
  began_ = world_.events.now();
  before_ = exchange_.totals();
  for (Runner& runner : workers_) runner.ended = began_;
}

void Player::start(size_t worker) {
  Runner& runner = workers_[worker];
  const Work& work = world_.training.workers[worker].work;
  ++runner.step;
  runner.factor = 1;
  if (work.spread > 0) {
    const double z = normal(world_.training.seed, worker, runner.step);
    runner.factor = std::exp(work.spread * z - work.spread * work.spread / 2);
  }
  exchange_.begin(worker);
  take_batch(worker);
}

void Player::take_batch(size_t worker) {
  Runner& runner = workers_[worker];
  const double now = world_.events.now();
  // The loader makes a batch once a place is free, two batches ahead.
  runner.loaded = std::max(runner.loaded, runner.taken) + load_of(world_.training, world_.training.workers[worker]);
  runner.taken = runner.latest;
  const double waits = std::max(0.0, runner.loaded - now);
  runner.latest = now + waits;
  if (waits == 0) return forward(worker);
  world_.events.after(waits, [this, worker, now] {
    if (world_.counting) world_.times[worker].data += world_.events.now() - now;
    world_.span("worker", worker, "data", now);
    forward(worker);
  });
}

void Player::forward(size_t worker) {
  const Work& work = world_.training.workers[worker].work;
  if (work.pause > 0) {
    if (world_.counting) world_.times[worker].rest += work.pause;
    return world_.events.after(work.pause, [this, worker] { compute_loss(worker); });
  }
  compute_loss(worker);
}

void Player::compute_loss(size_t worker) {
  const Work& work = world_.training.workers[worker].work;
  const double began = world_.events.now();
  world_.cpu_of_worker(worker).run(work.forward * workers_[worker].factor, work.threads, [this, worker, began] {
    if (world_.counting) world_.times[worker].forward += world_.events.now() - began;
    world_.span("worker", worker, "forward", began);
    backward(worker, 0);
  });
}

void Player::backward(size_t worker, size_t part) {
  const std::vector<StepPart>& parts = exchange_.parts();
  if (part == parts.size()) return rest(worker);
  const Work& work = world_.training.workers[worker].work;
  const double began = world_.events.now();
  const double seconds = work.backward * parts[part].share * workers_[worker].factor;
  world_.cpu_of_worker(worker).run(seconds, work.threads, [this, worker, part, began] {
    if (world_.counting) world_.times[worker].backward += world_.events.now() - began;
    world_.span("worker", worker, "backward", began);
    exchange_.computed(worker, part, [this, worker, part] { backward(worker, part + 1); });
  });
}

void Player::rest(size_t worker) {
  const double began = world_.events.now();
  world_.cpu_of_worker(worker).run(world_.training.workers[worker].work.rest, 1, [this, worker, began] {
    if (world_.counting) world_.times[worker].rest += world_.events.now() - began;
    end(worker);
  });
}

void Player::end(size_t worker) {
  Runner& runner = workers_[worker];
  ++all_steps_;
  if (world_.counting) {
    ++runner.counted;
    runner.ended = world_.events.now();
  } else if (all_steps_ >= workers_.size() * static_cast<uint64_t>(std::max(3, steps_ / 4)) &&
             world_.events.now() >= kPeriodsBefore * longest_period_) {
    start_counting();
  }
  if (!over()) start(worker);
}

std::unique_ptr<ExchangeModel> exchange_of(World& world) {
  if (world.training.strategy == Strategy::servers) return make_servers(world);
  return world.training.strategy == Strategy::all_reduce ? make_all_reduce(world) : make_local(world);
}

/// Divides the sums of a worker's times by its steps, and adds evaluations and checkpoints, which are the chief's; in
/// step, the others wait for it.
void settle_times(const Training& training, bool in_step, const Player& player, Prediction& prediction) {
  for (size_t i = 0; i < prediction.workers.size(); ++i) {
    WorkerTimes& times = prediction.workers[i];
    const double steps = std::max(1.0, player.counted(i));
    for (double WorkerTimes::*part :
         {&WorkerTimes::data, &WorkerTimes::forward, &WorkerTimes::backward, &WorkerTimes::optimizer,
          &WorkerTimes::push, &WorkerTimes::pull, &WorkerTimes::transfer, &WorkerTimes::others, &WorkerTimes::rest,
          &WorkerTimes::messages}) {
      times.*part /= steps;
    }
    if (i == 0) {
      times.evaluation = training.evaluation;
      times.checkpoint = training.checkpoint;
    } else if (in_step) {
      times.others += training.evaluation + training.checkpoint;
    }
  }
}

void settle_speed(const Training& training, bool in_step, const Player& player, const ExchangeTotals& totals,
                  double now, Prediction& prediction) {
  const double aside = training.evaluation + training.checkpoint;
  const double offered = totals.offered - player.before().offered;
  const double dropped = totals.dropped - player.before().dropped;
  prediction.dropped = offered > 0 ? dropped / offered : 0;
  prediction.staleness = (totals.staleness - player.before().staleness) / std::max(1.0, offered - dropped);
  const auto workers = static_cast<double>(training.workers.size());
  if (in_step) {
    const double updates = std::max(1.0, totals.updates - player.before().updates);
    const double needed = training.aggregate > 0 ? training.aggregate : workers;
    prediction.step = (now - player.began()) / updates + aside;
    prediction.updates_per_second = 1 / prediction.step;
    prediction.examples_per_second = prediction.updates_per_second * needed * training.batch;
    return;
  }
  for (size_t i = 0; i < training.workers.size(); ++i) {
    const double step = player.seconds(i) / std::max(1.0, player.counted(i)) + (i == 0 ? aside : 0);
    prediction.step += step / workers;
    prediction.updates_per_second += step > 0 ? 1 / step : 0;
  }
  prediction.examples_per_second = prediction.updates_per_second * training.batch;
}

void settle_nodes(World& world, Prediction& prediction) {
  const double now = std::max(world.events.now(), 1e-12);
  for (size_t i = 0; i < world.training.nodes.size(); ++i) {
    const Node& node = world.training.nodes[i];
    NodeLoad load;
    load.cpu = world.cpus[i].used() / now / node.cores;
    load.paused = world.cpus[i].paused() / now;
    load.in = world.network.received(i) / now;
    load.out = world.network.sent(i) / now;
    if (node.link.rate < kUnlimited) load.link = std::max(load.in, load.out) * node.link.overhead / node.link.rate;
    prediction.nodes.push_back(load);
  }
  for (const double seconds : world.server_cpu) prediction.servers.push_back(seconds / now);
}

/// Returns the bytes that a worker sends in a step.
double sent_bytes(const Training& training, const ExchangeModel& exchange) {
  double sent = 0;
  for (const StepPart& part : exchange.parts()) {
    for (const double bytes : part.bytes) {
      const bool sums = training.strategy == Strategy::all_reduce;
      sent +=
          sums ? schedule::all_reduce_volume(static_cast<size_t>(bytes), training.workers.size(), false).sent : bytes;
    }
  }
  return sent;
}

/// More gradients than workers for an update: every worker computes several batches for it.
Training with_rounds(Training training) {
  const auto workers = static_cast<int>(training.workers.size());
  if (!training.sync || training.aggregate <= workers) return training;
  const double rounds = std::ceil(static_cast<double>(training.aggregate) / workers);
  for (Worker& worker : training.workers) {
    worker.work.load *= rounds;
    worker.work.forward *= rounds;
    worker.work.backward *= rounds;
  }
  return training;
}

}  // namespace

WorkerTimes Prediction::mean() const {
  WorkerTimes sum;
  const auto count = static_cast<double>(std::max<size_t>(workers.size(), 1));
  for (const WorkerTimes& times : workers) {
    for (double WorkerTimes::*part :
         {&WorkerTimes::data, &WorkerTimes::forward, &WorkerTimes::backward, &WorkerTimes::optimizer,
          &WorkerTimes::push, &WorkerTimes::pull, &WorkerTimes::transfer, &WorkerTimes::others,
          &WorkerTimes::evaluation, &WorkerTimes::checkpoint, &WorkerTimes::rest, &WorkerTimes::messages}) {
      sum.*part += times.*part / count;
    }
  }
  return sum;
}

Prediction simulate(const Training& asked, const SimulationOptions& options) {
  check(asked);
  const Training training = with_rounds(asked);
  Prediction prediction;
  World world(training);
  if (options.spans) world.spans = &prediction.spans;
  const std::unique_ptr<ExchangeModel> exchange = exchange_of(world);
  Player player(world, *exchange, std::max(options.steps, 3));
  player.play();
  const bool in_step =
      training.strategy == Strategy::all_reduce || (training.strategy == Strategy::servers && training.sync);
  prediction.workers = std::move(world.times);
  settle_times(training, in_step, player, prediction);
  settle_speed(training, in_step, player, exchange->totals(), world.events.now(), prediction);
  settle_nodes(world, prediction);
  prediction.sent = sent_bytes(training, *exchange);
  prediction.events = world.events.happened();
  return prediction;
}

}  // namespace lockstep::predict
