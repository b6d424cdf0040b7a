#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/temp_dir.h"
#include "lockstep/error.h"
#include "ps/parameter_shard.h"
#include "ps/shard_support.h"

namespace lockstep::ps {
namespace {

using lockstep::testing::message_of;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::numbered_update;
using testing::numbered_values;
using testing::same_bits;
using testing::settings_of;
using testing::text_of;
using testing::Undisturbed;

const auto kMethods = {optim::Method::sgd, optim::Method::momentum, optim::Method::adam};

ParameterShardOptions memory_options(size_t count, optim::Method method = optim::Method::sgd, int threads = 1) {
  ParameterShardOptions options;
  options.optimizer = settings_of(method);
  options.parameters = count;
  options.durability = Durability::checkpoint;
  options.threads = threads;
  return options;
}

void start(ParameterShard& shard, size_t count) { shard.initialise(0, numbered_values(1000000, count), {}, {}); }

View apply_numbered(ParameterShard& shard, uint64_t number, size_t count) {
  const auto gradient = numbered_values(number, count);
  const Contribution one{gradient};
  return shard.apply({&one, 1}, 1, numbered_update(number), bytes_of("update " + std::to_string(number)));
}

TEST(ParameterShard, UpdatesEqualTheOptimizersBitForBit) {
  for (const auto method : kMethods) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{17}, size_t{16384}, size_t{100001}}) {
      for (const int threads : {1, 3}) {
        ParameterShard shard(memory_options(count, method, threads));
        start(shard, count);
        for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(apply_numbered(shard, i, count).version, i + 1);
        Undisturbed expected(settings_of(method), count);
        expected.advance_to(4);
        EXPECT_TRUE(expected.equals(shard.current())) << optim::name(method) << ' ' << count << ' ' << threads;
      }
    }
  }
}

/// Sums as Trainer::accumulated_step sums micro-batches.
std::vector<float> accumulated(std::span<const Contribution> parts, float mean_scale) {
  std::vector<float> sum(parts[0].gradient.begin(), parts[0].gradient.end());
  for (size_t i = 1; i < parts.size(); ++i) {
    optim::add_weighted(parts[i].weight, i + 1 == parts.size() ? mean_scale : 1.0F, parts[i].gradient.data(),
                        sum.data(), sum.size(), 2);
  }
  return sum;
}

TEST(ParameterShard, ContributionsEqualTheTrainersAccumulationBitForBit) {
  constexpr size_t kCount = 70003;
  for (const size_t contributors : {1U, 2U, 3U, 5U}) {
    for (const bool clip : {false, true}) {
      std::vector<std::vector<float>> gradients;
      std::vector<Contribution> parts;
      for (size_t i = 0; i < contributors; ++i) gradients.push_back(numbered_values(i + 7, kCount));
      for (size_t i = 0; i < contributors; ++i) parts.push_back({gradients[i], i == 0 ? 1.0F : 0.3F * float(i)});
      const float scale = contributors == 1 ? 1.0F : 0.37F;
      const auto sum = accumulated(parts, scale);

      ParameterShard shard(memory_options(kCount, optim::Method::adam, 2));
      start(shard, kCount);
      if (clip) {
        EXPECT_EQ(shard.sum_of_squares(parts, scale), optim::sum_of_squares(sum, 1));
      }
      shard.apply(parts, scale, numbered_update(0), {});
      Undisturbed expected(settings_of(optim::Method::adam), kCount);
      expected.apply(sum, numbered_update(0));
      EXPECT_TRUE(expected.equals(shard.current())) << contributors << " contributors, clip " << clip;
    }
  }
}

TEST(ParameterShard, ASumMadeForClippingIsNotUsedForOtherContributions) {
  constexpr size_t kCount = 100;
  const auto a = numbered_values(1, kCount);
  const auto b = numbered_values(2, kCount);
  const auto c = numbered_values(3, kCount);
  const std::vector<Contribution> first{{a}, {b}};
  const std::vector<Contribution> second{{a}, {c}};
  ParameterShard shard(memory_options(kCount));
  start(shard, kCount);
  shard.sum_of_squares(first, 0.5F);
  shard.apply(second, 0.5F, numbered_update(0), {});
  Undisturbed expected(settings_of(optim::Method::sgd), kCount);
  expected.apply(accumulated(second, 0.5F), numbered_update(0));
  EXPECT_TRUE(expected.equals(shard.current()));
}

TEST(ParameterShard, ViewsKeepTheirVersionWhileAHundredUpdatesPass) {
  constexpr size_t kCount = 5000;
  ParameterShard shard(memory_options(kCount, optim::Method::momentum));
  start(shard, kCount);
  std::vector<View> views{shard.current()};
  for (uint64_t i = 0; i < 100; ++i) {
    const View made = apply_numbered(shard, i, kCount);
    if (i % 10 == 0) views.push_back(made);
  }
  Undisturbed expected(settings_of(optim::Method::momentum), kCount);
  for (const View& view : views) {
    expected.advance_to(view.version);
    EXPECT_TRUE(expected.equals(view)) << "version " << view.version;
    EXPECT_EQ(text_of(view.ledger), view.version == 0 ? "" : "update " + std::to_string(view.version - 1));
  }
  EXPECT_EQ(shard.current().version, 100U);
}

TEST(ParameterShard, BuffersAreUsedAgainWhenNobodyHoldsThem) {
  ParameterShard shard(memory_options(1000));
  start(shard, 1000);
  std::vector<const float*> seen;
  for (uint64_t i = 0; i < 50; ++i) {
    const View made = apply_numbered(shard, i, 1000);
    if (std::ranges::find(seen, made.parameters.data()) == seen.end()) seen.push_back(made.parameters.data());
  }
  EXPECT_LE(seen.size(), 3U);
}

TEST(ParameterShard, AViewOutlivesItsShard) {
  View view;
  {
    ParameterShard shard(memory_options(100));
    start(shard, 100);
    view = shard.current();
  }
  EXPECT_TRUE(same_bits(view.parameters, numbered_values(1000000, 100)));
}

TEST(ParameterShard, ReadersSeeWholeVersionsWhileUpdatesGoOn) {
  constexpr size_t kCount = 3000;
  ParameterShard shard(memory_options(kCount));
  shard.initialise(0, std::vector<float>(kCount, 0.0F), {}, {});
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const View view = shard.current();
        for (const float value : view.parameters) torn += value != view.parameters[0] ? 1 : 0;
      }
    });
  }
  const std::vector<float> gradient(kCount, 1.0F);
  const Contribution one{gradient};
  for (uint64_t i = 0; i < 500; ++i) shard.apply({&one, 1}, 1, numbered_update(i), {});
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
}

TEST(ParameterShard, LockFreeUpdatesOfSeveralThreadsAreAllCounted) {
  constexpr size_t kCount = 2000;
  ParameterShard shard(memory_options(kCount));
  start(shard, kCount);
  std::mutex counting;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const auto gradient = numbered_values(3, kCount);
      for (uint64_t i = 0; i < 100; ++i) {
        {
          const std::lock_guard<std::mutex> lock(counting);
          shard.commit_in_place(shard.version() + 1, {});
        }
        shard.apply_in_place(gradient, numbered_update(i));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shard.version(), 300U);
}

TEST(ParameterShard, LockFreeUpdatesOfOneThreadEqualLockedOnes) {
  constexpr size_t kCount = 40000;
  ParameterShard shard(memory_options(kCount, optim::Method::adam));
  start(shard, kCount);
  for (uint64_t i = 0; i < 5; ++i) {
    shard.commit_in_place(i + 1, bytes_of("five"));
    shard.apply_in_place(numbered_values(i, kCount), numbered_update(i));
  }
  apply_numbered(shard, 5, kCount);
  Undisturbed expected(settings_of(optim::Method::adam), kCount);
  expected.advance_to(6);
  EXPECT_TRUE(expected.equals(shard.current()));
  EXPECT_EQ(shard.current().version, 6U);
  EXPECT_EQ(shard.version(), 6U);
}

TEST(ParameterShard, InitialiseTakesASnapshotsStateAlsoAnOlderOne) {
  constexpr size_t kCount = 500;
  ParameterShard shard(memory_options(kCount, optim::Method::adam));
  EXPECT_FALSE(shard.initialised());
  start(shard, kCount);
  for (uint64_t i = 0; i < 3; ++i) apply_numbered(shard, i, kCount);
  const View snapshot = shard.current();
  for (uint64_t i = 3; i < 6; ++i) apply_numbered(shard, i, kCount);
  shard.initialise(3, snapshot.parameters, snapshot.slots, bytes_of("back"));
  EXPECT_EQ(shard.current().version, 3U);
  EXPECT_EQ(text_of(shard.current().ledger), "back");
  apply_numbered(shard, 3, kCount);
  Undisturbed expected(settings_of(optim::Method::adam), kCount);
  expected.advance_to(4);
  EXPECT_TRUE(expected.equals(shard.current()));
}

TEST(ParameterShard, StagingIsAlignedAndStaysWithItsKey) {
  ParameterShard shard(memory_options(33));
  const auto first = shard.staging(7);
  EXPECT_EQ(first.size(), 33U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 64, 0U);
  EXPECT_NE(shard.staging(8).data(), first.data());
  EXPECT_EQ(shard.staging(7).data(), first.data());
}

TEST(ParameterShard, WrongSizesAreRefusedInOneLine) {
  ParameterShard shard(memory_options(10));
  EXPECT_THAT(message_of<UsageError>([&] { (void)shard.current(); }), HasSubstr("before it was initialised"));
  EXPECT_THAT(message_of<UsageError>([&] { start(shard, 9); }), HasSubstr("given 9 parameters"));
  start(shard, 10);
  EXPECT_THAT(message_of<UsageError>([&] { apply_numbered(shard, 0, 11); }), HasSubstr("a gradient of 11"));
  const std::string large(5000, 'x');
  EXPECT_THAT(message_of<UsageError>([&] { shard.commit_ledger(bytes_of(large)); }), HasSubstr("at most 4096"));
}

}  // namespace
}  // namespace lockstep::ps
