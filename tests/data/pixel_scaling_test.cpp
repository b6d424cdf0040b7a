#include "data/pixel_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "data/loader.h"
#include "data/synthetic.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::message_of;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

/// Three pixels: 10, 20 and 40 of 255; always 7; and -1, 0, 1 as floats.
Examples three() {
  Examples examples;
  examples.shape = {1, 1, 2};
  examples.classes = 3;
  examples.bytes = {10, 7, 20, 7, 40, 7};
  examples.labels = {0, 1, 2};
  return examples;
}

TEST(PixelScaling, IsTheMeanAndTheInverseOfThePopulationsDeviation) {
  const PixelScaling scaling = standardise(three());
  const double mean = 70.0 / 3;
  const double variance = (100.0 + 400 + 1600) / 3 - mean * mean;
  EXPECT_FLOAT_EQ(scaling.mean[0], static_cast<float>(mean / 255));
  EXPECT_FLOAT_EQ(scaling.inverse_deviation[0], static_cast<float>(255 / std::sqrt(variance)));
  EXPECT_FLOAT_EQ(scaling.mean[1], 7.0F / 255);
  EXPECT_EQ(scaling.inverse_deviation[1], 0);
}

TEST(PixelScaling, LargeOffsetsDoNotDrownTheVariance) {
  Examples examples;
  examples.shape = {1, 1, 2};
  for (int i = 0; i < 1000; ++i) {
    examples.floats.push_back(100000.0F + static_cast<float>(i % 2) / 16);
    examples.floats.push_back(0.1F);
  }
  const PixelScaling scaling = standardise(examples);
  EXPECT_NEAR(scaling.inverse_deviation[0], 32, 1e-3);
  EXPECT_EQ(scaling.inverse_deviation[1], 0);
}

TEST(PixelScaling, CountsARepeatedExampleAsOftenAsItIsSeen) {
  Examples repeated = three();
  rescale(repeated, 5.0 / 3);
  Examples copied = three();
  copied.bytes.insert(copied.bytes.end(), {10, 7, 20, 7});
  copied.labels = {0, 1, 2, 0, 1};
  EXPECT_EQ(standardise(repeated).mean, standardise(copied).mean);
  EXPECT_EQ(standardise(repeated).inverse_deviation, standardise(copied).inverse_deviation);
}

TEST(PixelScaling, NeedsExamples) {
  EXPECT_THAT(message_of<UsageError>([] { standardise(Examples{}); }), HasSubstr("no training examples"));
}

TEST(PixelScaling, IsUndone) {
  const PixelScaling scaling = standardise(three());
  std::vector<float> pixels{0.25F, 7.0F / 255, 0.5F, 7.0F / 255};
  scaling.apply(pixels);
  EXPECT_EQ(pixels[1], 0);
  scaling.undo(pixels);
  EXPECT_THAT(pixels, ElementsAre(FloatNear(0.25F, 1e-6F), FloatNear(7.0F / 255, 1e-6F), FloatNear(0.5F, 1e-6F),
                                  FloatNear(7.0F / 255, 1e-6F)));
}

/// Checks the mean and variance of each pixel over all images of a pass.
void expect_standard(const Examples& examples, const PixelScaling& scaling) {
  LoaderOptions options;
  options.batch = 17;
  options.pixels = &scaling;
  Loader loader(examples, options);
  const size_t pixels = examples.shape.size();
  std::vector<double> sum(pixels);
  std::vector<double> squares(pixels);
  while (const Batch* batch = loader.next()) {
    for (size_t i = 0; i < static_cast<size_t>(batch->count) * pixels; ++i) {
      sum[i % pixels] += static_cast<double>(batch->images[i]);
      squares[i % pixels] += std::pow(static_cast<double>(batch->images[i]), 2);
    }
  }
  const auto count = static_cast<double>(examples.count());
  for (size_t i = 0; i < pixels; ++i) {
    ASSERT_NEAR(sum[i] / count, 0, 1e-5) << i;
    ASSERT_NEAR(squares[i] / count, scaling.inverse_deviation[i] == 0 ? 0 : 1, 1e-4) << i;
  }
}

TEST(PixelScaling, TheLoaderAppliesItToBytesFloatsAndMadeImages) {
  Examples bytes = synthetic({.train = 300, .test = 1}).train;
  for (size_t i = 0; i < 300; ++i) bytes.bytes[i * 784 + 5] = 9;
  expect_standard(bytes, standardise(bytes));

  Examples floats = bytes;
  floats.floats.assign(bytes.bytes.begin(), bytes.bytes.end());
  floats.bytes.clear();
  expect_standard(floats, standardise(floats));

  class Maker final : public ImageMaker {
   public:
    explicit Maker(const Examples& from) : from_(from) {}
    void make(int64_t index, float* pixels) const override { copy_image(from_, index, {pixels, 784}); }

   private:
    const Examples& from_;
  };
  Examples made;
  made.shape = bytes.shape;
  made.classes = bytes.classes;
  made.labels = bytes.labels;
  made.maker = std::make_shared<Maker>(bytes);
  expect_standard(made, standardise(made));
}

TEST(PixelScaling, OfAnotherSizeIsRefused) {
  const PixelScaling scaling = standardise(three());
  const Dataset dataset = synthetic({.train = 10, .test = 2});
  LoaderOptions options;
  options.batch = 2;
  options.pixels = &scaling;
  EXPECT_THAT(message_of<UsageError>([&] { Loader(dataset.train, options); }),
              HasSubstr("scaled for images of 2 values, these have 784"));
}

}  // namespace
}  // namespace lockstep::data
