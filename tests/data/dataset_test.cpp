#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "data/synthetic.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset five_examples() {
  Dataset dataset;
  dataset.name = "five";
  dataset.train.shape = {1, 1, 2};
  dataset.train.classes = 10;
  dataset.train.bytes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  dataset.train.labels = {0, 1, 2, 3, 4};
  return dataset;
}

TEST(HoldOut, MovesTheLastExamplesToValidation) {
  Dataset dataset = five_examples();
  hold_out(dataset, 2);
  EXPECT_EQ(dataset.train.count(), 3);
  EXPECT_EQ(dataset.validation.count(), 2);
  EXPECT_EQ(dataset.validation.shape, dataset.train.shape);
  EXPECT_EQ(dataset.validation.classes, 10);
  EXPECT_THAT(dataset.train.labels, ElementsAre(0, 1, 2));
  EXPECT_THAT(dataset.validation.labels, ElementsAre(3, 4));
  EXPECT_THAT(dataset.validation.bytes, ElementsAre(6, 7, 8, 9));
}

TEST(HoldOut, OfNothingLeavesValidationEmpty) {
  Dataset dataset = five_examples();
  hold_out(dataset, 0);
  EXPECT_EQ(dataset.train.count(), 5);
  EXPECT_TRUE(dataset.validation.empty());
  EXPECT_EQ(dataset.validation.shape, dataset.train.shape);
}

TEST(HoldOut, MustLeaveSomethingToTrainOn) {
  Dataset dataset = five_examples();
  EXPECT_EQ(message_of<UsageError>([&] { hold_out(dataset, 5); }),
            "holdout 5: five has 5 training examples; 0 to 4 are allowed");
  EXPECT_THAT(message_of<UsageError>([&] { hold_out(dataset, -1); }), HasSubstr("holdout -1"));
}

TEST(KeepFirst, KeepsThatMany) {
  Examples examples = five_examples().train;
  keep_first(examples, 0, "examples");
  EXPECT_EQ(examples.count(), 5);
  keep_first(examples, 2, "examples");
  EXPECT_THAT(examples.labels, ElementsAre(0, 1));
  EXPECT_THAT(examples.bytes, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(message_of<UsageError>([&] { keep_first(examples, 3, "test examples"); }),
            "cannot keep 3 test examples: there are only 2 (0 keeps all)");
}

TEST(HoldOut, LeavesAValidationSplitThatIsThere) {
  Dataset dataset = five_examples();
  hold_out(dataset, 2);
  hold_out(dataset, 0);
  EXPECT_EQ(dataset.validation.count(), 2);
  EXPECT_EQ(message_of<UsageError>([&] { hold_out(dataset, 1); }),
            "holdout 1: five has a validation split of 2 examples already; leave it at 0");
}

TEST(Rescale, AFractionKeepsTheFirstPart) {
  Examples examples = five_examples().train;
  rescale(examples, 1);
  EXPECT_EQ(examples.count(), 5);
  rescale(examples, 0.5);
  EXPECT_THAT(examples.labels, ElementsAre(0, 1, 2));
  rescale(examples, 0.001);
  EXPECT_THAT(examples.labels, ElementsAre(0));
}

TEST(Rescale, AMultipleRepeatsWithoutCopying) {
  Examples examples = five_examples().train;
  rescale(examples, 2.5);
  EXPECT_EQ(examples.count(), 13);
  EXPECT_EQ(examples.stored(), 5);
  EXPECT_EQ(examples.bytes.size(), 10U);
  std::vector<float> pixels(2);
  copy_image(examples, 12, pixels);
  EXPECT_THAT(pixels, ElementsAre(4 / 255.0F, 5 / 255.0F));
}

TEST(Rescale, HasLimits) {
  for (const double factor : {0.0, -1.0, 101.0, std::nan("")}) {
    Examples examples = five_examples().train;
    EXPECT_THAT(message_of<UsageError>([&] { rescale(examples, factor); }), HasSubstr("above 0 to 100 is allowed"));
  }
}

TEST(CheckLabels, NamesTheFirstBadOne) {
  Examples examples = five_examples().train;
  EXPECT_NO_THROW(check_labels(examples, "f"));
  examples.labels[3] = -1;
  EXPECT_EQ(message_of<DataError>([&] { check_labels(examples, "f"); }),
            "f: label -1 of example 3 is out of range; 0 to 9 are allowed");
  examples.labels.pop_back();
  EXPECT_EQ(message_of<DataError>([&] { check_labels(examples, "f"); }), "f: 5 examples but 4 labels");
}

TEST(Synthetic, IsTheSameForTheSameSeed) {
  SyntheticOptions options{.train = 50, .test = 20, .seed = 7};
  const Dataset a = synthetic(options);
  const Dataset b = synthetic(options);
  EXPECT_EQ(a.train.bytes, b.train.bytes);
  EXPECT_EQ(a.test.labels, b.test.labels);
  options.seed = 8;
  EXPECT_NE(synthetic(options).train.bytes, a.train.bytes);
  options.seed = 7;
  options.train = 30;
  const Dataset shorter = synthetic(options);
  EXPECT_TRUE(std::equal(shorter.train.bytes.begin(), shorter.train.bytes.end(), a.train.bytes.begin()));
}

TEST(Synthetic, HasTheShapeAskedFor) {
  const Dataset dataset = synthetic({.train = 40, .test = 10, .classes = 3, .shape = {3, 8, 12}});
  EXPECT_EQ(dataset.train.count(), 40);
  EXPECT_EQ(dataset.test.count(), 10);
  EXPECT_EQ(dataset.shape(), (ImageShape{3, 8, 12}));
  EXPECT_EQ(dataset.class_names.size(), 3U);
  EXPECT_NO_THROW(check_labels(dataset.train, "train"));
  EXPECT_THAT(message_of<UsageError>([] { synthetic({.classes = 1}); }), HasSubstr("2 to 1000"));
}

/// Nearest class mean, a linear model: the accuracy that any trained model should beat.
TEST(Synthetic, IsLearnable) {
  const Dataset dataset = synthetic({.train = 2000, .test = 500});
  const size_t pixels = dataset.shape().size();
  std::vector<std::vector<double>> means(10, std::vector<double>(pixels));
  std::vector<double> counts(10);
  for (size_t i = 0; i < dataset.train.labels.size(); ++i) {
    const auto label = static_cast<size_t>(dataset.train.labels[i]);
    counts[label] += 1;
    for (size_t p = 0; p < pixels; ++p) means[label][p] += dataset.train.bytes[i * pixels + p];
  }
  int right = 0;
  for (size_t i = 0; i < dataset.test.labels.size(); ++i) {
    double best = INFINITY;
    int32_t guess = -1;
    for (size_t c = 0; c < 10; ++c) {
      double distance = 0;
      for (size_t p = 0; p < pixels; ++p) {
        const double d = means[c][p] / counts[c] - dataset.test.bytes[i * pixels + p];
        distance += d * d;
      }
      if (distance < best) {
        best = distance;
        guess = static_cast<int32_t>(c);
      }
    }
    right += guess == dataset.test.labels[i] ? 1 : 0;
  }
  EXPECT_GT(right, 450);
}

}  // namespace
}  // namespace lockstep::data
