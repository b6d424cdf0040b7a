#include "data/clutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/temp_dir.h"
#include "data/catalog.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::message_of;
using ::testing::HasSubstr;

/// Returns digits in which every pixel shows the split and the image's number: odd in training, even in testing.
Dataset digits(int64_t train = 120, int64_t test = 60) {
  Dataset dataset;
  dataset.class_names = {"a", "b", "c"};
  const auto fill = [](Examples& part, int64_t count, int64_t offset) {
    part.shape = {1, 28, 28};
    part.classes = 3;
    for (int64_t i = 0; i < count; ++i) {
      part.bytes.insert(part.bytes.end(), 784, static_cast<uint8_t>(2 * i + offset));
      part.labels.push_back(static_cast<int32_t>(i % 3));
    }
  };
  fill(dataset.train, train, 1);
  fill(dataset.test, test, 2);
  return dataset;
}

/// Counts the pixels of the sample with this value.
int64_t pixels_of(const Examples& part, int64_t index, uint8_t value) {
  const auto begin = part.bytes.begin() + index * 1600;
  return std::count(begin, begin + 1600, value);
}

TEST(Clutter, LaysADigitAmongPiecesOfOthers) {
  const Dataset dataset = clutter(digits(), {.train = 50, .validation = 20, .test = 20});
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 40, 40}));
  EXPECT_EQ(dataset.classes(), 3);
  EXPECT_EQ(dataset.train.count(), 50);
  EXPECT_EQ(dataset.validation.count(), 20);
  EXPECT_EQ(dataset.test.count(), 20);
  for (int64_t i = 0; i < 50; ++i) {
    const auto begin = dataset.train.bytes.begin() + i * 1600;
    int64_t digit = -1;  // the value with more pixels than the pieces could cover
    std::vector<uint8_t> values(begin, begin + 1600);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (const uint8_t value : values) {
      if (value != 0 && pixels_of(dataset.train, i, value) >= 784 - 8 * 25) digit = (value - 1) / 2;
    }
    ASSERT_GE(digit, 0);
    EXPECT_EQ(dataset.train.labels[static_cast<size_t>(i)], digit % 3);
    EXPECT_LE(values.size(), 2U + 8U) << "black, the digit and at most eight others";
    EXPECT_LE(1600 - pixels_of(dataset.train, i, 0), 784 + 8 * 25);
  }
}

TEST(Clutter, NoDigitIsInTwoSplits) {
  const Dataset dataset = clutter(digits(), {.train = 200, .validation = 100, .test = 100});
  for (const uint8_t value : dataset.train.bytes) ASSERT_TRUE(value == 0 || (value % 2 == 1 && value <= 219));
  for (const uint8_t value : dataset.validation.bytes) ASSERT_TRUE(value == 0 || (value % 2 == 1 && value > 219));
  for (const uint8_t value : dataset.test.bytes) ASSERT_TRUE(value % 2 == 0);
}

TEST(Clutter, TheSeedDecidesAndTheSizeDoesNot) {
  const Dataset few = clutter(digits(), {.train = 10, .validation = 5, .test = 5, .seed = 3});
  const Dataset many = clutter(digits(), {.train = 20, .validation = 5, .test = 5, .seed = 3});
  EXPECT_TRUE(std::equal(few.train.bytes.begin(), few.train.bytes.end(), many.train.bytes.begin()));
  EXPECT_EQ(few.test.bytes, many.test.bytes);
  EXPECT_NE(few.train.bytes, clutter(digits(), {.train = 10, .seed = 4}).train.bytes);
}

TEST(Clutter, NeedsDigitsToDrawFrom) {
  EXPECT_THAT(message_of<UsageError>([] { clutter(digits(20, 20)); }),
              HasSubstr("from 20 training and 20 test images"));
  Dataset large = digits();
  EXPECT_THAT(message_of<UsageError>([&] { clutter(large, {.side = 20}); }), HasSubstr("images of 1x28x28"));
}

class ClutteredMnist : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("LOCKSTEP_TEST_DATA");
    options_.source.data_dir = root == nullptr ? "" : root;
    if (!std::filesystem::exists(options_.source.data_dir + "/mnist")) GTEST_SKIP() << "no data";
  }

  LoadOptions options_;
};

double mean(const Examples& part) {
  double sum = 0;
  for (const uint8_t value : part.bytes) sum += value / 255.0;
  for (const float value : part.floats) sum += static_cast<double>(value);
  return sum / static_cast<double>(part.bytes.size() + part.floats.size());
}

void expect_usual_sizes(const Dataset& dataset) {
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 40, 40}));
  EXPECT_EQ(dataset.classes(), 10);
  EXPECT_EQ(dataset.train.count(), 10000);
  EXPECT_EQ(dataset.validation.count(), 1000);
  EXPECT_EQ(dataset.test.count(), 1000);
  EXPECT_EQ(dataset.class_names.size(), 10U);
}

TEST_F(ClutteredMnist, IsReadFromItsFile) {
  const Dataset dataset = load("cluttered-mnist", options_);
  expect_usual_sizes(dataset);
  EXPECT_EQ(dataset.name, "cluttered-mnist");
  EXPECT_THAT(dataset.origin, HasSubstr(".npz"));
  EXPECT_NEAR(mean(dataset.train), 0.0772, 0.0001);
  EXPECT_EQ(fetch("cluttered-mnist", options_.source), options_.source.data_dir + "/cluttered-mnist");
}

TEST_F(ClutteredMnist, IsGeneratedMuchLikeTheFile) {
  const Dataset dataset = load("cluttered-mnist-generated", options_);
  expect_usual_sizes(dataset);
  EXPECT_THAT(dataset.origin, HasSubstr("generated from seed 1 and the digits in "));
  EXPECT_NEAR(mean(dataset.train), 0.0772, 0.006);
  EXPECT_NEAR(mean(dataset.test), 0.0772, 0.008);
}

TEST_F(ClutteredMnist, IsGeneratedWhereThereIsNoFile) {
  options_.source.data_dir += "/mnist";
  options_.source.env_dir.clear();
  options_.source.cache_dir.clear();
  options_.train_size = 30;
  EXPECT_THAT(message_of<UsageError>([&] { load("cluttered-mnist", options_); }), HasSubstr("train-size 30"));
  options_.train_size = 0;
  EXPECT_THAT(load("cluttered-mnist", options_).origin, HasSubstr("generated"));
}

}  // namespace
}  // namespace lockstep::data
