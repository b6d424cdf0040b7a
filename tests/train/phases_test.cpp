// Times of steps per phase, as hooks see them.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "exchange/local_exchange.h"
#include "support.h"

namespace lockstep::train {
namespace {

using testing::Flags;
using testing::small_data;
using testing::Training;

constexpr double kRounding = 1e-6;

double all(const PhaseSeconds& phases) { return std::accumulate(phases.begin(), phases.end(), 0.0); }
double of(const StepEvent& step, Phase phase) { return step.phases[static_cast<size_t>(phase)]; }

/// Records when it is called for a step, and can be slow.
class Watch : public Hooks {
 public:
  void on_step(const StepEvent& event) override {
    told.push_back(event.clock->seconds());
    steps.push_back(event);
    std::this_thread::sleep_for(pause);
    left.push_back(event.clock->seconds());
  }
  void on_eval(const EvalEvent& /*event*/) override {
    const RunClock clock;
    std::this_thread::sleep_for(evaluation);
    evaluations.push_back(clock.seconds());
  }

  std::chrono::milliseconds pause{0};
  std::chrono::milliseconds evaluation{0};
  std::vector<double> told;
  std::vector<double> left;         ///< when it returned from each step
  std::vector<double> evaluations;  ///< how long it took at evaluations
  std::vector<StepEvent> steps;
};

struct Watched {
  explicit Watched(const Flags& more) : training(flags(more), small_data(1000)) {}

  static Flags flags(const Flags& more) {
    Flags flags{{"model", "lr"}, {"lr", "0.1"}, {"batch", "64"}, {"epochs", "2"}};
    for (const auto& [name, text] : more) flags[name] = text;
    return flags;
  }
  void run(exchange::Exchange* exchange = nullptr) {
    Parts parts = training.setup.parts();
    parts.hooks = {&watch};
    if (exchange != nullptr) parts.exchange = exchange;
    Trainer trainer(parts, training.setup.trainer_options(), training.setup.state());
    const RunClock clock;
    trainer.run(clock);
    end = trainer.phases_since();
  }

  Training training;
  Watch watch;
  PhaseSeconds end = {};
};

TEST(Phases, AddUpToTheTimeBetweenTheEndsOfSteps) {
  for (const char* accumulate : {"1", "3"}) {
    Watched watched({{"accumulate", accumulate}, {"eval-every", "7"}});
    watched.run();
    const auto& [steps, told] = std::pair(watched.watch.steps, watched.watch.told);
    ASSERT_GT(steps.size(), 8U);
    // A step ends before its hooks are called, and after the hooks of the previous step.
    double since_first = 0;
    double since_second = 0;
    for (size_t i = 1; i < steps.size(); ++i) {
      for (const double seconds : steps[i].phases) EXPECT_GE(seconds, 0.0);
      since_first += all(steps[i].phases);
      if (i > 1) since_second += all(steps[i].phases);
      EXPECT_GE(since_first + kRounding, told[i - 1] - told[0]);
      EXPECT_LE(since_second, told[i] - told[0] + kRounding);
    }
    EXPECT_GT(watched.end[static_cast<size_t>(Phase::evaluation)], 0.0) << "the last evaluation";
  }
}

TEST(Phases, OfOneProcessAreItsOwn) {
  Watched watched(Flags{});
  watched.run();
  for (const StepEvent& step : watched.watch.steps) {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) EXPECT_GT(of(step, phase), 0.0);
    for (const Phase phase : {Phase::push, Phase::pull, Phase::transfer, Phase::others, Phase::checkpoint}) {
      EXPECT_EQ(of(step, phase), 0.0) << text(phase);
    }
  }
}

TEST(Phases, ASlowHookIsTheRestOfTheNextStep) {
  Watched watched({{"epochs", "1"}, {"eval-every", "0"}});
  watched.watch.pause = std::chrono::milliseconds(20);
  watched.run();
  for (size_t i = 1; i < watched.watch.steps.size(); ++i) {
    const double hook = watched.watch.left[i - 1] - watched.watch.told[i - 1];
    EXPECT_GE(of(watched.watch.steps[i], Phase::rest) + kRounding, hook);
  }
}

TEST(Phases, AnEvaluationBelongsToTheStepAfterIt) {
  Watched watched(Flags{{"eval-every", "5"}});
  watched.watch.evaluation = std::chrono::milliseconds(50);
  watched.run();
  EXPECT_EQ(of(watched.watch.steps[4], Phase::evaluation), 0.0);
  EXPECT_GE(of(watched.watch.steps[5], Phase::evaluation) + kRounding, watched.watch.evaluations[0]);
  EXPECT_EQ(of(watched.watch.steps[6], Phase::evaluation), 0.0);
}

/// Drops every other gradient, and reports a wait for it.
class Dropping final : public exchange::Exchange {
 public:
  explicit Dropping(exchange::Exchange& other) : other_(other) {}
  void begin(const exchange::StepStart& start) override { other_.begin(start); }
  void ready(program::ParameterRange range, exchange::Event event) override { other_.ready(range, event); }
  base::Result<exchange::StepInfo> finish(const exchange::BatchReport& report) override {
    drops_ = !drops_;
    if (!drops_) return other_.finish(report);
    const RunClock clock;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    exchange::StepInfo info;
    info.step = step_++;
    info.outcome = exchange::StepOutcome::retry;
    info.spent.others = clock.seconds();
    waited.push_back(info.spent.others);
    return info;
  }
  [[nodiscard]] std::vector<std::string> slot_names() const override { return other_.slot_names(); }
  base::Result<exchange::Snapshot> snapshot() override { return other_.snapshot(); }

  std::vector<double> waited;

 private:
  exchange::Exchange& other_;
  uint64_t step_ = 0;
  bool drops_ = false;
};

TEST(Phases, WhatADroppedStepTookIsInTheNext) {
  Watched watched({{"epochs", "1"}, {"eval-every", "0"}});
  Dropping dropping(*watched.training.setup.parts().exchange);
  watched.run(&dropping);
  ASSERT_GT(watched.watch.steps.size(), 3U);
  ASSERT_GE(dropping.waited.size(), watched.watch.steps.size());
  for (size_t i = 0; i < watched.watch.steps.size(); ++i) {
    EXPECT_NEAR(of(watched.watch.steps[i], Phase::others), dropping.waited[i], kRounding);
    EXPECT_GT(of(watched.watch.steps[i], Phase::optimizer), 0.0);
  }
}

}  // namespace
}  // namespace lockstep::train
