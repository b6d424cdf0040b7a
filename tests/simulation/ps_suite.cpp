#include "simulation/ps_suite.h"

#include <fmt/format.h>

namespace lockstep::simulation {
namespace {

constexpr double kHealing = 150;  ///< seconds after the last fault within which training must end

void choose_rules(Random& random, PsOptions& options) {
  ps::CoordinatorOptions& rules = options.rules;
  rules.sync = random.chance(0.5);
  rules.batch = 4;
  rules.examples = 20 + static_cast<int64_t>(random.below(60));
  rules.passes = 1 + static_cast<int64_t>(random.below(2));
  rules.start_wait = 5;
  rules.record = true;
  if (random.chance(0.2)) rules.limit_steps = 5 + random.below(15);
  if (rules.limit_steps > 0 && random.chance(0.5)) rules.passes = 0;
  if (rules.sync && random.chance(0.3)) rules.aggregate = 1 + static_cast<int64_t>(random.below(4));
  if (!rules.sync && random.chance(0.3)) rules.max_staleness = static_cast<int64_t>(random.below(3));
  if (random.chance(0.1)) rules.accumulate = 2;
  options.lock_free = !rules.sync && random.chance(0.25);
}

void choose_kind(OldFault fault, PsOptions& options) {
  ps::CoordinatorOptions& rules = options.rules;
  options.fault = fault;
  if (fault == OldFault::none) return;
  if (fault == OldFault::followers_do_not_ask || fault == OldFault::silence_unnoticed) {
    options.servers = std::max(options.servers, 2);
  }
  if (fault == OldFault::followers_do_not_ask || fault == OldFault::books_after_applying) {
    rules.sync = false;
    rules.aggregate = 0;
    options.lock_free = fault == OldFault::books_after_applying;
  }
  if (fault == OldFault::waits_for_room_locked) {
    rules.sync = options.lock_free = false;
    rules.aggregate = 0;
    options.servers = 1;
    options.workers = 6;
    options.read_seconds = 0.3;
    options.batch_seconds = 0.1;
    rules.passes = 4;
    rules.limit_steps = 0;
    rules.max_staleness = -1;
  }
  if (fault == OldFault::two_with_one_name) options.twin = true;
}

PsOptions options_of(OldFault fault, uint64_t seed) {
  Random random(seed * 2 + 1);
  PsOptions options;
  options.workers = 1 + static_cast<int>(random.below(random.chance(0.1) ? 6 : 3));
  options.servers = 1 + static_cast<int>(random.below(3));
  options.evaluator = random.chance(0.3);
  options.goal = options.evaluator && random.chance(0.3);
  options.twin = options.workers > 1 && random.chance(0.1);
  const size_t durability = random.below(10);
  options.durability = durability < 6   ? ps::Durability::process
                       : durability < 8 ? ps::Durability::machine
                                        : ps::Durability::checkpoint;
  options.batch_seconds = random.between(0.05, 0.8);
  if (random.chance(0.2)) options.read_seconds = random.between(0.01, 0.3);
  options.checkpoint_every = 3 + random.below(12);
  choose_rules(random, options);
  choose_kind(fault, options);
  if (options.twin) options.workers = std::max(options.workers, 2);
  return options;
}

int processes_of(const PsOptions& options) { return options.servers + options.workers + (options.evaluator ? 1 : 0); }

std::string text_of(const PsOptions& options) {
  const ps::CoordinatorOptions& rules = options.rules;
  const std::string mode = rules.sync          ? fmt::format("sync, {} per update", rules.aggregate)
                           : options.lock_free ? "async without locks"
                                               : fmt::format("async, staleness {}", rules.max_staleness);
  return fmt::format(
      "{} workers, {} servers{}{}{}; {}; durability {}; {} examples, {} passes, {} steps at most; {} batches per "
      "push of {:.3f} s; checkpoints every {} steps",
      options.workers, options.servers, options.evaluator ? ", evaluator" : "", options.goal ? " with a goal" : "",
      options.twin ? ", a second worker:1" : "", mode, static_cast<int>(options.durability), rules.examples,
      rules.passes, rules.limit_steps, rules.accumulate, options.batch_seconds, options.checkpoint_every);
}

std::vector<Fault> faults_of(const PsOptions& options, uint64_t seed) {
  Random random(seed * 2);
  if (options.fault == OldFault::waits_for_room_locked) {
    // A full disk, while stopped workers still read earlier parameters.
    FaultMix mix{.kill = 0, .stop = 1, .cut = 0, .cut_one_way = 0, .half_open = 0, .reset = 0};
    mix.until = 3;
    std::vector<Fault> faults = plan_faults(random, mix, 3, processes_of(options), processes_of(options));
    faults.insert(faults.begin(), {FaultKind::disk_full, 0.08, 20, 0, 0});
    return faults;
  }
  FaultMix mix;
  mix.until = 12;
  mix.longest = 9;
  mix.power_cut = 0.5;
  mix.disk_full = 1;
  mix.disk_slow = 0.5;
  return plan_faults(random, mix, random.below(9), processes_of(options), processes_of(options));
}

PsOptions exact_options_of(uint64_t seed) {
  PsOptions options = options_of(OldFault::none, seed);
  options.exact = true;
  options.evaluator = options.goal = options.twin = false;
  options.workers = std::max(options.workers, 2);
  options.batch_seconds = std::min(options.batch_seconds, 0.3);
  ps::CoordinatorOptions& rules = options.rules;
  rules.sync = true;
  rules.aggregate = 0;
  rules.max_staleness = -1;
  rules.start_wait = 60;
  rules.examples += 100;
  options.lock_free = false;
  return options;
}

/// Several kills within a second or two: each may come while workers come back after the one before.
std::vector<Fault> kills_of_servers(const PsOptions& options, uint64_t seed) {
  Random random(seed * 2);
  FaultMix mix{.kill = 1, .stop = 0, .cut = 0, .cut_one_way = 0, .half_open = 0, .reset = 0};
  mix.until = 3;
  mix.longest = 1.5;
  return plan_faults(random, mix, 1 + random.below(6), options.servers, options.servers);
}

/// Connections that break alone, data or control, and some kills.
std::vector<Fault> lonely_breaks(const PsOptions& options, uint64_t seed) {
  Random random(seed * 2);
  FaultMix mix{.kill = 1, .stop = 0, .cut = 0, .cut_one_way = 0, .half_open = 0, .reset = 0};
  mix.half_open_one = 4;
  mix.reset_one = 2;
  mix.until = 8;
  mix.longest = 3;
  return plan_faults(random, mix, 1 + random.below(6), processes_of(options), processes_of(options));
}

class History {
 public:
  History(const PsOptions& options, uint64_t seed, bool record)
      : options_(options), world_(seed, record), cluster_(world_, options_) {
    const auto machine = [this](const std::string& name) { return world_.add_machine("machine of " + name); };
    for (int i = 0; i < options_.servers; ++i) {
      const std::string name = fmt::format("ps:{}", i);
      world_.add_process(name, machine(name), [this, i](World&, Process me) { return make_server(cluster_, me, i); });
    }
    for (int i = 0; i < options_.workers; ++i) {
      const std::string name = fmt::format("worker:{}", i);
      world_.add_process(name, machine(name), [this, i](World&, Process me) { return make_worker(cluster_, me, i); });
    }
    if (options_.evaluator) {
      world_.add_process("evaluator:0", machine("evaluator:0"),
                         [this](World&, Process me) { return make_evaluator(cluster_, me); });
    }
    if (options_.twin) {
      world_.add_process("another worker:1", machine("another worker:1"),
                         [this](World&, Process me) { return std::make_unique<Late>(cluster_, me); });
    }
  }

  Played play(const std::vector<Fault>& faults) {
    world_.introduce([this] { return text_of(options_); });
    world_.schedule(faults);
    const double limit = world_.healed_at() + kHealing;
    const bool over = world_.run([this] { return is_over(); }, limit);
    if (!over && world_.failure().empty()) {
      std::string here;
      for (Process p = 0; p < processes_of(options_); ++p) {
        if (!cluster_.left.contains(p)) here += (here.empty() ? "" : ", ") + world_.name(p);
      }
      world_.fail(fmt::format("training has not ended {:.0f} s after the last fault; {} are here", kHealing, here));
    }
    if (over) cluster_.truth.finish();
    return played(world_);
  }

 private:
  /// Becomes a worker after a while.
  class Late final : public Actor {
   public:
    Late(PsCluster& cluster, Process me) : cluster_(cluster), me_(me) {}
    void start() override {
      cluster_.world.after(me_, 2, [this] {
        worker_ = make_worker(cluster_, me_, 1);
        worker_->start();
      });
    }
    void connected(Link link) override { worker_->connected(link); }
    void received(Link link, const std::any& message) override { worker_->received(link, message); }
    void closed(Link link, const std::string& why) override { worker_->closed(link, why); }

   private:
    PsCluster& cluster_;
    Process me_;
    std::unique_ptr<Actor> worker_;
  };

  [[nodiscard]] bool is_over() const {
    return cluster_.left.size() >= static_cast<size_t>(processes_of(options_) + (options_.twin ? 1 : 0));
  }

  PsOptions options_;
  World world_;
  PsCluster cluster_;
};

}  // namespace

Suite exact_ps_suite() {
  Suite suite;
  suite.name = "exact parameter servers";
  suite.plan = [](uint64_t seed) { return kills_of_servers(exact_options_of(seed), seed); };
  suite.play = [](uint64_t seed, const std::vector<Fault>& faults, bool record) {
    return History(exact_options_of(seed), seed, record).play(faults);
  };
  return suite;
}

Suite lonely_ps_suite() {
  Suite suite;
  suite.name = "parameter servers whose connections break one by one";
  suite.plan = [](uint64_t seed) { return lonely_breaks(options_of(OldFault::none, seed), seed); };
  suite.play = [](uint64_t seed, const std::vector<Fault>& faults, bool record) {
    return History(options_of(OldFault::none, seed), seed, record).play(faults);
  };
  return suite;
}

Suite ps_suite(OldFault fault) {
  Suite suite;
  suite.name = "parameter servers";
  suite.plan = [fault](uint64_t seed) { return faults_of(options_of(fault, seed), seed); };
  suite.play = [fault](uint64_t seed, const std::vector<Fault>& faults, bool record) {
    return History(options_of(fault, seed), seed, record).play(faults);
  };
  return suite;
}

}  // namespace lockstep::simulation
