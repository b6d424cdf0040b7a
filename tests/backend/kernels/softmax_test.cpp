#include "backend/cpu/kernels/softmax.h"

#include <gtest/gtest.h>

#include <vector>

#include "support.h"

namespace lockstep::backend::cpu {
namespace {

struct Rows {
  std::vector<double> probabilities;
  double log_sum = 0;
};

Rows reference(const float* logits, int64_t classes) {
  double largest = logits[0];
  for (int64_t i = 0; i < classes; ++i) largest = std::max<double>(largest, logits[i]);
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += std::exp(logits[i] - largest);
  Rows rows;
  for (int64_t i = 0; i < classes; ++i) rows.probabilities.push_back(std::exp(logits[i] - largest) / sum);
  rows.log_sum = largest + std::log(sum);
  return rows;
}

std::vector<int32_t> random_labels(int64_t rows, int64_t classes) {
  base::Sequence random(4, 4);
  std::vector<int32_t> labels(static_cast<size_t>(rows));
  for (int32_t& label : labels) label = static_cast<int32_t>(random.below(static_cast<uint32_t>(classes)));
  return labels;
}

void check(int64_t rows, int64_t classes, float range, int threads) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << classes << " range " << range << " threads " << threads);
  const auto seed = static_cast<uint64_t>(rows * 1000 + classes);
  Buffer logits = random_buffer(rows * classes, seed, -range, range, 1);
  Buffer probabilities(rows * classes, 1);
  Buffer losses(rows, 1);
  Buffer diff_losses = random_buffer(rows, seed + 1);
  Buffer diff_logits(rows * classes);
  Buffer softmaxes(rows * classes);
  const std::vector<int32_t> labels = random_labels(rows, classes);
  softmax(rows, classes, logits.data(), softmaxes.data(), threads);
  softmax_cross_entropy(rows, classes, logits.data(), labels.data(), losses.data(), probabilities.data(), threads);
  softmax_cross_entropy_backward(rows, classes, probabilities.data(), labels.data(), diff_losses.data(),
                                 diff_logits.data(), threads);
  for (int64_t r = 0; r < rows && !::testing::Test::HasFailure(); ++r) {
    const Rows expected = reference(logits.data() + r * classes, classes);
    const int32_t label = labels[static_cast<size_t>(r)];
    EXPECT_NEAR(losses[r], expected.log_sum - logits[r * classes + label], 1e-6 * (1 + 2 * range)) << r;
    for (int64_t i = 0; i < classes; ++i) {
      const double p = expected.probabilities[static_cast<size_t>(i)];
      expect_relative(probabilities[r * classes + i], p, 1e-6 * (2 + range), "probability", static_cast<double>(i));
      EXPECT_EQ(softmaxes[r * classes + i], probabilities[r * classes + i]);
      EXPECT_NEAR(diff_logits[r * classes + i], (p - (i == label ? 1 : 0)) * diff_losses[r], 1e-6 * (2 + range));
    }
  }
}

TEST(Softmax, CrossEntropyMatchesTheDefinition) {
  for (const int64_t classes : {1, 2, 3, 4, 5, 8, 9, 10, 15, 16, 17, 33, 100, 1000}) {
    for (const int64_t rows : {1, 2, 5, 16, 17, 100}) {
      for (const int threads : {1, 2}) check(rows, classes, rows == 5 ? 90.0F : 3.0F, threads);
    }
  }
  check(1000, 10, 3, 2);
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  for (const int64_t classes : {3, 40}) {
    Buffer logits(classes);
    for (int64_t i = 0; i < classes; ++i) logits[i] = i == 1 ? 3e38F : -3e38F;
    Buffer p(classes);
    Buffer loss(1);
    const int32_t label = 1;
    softmax_cross_entropy(1, classes, logits.data(), &label, loss.data(), p.data(), 1);
    EXPECT_EQ(p[1], 1.0F);
    EXPECT_EQ(p[0], 0.0F);
    EXPECT_EQ(loss[0], 0.0F);
  }
}

TEST(Softmax, NanShows) {
  for (const int64_t classes : {3, 40}) {
    Buffer logits(classes);
    logits[classes - 1] = std::nanf("");
    Buffer p(classes);
    softmax(1, classes, logits.data(), p.data(), 1);
    EXPECT_TRUE(std::isnan(p[0]));
  }
}

TEST(Softmax, WorksInPlace) {
  Buffer logits = random_buffer(37 * 10, 1);
  Buffer expected(37 * 10);
  softmax(37, 10, logits.data(), expected.data(), 1);
  softmax(37, 10, logits.data(), logits.data(), 1);
  for (int64_t i = 0; i < 370; ++i) EXPECT_EQ(logits[i], expected[i]);
}

TEST(Softmax, BackwardMatchesTheDefinition) {
  for (const int64_t classes : {1, 3, 10, 16, 45}) {
    Buffer y = random_buffer(20 * classes, 1, 0, 1);
    Buffer dy = random_buffer(20 * classes, 2);
    Buffer dx(20 * classes);
    softmax_backward(20, classes, y.data(), dy.data(), dx.data(), 2);
    for (int64_t r = 0; r < 20; ++r) {
      double dot = 0;
      for (int64_t i = 0; i < classes; ++i) dot += static_cast<double>(y[r * classes + i]) * dy[r * classes + i];
      for (int64_t i = 0; i < classes; ++i) {
        EXPECT_NEAR(dx[r * classes + i], y[r * classes + i] * (dy[r * classes + i] - dot), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
