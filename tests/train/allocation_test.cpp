// A separate program, because it counts every allocation of the process.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "allocation_counter.h"
#include "role/session.h"
#include "support.h"

namespace lockstep::train {
namespace {

using testing::Flags;
using testing::TempDir;

/// Counts from the end of the first epoch (all batch sizes seen) to the last step.
class Counter : public Hooks {
 public:
  Counter(uint64_t first, uint64_t last) : first_(first), last_(last) {}

  void on_step(const StepEvent& event) override {
    if (event.step == first_) testing_support::start_counting();
    if (event.step == last_) counted = testing_support::stop_counting();
  }

  testing_support::Allocations counted{1, 1};

 private:
  uint64_t first_;
  uint64_t last_;
};

size_t count(const Flags& more) {
  // Ten steps per epoch. One epoch's end lies within the counted part, but evaluation and checkpoints do not. The
  // monitor is off, because it samples at its own times, and allocates.
  const TempDir dir;
  Request request;
  request.settings = {{"dataset", "synthetic"}, {"train-limit", "600"}, {"test-limit", "100"},
                      {"batch", "64"},          {"epochs", "3"},        {"log-every", "1"},
                      {"threads", "2"},         {"monitor-every", "0"}, {"runs-dir", dir / "runs"}};
  for (const auto& [name, text] : more) request.settings[name] = text;
  Counter counter(11, 20);
  request.hooks = {&counter};
  train(request);
  return counter.counted.ours;
}

TEST(Allocation, AStepMakesNoneAfterEachBatchSizeWasSeen) {
  EXPECT_EQ(count({{"model", "lr"}}), 0U);
  EXPECT_EQ(count({{"model", "lr"}, {"optimizer", "adam"}, {"clip-norm", "1"}, {"schedule", "cosine"}}), 0U);
  EXPECT_EQ(count({{"model", "lr"}, {"batch", "16"}, {"accumulate", "4"}, {"optimizer", "momentum"}}), 0U);
  EXPECT_EQ(count({{"model", "lenet"}}), 0U);
  EXPECT_EQ(count({{"model", "lenet"}, {"threads", "1"}}), 0U);
}

/// Records the threads of this process after the first steps, and those still present at the last one.
class Threads : public Hooks {
 public:
  void on_step(const StepEvent& event) override {
    if (event.step == 3) first = now();
    if (event.step > 3) last = now();
  }

  std::set<std::string> first;
  std::set<std::string> last;

 private:
  static std::set<std::string> now() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
};

TEST(Threads, AreNotCreatedByStepsWhateverTheSizesOfTheirLoops) {
  const TempDir dir;
  Request request;
  request.settings = {{"model", "lenet"},        {"dataset", "synthetic"}, {"train-limit", "640"},
                      {"test-limit", "100"},     {"batch", "64"},          {"steps", "8"},
                      {"threads", "4"},          {"monitor-every", "0"},   {"optimizer", "adam"},
                      {"runs-dir", dir / "runs"}};
  Threads threads;
  request.hooks = {&threads};
  train(request);
  EXPECT_GE(threads.first.size(), 4U);
  EXPECT_EQ(threads.last, threads.first);
}

TEST(Allocation, RepeatedEvaluationsMakeNone) {
  testing::Training training({{"model", "lr"}, {"batch", "64"}, {"epochs", "1"}, {"eval-batch", "30"}});
  Evaluator& evaluator = *training.setup.parts().evaluator;
  evaluator.run();
  testing_support::start_counting();
  evaluator.run();
  evaluator.run();
  EXPECT_EQ(testing_support::stop_counting().ours, 0U);
}

}  // namespace
}  // namespace lockstep::train
