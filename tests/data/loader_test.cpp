#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns examples that show their number: label i, and pixels derived from it.
Examples numbered(int64_t count, ImageShape shape = {1, 3, 5}) {
  Examples examples;
  examples.shape = shape;
  examples.classes = static_cast<int>(count);
  for (int64_t i = 0; i < count; ++i) {
    examples.labels.push_back(static_cast<int32_t>(i));
    for (size_t p = 0; p < shape.size(); ++p) {
      examples.bytes.push_back(static_cast<uint8_t>(static_cast<size_t>(i) * 7 + p));
    }
  }
  return examples;
}

std::vector<int32_t> labels_of(const Batch& batch) { return {batch.labels, batch.labels + batch.count}; }

/// Returns the labels of the next `count` batches, or of all batches up to the end.
std::vector<std::vector<int32_t>> read(Loader& loader, int64_t count = -1) {
  std::vector<std::vector<int32_t>> batches;
  while (count-- != 0) {
    const Batch* batch = loader.next();
    if (batch == nullptr) break;
    batches.push_back(labels_of(*batch));
  }
  return batches;
}

std::vector<int32_t> flat(const std::vector<std::vector<int32_t>>& batches) {
  std::vector<int32_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

std::vector<int32_t> counting(int32_t count) {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

TEST(Loader, GivesScaledImagesWithTheirLabels) {
  const Examples examples = numbered(100);
  Loader loader(examples, {.batch = 8});
  int64_t seen = 0;
  while (const Batch* batch = loader.next()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch->images) % 64, 0U);
    for (int64_t i = 0; i < batch->count; ++i) {
      const auto label = static_cast<size_t>(batch->labels[i]);
      for (size_t p = 0; p < 15; ++p) {
        ASSERT_FLOAT_EQ(batch->images[static_cast<size_t>(i) * 15 + p],
                        static_cast<float>(examples.bytes[label * 15 + p]) / 255.0F);
      }
    }
    seen += batch->count;
  }
  EXPECT_EQ(seen, 100);
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(Loader, RepeatedExamplesAreSeenAsOftenAsTheyCount) {
  Examples examples = numbered(10);
  rescale(examples, 2.5);
  Loader loader(examples, {.batch = 4});
  std::vector<int> seen(10);
  while (const Batch* batch = loader.next()) {
    for (int64_t i = 0; i < batch->count; ++i) {
      const auto label = static_cast<size_t>(batch->labels[i]);
      ++seen[label];
      ASSERT_FLOAT_EQ(batch->images[static_cast<size_t>(i) * 15 + 3],
                      static_cast<float>(examples.bytes[label * 15 + 3]) / 255.0F);
    }
  }
  EXPECT_THAT(seen, ElementsAre(3, 3, 3, 3, 3, 2, 2, 2, 2, 2));
}

TEST(Loader, TakesFloatsAsTheyAre) {
  Examples examples = numbered(10, {1, 1, 2});
  examples.floats.assign(examples.bytes.begin(), examples.bytes.end());
  examples.bytes.clear();
  Loader loader(examples, LoaderOptions::evaluation(10));
  const Batch* batch = loader.next();
  EXPECT_EQ(std::vector<float>(batch->images, batch->images + 20), examples.floats);
}

TEST(Loader, WorksWithoutLabels) {
  Examples examples = numbered(10);
  examples.labels.clear();
  Loader loader(examples, LoaderOptions::evaluation(4));
  EXPECT_EQ(loader.next()->labels, nullptr);
}

TEST(Loader, EvaluationReadsInOrderOnceWithAShortLastBatch) {
  const Examples examples = numbered(10);
  Loader loader(examples, LoaderOptions::evaluation(4));
  EXPECT_THAT(read(loader), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9)));
}

TEST(Loader, EvaluationCutsABatchLargerThanTheData) {
  const Examples examples = numbered(10);
  Loader loader(examples, LoaderOptions::evaluation(1000));
  EXPECT_EQ(flat(read(loader)), counting(10));
}

TEST(Loader, EveryPassHasEveryExampleOnceInItsOwnOrder) {
  const Examples examples = numbered(1000);
  for (const int64_t batch : {1, 7, 64, 1000}) {
    Loader loader(examples, {.batch = batch, .repeat = 3});
    std::vector<std::vector<int32_t>> passes;
    for (int pass = 0; pass < 3; ++pass) {
      passes.push_back(flat(read(loader, (1000 + batch - 1) / batch)));
      auto all = passes.back();
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, counting(1000));
    }
    EXPECT_EQ(loader.next(), nullptr);
    EXPECT_NE(passes[0], passes[1]);
    EXPECT_NE(passes[1], passes[2]);
  }
}

TEST(Loader, OrderDependsOnTheSeedNotOnTheBatch) {
  const Examples examples = numbered(500);
  const auto order = [&](uint64_t seed, int64_t batch) {
    Loader loader(examples, {.batch = batch, .seed = seed});
    return flat(read(loader));
  };
  EXPECT_EQ(order(1, 10), order(1, 10));
  EXPECT_EQ(order(1, 10), order(1, 64));
  EXPECT_NE(order(1, 10), order(2, 10));
}

TEST(Loader, ShardsTogetherMakeTheGlobalBatches) {
  const Examples examples = numbered(103);
  constexpr int kWorkers = 4;
  Loader whole(examples, {.batch = 5 * kWorkers, .repeat = 2});
  std::vector<std::unique_ptr<Loader>> shards;
  for (int i = 0; i < kWorkers; ++i) {
    shards.push_back(
        std::make_unique<Loader>(examples, LoaderOptions{.batch = 5, .shard = {i, kWorkers}, .repeat = 2}));
  }
  while (const Batch* all = whole.next()) {
    std::vector<int32_t> together;
    for (auto& shard : shards) {
      const Batch* part = shard->next();
      ASSERT_NE(part, nullptr);
      EXPECT_EQ(part->first_row, static_cast<int64_t>(together.size()));
      EXPECT_EQ(part->global_count, all->count);
      const auto labels = labels_of(*part);
      together.insert(together.end(), labels.begin(), labels.end());
    }
    EXPECT_EQ(together, labels_of(*all));
  }
  for (auto& shard : shards) EXPECT_EQ(shard->next(), nullptr);
}

TEST(Loader, EpochIsAPassUnlessStepsPerEpochSaysOtherwise) {
  const Examples examples = numbered(10);
  Loader passes(examples, {.batch = 4, .repeat = 2});
  std::vector<int64_t> epochs;
  std::vector<bool> last;
  while (const Batch* batch = passes.next()) {
    epochs.push_back(batch->epoch);
    last.push_back(batch->last_in_epoch);
  }
  EXPECT_THAT(epochs, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(last, ElementsAre(false, false, true, false, false, true));
}

TEST(Loader, StepsPerEpochGoesOnWhereTheStreamStopped) {
  const Examples examples = numbered(10);
  Loader plain(examples, {.batch = 4, .repeat = 3});
  Loader stepped(examples, {.batch = 4, .steps_per_epoch = 2, .repeat = 3});
  std::vector<int64_t> epochs;
  std::vector<int64_t> passes;
  std::vector<bool> last;
  while (const Batch* batch = stepped.next()) {
    EXPECT_EQ(labels_of(*batch), labels_of(*plain.next()));
    epochs.push_back(batch->epoch);
    passes.push_back(batch->pass);
    last.push_back(batch->last_in_epoch);
  }
  EXPECT_THAT(epochs, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4));
  EXPECT_THAT(passes, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(last, ElementsAre(false, true, false, true, false, true, false, true, false));
}

TEST(Loader, RepeatZeroGoesOnForEver) {
  const Examples examples = numbered(10);
  Loader loader(examples, {.batch = 3, .repeat = 0});
  EXPECT_EQ(read(loader, 5000).size(), 5000U);
}

TEST(Loader, ContinuesExactlyFromARemainder) {
  const Examples examples = numbered(100);
  for (const int64_t batch : {1, 7, 50}) {
    const LoaderOptions options{.batch = batch, .seed = 9, .steps_per_epoch = 5, .repeat = 4};
    Loader reference(examples, options);
    const auto all = read(reference);
    for (const size_t stop : {size_t{0}, size_t{1}, all.size() / 3, all.size() / 2, all.size() - 1, all.size()}) {
      Loader first(examples, options);
      read(first, static_cast<int64_t>(stop));
      LoaderOptions rest = options;
      rest.start = first.remainder();
      rest.rounds_done = static_cast<int64_t>(stop);
      Loader second(examples, rest);
      EXPECT_EQ(second.remainder(), first.remainder());
      const Batch* next = second.next();
      if (stop == all.size()) {
        EXPECT_EQ(next, nullptr);
        continue;
      }
      EXPECT_EQ(labels_of(*next), all[stop]);
      EXPECT_EQ(next->epoch, static_cast<int64_t>(stop) / 5);
      EXPECT_EQ(read(second), std::vector(all.begin() + static_cast<std::ptrdiff_t>(stop) + 1, all.end()));
    }
  }
}

TEST(Loader, RestartsAnywhereAnyTime) {
  const Examples examples = numbered(200);
  Loader loader(examples, {.batch = 3, .repeat = 2});
  const auto all = read(loader);
  for (int turn = 0; turn < 50; ++turn) {
    loader.restart();
    EXPECT_EQ(loader.remainder(), Remainder{});
    const int64_t some = turn % 7;
    EXPECT_EQ(read(loader, some), std::vector(all.begin(), all.begin() + some));
  }
  Plan later = loader.plan();
  later.data = remainder_after(1, 10, 3, 200);
  loader.restart(later);
  EXPECT_EQ(read(loader), std::vector(all.begin() + 67 + 10, all.end()));
}

TEST(Loader, GoesOverToPlansOfOtherMembersWithoutLossOrRepeat) {
  const Examples examples = numbered(1000);
  Plan plan{.batch = 16, .examples = 1000};
  std::vector<int32_t> seen;
  Loader loader(examples, {.batch = 16, .repeat = 2});
  for (const int members : {1, 3, 2, 5}) {
    plan.shard.count = members;
    ++plan.id;
    std::vector<int64_t> done;
    for (int member = 0; member < members; ++member) {
      plan.shard.index = member;
      loader.restart(plan);
      EXPECT_EQ(loader.plan(), plan);
      done.push_back(member + 5);
      for (const int32_t label : flat(read(loader, done.back()))) seen.push_back(label);
    }
    plan.data = unapplied(plan, done);
  }
  plan.shard = {};
  loader.restart(plan);
  for (const int32_t label : flat(read(loader))) seen.push_back(label);
  std::sort(seen.begin(), seen.end());
  std::vector<int32_t> twice;
  for (int32_t i = 0; i < 1000; ++i) twice.insert(twice.end(), 2, i);
  EXPECT_EQ(seen, twice);
}

TEST(Loader, ABatchOverSeveralRangesHasTheImagesOfItsLabels) {
  const Examples examples = numbered(100);
  Loader loader(examples, {.batch = 10, .shuffle = Shuffle::none()});
  Plan plan = loader.plan();
  plan.data = {{{0, {{3, 5}, {20, 26}, {40, 43}, {90, 100}}}}, 1};
  loader.restart(plan);
  EXPECT_THAT(labels_of(*loader.next()), ElementsAre(3, 4, 20, 21, 22, 23, 24, 25, 40, 41));
  const Batch* second = loader.next();
  EXPECT_THAT(labels_of(*second), ElementsAre(42, 90, 91, 92, 93, 94, 95, 96, 97, 98));
  for (size_t i = 0; i < 10; ++i) {
    const auto label = static_cast<size_t>(second->labels[i]);
    EXPECT_FLOAT_EQ(second->images[i * 15 + 2], static_cast<float>(examples.bytes[label * 15 + 2]) / 255.0F);
  }
  EXPECT_FALSE(second->last_in_epoch);
  EXPECT_EQ(loader.remainder(), (Remainder{{{0, {{99, 100}}}}, 1}));
  const Batch* third = loader.next();
  EXPECT_EQ(third->count, 1);
  EXPECT_EQ(third->round, 2);
  EXPECT_TRUE(third->last_in_epoch);
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(Loader, AMemberWithNothingInTheLastRoundStillSeesTheEpochEnd) {
  const Examples examples = numbered(9);
  Loader loader(examples, {.batch = 2, .shard = {3, 4}, .repeat = 1});
  EXPECT_EQ(loader.next()->count, 2);
  const Batch* last = loader.next();
  EXPECT_EQ(last->count, 0);
  EXPECT_EQ(last->global_count, 1);
  EXPECT_TRUE(last->last_in_epoch);
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(Loader, EpochsOfAFixedLengthCountOnOverPlans) {
  const Examples examples = numbered(50);
  Loader loader(examples, {.batch = 5, .steps_per_epoch = 4, .repeat = 0});
  Plan plan = loader.plan();
  plan.shard = {1, 2};
  plan.rounds_done = 6;
  loader.restart(plan);
  std::vector<bool> last;
  for (int i = 0; i < 7; ++i) {
    const Batch* batch = loader.next();
    EXPECT_EQ(batch->epoch, (6 + i) / 4);
    last.push_back(batch->last_in_epoch);
  }
  EXPECT_THAT(last, ElementsAre(false, true, false, false, false, true, false));
}

TEST(Loader, APlanMayHaveLargerBatches) {
  const Examples examples = numbered(1000, {1, 28, 28});
  Loader loader(examples, {.batch = 4, .shuffle = Shuffle::none()});
  read(loader, 3);
  Plan plan = loader.plan();
  for (const int64_t batch : {100, 7, 1000}) {
    plan.batch = batch;
    loader.restart(plan);
    int64_t at = 0;
    while (const Batch* given = loader.next()) {
      for (int64_t i = 0; i < given->count; ++i, ++at) {
        ASSERT_EQ(given->labels[i], at);
        ASSERT_FLOAT_EQ(given->images[i * 784], static_cast<float>((at * 7) % 256) / 255.0F);
      }
    }
    EXPECT_EQ(at, 1000);
  }
}

TEST(Loader, AStartBehindTheLastPassIsTheEnd) {
  const Examples examples = numbered(50);
  Loader loader(examples, {.batch = 5, .repeat = 2, .start = {{}, 7}});
  EXPECT_EQ(loader.next(), nullptr);
}

/// The stream has no end, so a loader that does not stop would block the test.
TEST(Loader, StopsAtAnyMoment) {
  const Examples examples = numbered(5000, {1, 28, 28});
  for (int turn = 0; turn < 50; ++turn) {
    Loader loader(examples, {.batch = 64, .repeat = 0});
    read(loader, turn % 5);
  }
}

TEST(Loader, KeepsBatchesValidWhileTheConsumerIsSlow) {
  const Examples examples = numbered(400, {1, 28, 28});
  Loader loader(examples, {.batch = 40, .depth = 1});
  while (const Batch* batch = loader.next()) {
    const auto labels = labels_of(*batch);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(labels_of(*batch), labels);
    for (int64_t i = 0; i < batch->count; ++i) {
      EXPECT_FLOAT_EQ(batch->images[i * 784], static_cast<float>((labels[static_cast<size_t>(i)] * 7) % 256) / 255.0F);
    }
  }
}

TEST(Loader, ErrorsOfTheThreadSurfaceInNext) {
  Examples examples = numbered(1000, {1, 28, 28});
  examples.labels[900] = 1000;
  Loader loader(examples, {.batch = 100, .shuffle = Shuffle::none()});
  for (int i = 0; i < 9; ++i) EXPECT_NE(loader.next(), nullptr);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(message_of<DataError>([&] { loader.next(); }),
              "label 1000 of example 900 is out of range; 0 to 999 are allowed");
  }
  loader.restart();
  EXPECT_NE(loader.next(), nullptr);
}

TEST(Loader, RefusesWhatMakesNoSense) {
  const Examples examples = numbered(100);
  const auto error = [&](const LoaderOptions& options) {
    return message_of<UsageError>([&] { Loader(examples, options); });
  };
  EXPECT_EQ(error({.batch = 101}), "batch 101 is larger than the data set of 100 examples");
  EXPECT_EQ(error({.batch = 0}), "batch 0; at least 1 is allowed");
  EXPECT_EQ(error({.steps_per_epoch = -1}), "steps_per_epoch -1; 0 or more is allowed");
  EXPECT_EQ(error({.repeat = -2}), "repeat -2; 0 or more is allowed");
  EXPECT_EQ(error({.depth = 0}), "depth 0; at least 1 is allowed");
  EXPECT_EQ(error({.shuffle = Shuffle::of_buffer(0)}), "a shuffle buffer of 0; at least 1 is allowed");
  EXPECT_EQ(error({.batch = 30, .shard = {0, 4}}),
            "batch 30 times 4 workers = 120 is larger than the data set of 100 examples");
  EXPECT_THAT(error({.start = {{{0, {{90, 101}}}}, 1}}), HasSubstr("positions 90 to 101 of pass 0"));
  Loader loader(examples, {.batch = 10});
  EXPECT_EQ(message_of<UsageError>([&] { loader.restart(Plan{.examples = 99}); }),
            "a plan for 99 examples, but there are 100");
  loader.restart(Plan{.shard = {0, 2}, .batch = 10, .examples = 100});
  EXPECT_EQ(message_of<UsageError>([&] { (void)loader.remainder(); }),
            "a loader of 2 members does not know the remaining data");
  EXPECT_THAT(message_of<UsageError>([] { Loader(Examples{}, {}); }), HasSubstr("the data set is empty"));
}

}  // namespace
}  // namespace lockstep::data
