#include "data/random_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "base/temp_dir.h"
#include "data/catalog.h"
#include "data/loader.h"
#include "data/normal_kernels.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::message_of;
using ::testing::HasSubstr;

TEST(NormalKernels, AreThePhiloxNormalsOfBase) {
  for (const size_t count : {size_t{1}, size_t{4}, size_t{63}, size_t{64}, size_t{1000}}) {
    std::vector<float> values(count, 99);
    fill_normal(7, 11, (uint64_t{5} << 32) | 3, 2, values);
    const base::Philox philox(7, 11);
    for (size_t i = 0; i < count; ++i) {
      const base::Philox::Block words = philox((uint64_t{5} << 32) | 3, i / 4);
      const size_t pair = i % 4 / 2;
      const float expected = 2 * base::normal2(words[2 * pair], words[2 * pair + 1])[i % 2];
      ASSERT_NEAR(values[i], expected, 1e-4F * std::max(1.0F, std::abs(expected))) << i << " of " << count;
    }
  }
}

TEST(RandomImages, PixelsAreNormalAndLabelsUniform) {
  const Dataset dataset =
      random_images({.train = 20, .test = 5000, .classes = 10, .shape = {3, 64, 64}, .fresh = false});
  std::array<double, 3> moments{};
  for (const float value : dataset.train.floats) {
    const double z = static_cast<double>(value) / 0.1;
    moments[0] += z;
    moments[1] += z * z;
    moments[2] += z * z * z * z;
  }
  const auto count = static_cast<double>(dataset.train.floats.size());
  EXPECT_NEAR(moments[0] / count, 0, 0.01);
  EXPECT_NEAR(moments[1] / count, 1, 0.01);
  EXPECT_NEAR(moments[2] / count, 3, 0.06);
  std::array<int, 10> seen{};
  for (const int32_t label : dataset.test.labels) ++seen.at(static_cast<size_t>(label));
  for (const int times : seen) EXPECT_NEAR(times, 500, 100);
}

TEST(RandomImages, MadeFreshOrOnceTheyAreTheSame) {
  RandomImagesOptions options{.train = 9, .test = 4, .classes = 5, .shape = {3, 7, 5}};
  const Dataset fresh = random_images(options);
  options.fresh = false;
  const Dataset once = random_images(options);
  EXPECT_TRUE(fresh.train.floats.empty());
  EXPECT_EQ(fresh.train.count(), 9);
  EXPECT_EQ(fresh.train.labels, once.train.labels);
  Loader a(fresh.train, {.batch = 4, .repeat = 3});
  Loader b(once.train, {.batch = 4, .repeat = 3});
  while (const Batch* one = a.next()) {
    const Batch* other = b.next();
    ASSERT_NE(other, nullptr);
    const auto values = static_cast<size_t>(one->count) * 105;
    EXPECT_TRUE(std::equal(one->images, one->images + values, other->images));
    EXPECT_TRUE(std::equal(one->labels, one->labels + one->count, other->labels));
  }
  EXPECT_EQ(b.next(), nullptr);
}

TEST(RandomImages, ImagesDifferBetweenIndexSplitAndSeed) {
  const RandomImagesOptions options{.train = 2, .test = 2, .shape = {1, 4, 4}, .fresh = false};
  const Dataset one = random_images(options);
  RandomImagesOptions other = options;
  other.seed = 2;
  EXPECT_FALSE(std::equal(one.train.floats.begin(), one.train.floats.begin() + 16, one.train.floats.begin() + 16));
  EXPECT_NE(one.train.floats, one.test.floats);
  EXPECT_NE(one.train.floats, random_images(other).train.floats);
}

TEST(RandomImages, HeldOutImagesStayWhatTheyWere) {
  Dataset dataset = random_images({.train = 10, .test = 2, .shape = {1, 4, 4}});
  std::vector<float> before(16);
  copy_image(dataset.train, 7, before);
  hold_out(dataset, 4);
  std::vector<float> after(16);
  copy_image(dataset.validation, 1, after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(dataset.train.count(), 6);
}

TEST(RandomImages, TheCatalogMakesThemInTheModelsShape) {
  LoadOptions options;
  EXPECT_EQ(load("images", options).shape(), (ImageShape{3, 224, 224}));
  EXPECT_EQ(load("images", options).classes(), 1000);
  options.expected = {1, 28, 28};
  options.train_size = 50;
  options.test_size = 7;
  options.classes = 4;
  const Dataset dataset = load("images", options);
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 28, 28}));
  EXPECT_EQ(dataset.train.count(), 50);
  EXPECT_EQ(dataset.test.count(), 7);
  EXPECT_EQ(dataset.classes(), 4);
  EXPECT_EQ(load("synthetic", options).train.count(), 50);
  EXPECT_THAT(message_of<UsageError>([&] { load("mnist", options); }),
              HasSubstr("train-size 50: mnist does not take it"));
}

}  // namespace
}  // namespace lockstep::data
