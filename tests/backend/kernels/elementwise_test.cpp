#include "backend/cpu/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "support.h"

namespace lockstep::backend::cpu {
namespace {

constexpr float kAlpha = 0.37F;
constexpr double kRelative = 1e-6;

struct UnaryCase {
  UnaryFn fn;
  const char* name;
  float low;
  float high;
  std::function<double(double)> expected;
};

const UnaryCase kUnaryCases[] = {
    {UnaryFn::relu, "relu", -3, 3, [](double x) { return x < 0 ? 0 : x; }},
    {UnaryFn::tanh, "tanh", -12, 12, [](double x) { return std::tanh(x); }},
    {UnaryFn::sigmoid, "sigmoid", -60, 60, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {UnaryFn::softplus, "softplus", -60, 60,
     [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
    {UnaryFn::exp, "exp", -85, 88, [](double x) { return std::exp(x); }},
    {UnaryFn::log, "log", 1e-30F, 50, [](double x) { return std::log(x); }},
    {UnaryFn::sqrt, "sqrt", 0, 50, [](double x) { return std::sqrt(x); }},
    {UnaryFn::square, "square", -5, 5, [](double x) { return x * x; }},
    {UnaryFn::neg, "neg", -5, 5, [](double x) { return -x; }},
    {UnaryFn::abs, "abs", -5, 5, [](double x) { return std::abs(x); }},
    {UnaryFn::scale, "scale", -5, 5, [](double x) { return kAlpha * x; }},
};

TEST(Elementwise, UnaryFunctionsAreAccurate) {
  for (const UnaryCase& c : kUnaryCases) {
    for (const int64_t count : {0, 1, 3, 16, 17, 50, 40000}) {
      Buffer src = random_buffer(count, static_cast<uint64_t>(count) + 3, c.low, c.high, 1);
      Buffer dst(count);
      unary(c.fn, src.data(), dst.data(), count, kAlpha, count > 1000 ? 2 : 1);
      for (int64_t i = 0; i < count && !HasFailure(); ++i) {
        expect_relative(dst[i], c.expected(src[i]), kRelative, c.name, src[i]);
      }
    }
  }
}

TEST(Elementwise, AddScalarAndInPlace) {
  Buffer x = random_buffer(100, 1);
  Buffer y(100);
  unary(UnaryFn::add_scalar, x.data(), y.data(), 100, 2.0F, 1);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(y[i], x[i] + 2.0F);
  unary(UnaryFn::add_scalar, x.data(), x.data(), 100, 2.0F, 1);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(y[i], x[i]);
}

TEST(Elementwise, EndsOfTheRange) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const auto at = [](UnaryFn fn, float x) {
    Buffer b(1);
    b[0] = x;
    unary(fn, b.data(), b.data(), 1, 0, 1);
    return b[0];
  };
  for (const UnaryCase& c : kUnaryCases) EXPECT_TRUE(std::isnan(at(c.fn, nan)) || c.fn == UnaryFn::relu) << c.name;
  EXPECT_TRUE(std::isnan(at(UnaryFn::relu, nan)));
  EXPECT_EQ(at(UnaryFn::exp, 1000), inf);
  EXPECT_EQ(at(UnaryFn::exp, inf), inf);
  EXPECT_EQ(at(UnaryFn::exp, -1000), 0);
  EXPECT_EQ(at(UnaryFn::exp, -inf), 0);
  EXPECT_EQ(at(UnaryFn::log, 0), -inf);
  EXPECT_EQ(at(UnaryFn::log, inf), inf);
  EXPECT_TRUE(std::isnan(at(UnaryFn::log, -1)));
  EXPECT_EQ(at(UnaryFn::sigmoid, 1000), 1);
  EXPECT_EQ(at(UnaryFn::sigmoid, -1000), 0);
  EXPECT_EQ(at(UnaryFn::tanh, inf), 1);
  EXPECT_EQ(at(UnaryFn::tanh, -1000), -1);
  EXPECT_EQ(at(UnaryFn::softplus, 1000), 1000);
  EXPECT_EQ(at(UnaryFn::softplus, -1000), 0);
}

struct BinaryCase {
  BinaryFn fn;
  const char* name;
  std::function<double(double, double)> expected;
};

const BinaryCase kBinaryCases[] = {
    {BinaryFn::add, "add", [](double a, double b) { return a + b; }},
    {BinaryFn::sub, "sub", [](double a, double b) { return a - b; }},
    {BinaryFn::mul, "mul", [](double a, double b) { return a * b; }},
    {BinaryFn::div, "div", [](double a, double b) { return a / b; }},
    {BinaryFn::max, "max", [](double a, double b) { return std::max(a, b); }},
    {BinaryFn::min, "min", [](double a, double b) { return std::min(a, b); }},
    {BinaryFn::relu_grad, "relu_grad", [](double y, double g) { return y > 0 ? g : 0; }},
    {BinaryFn::tanh_grad, "tanh_grad", [](double y, double g) { return g * (1 - y * y); }},
    {BinaryFn::sigmoid_grad, "sigmoid_grad", [](double y, double g) { return g * y * (1 - y); }},
    {BinaryFn::softplus_grad, "softplus_grad", [](double x, double g) { return g / (1 + std::exp(-x)); }},
};

void expect_binary(const BinaryCase& c, float seen, float a, float b) {
  EXPECT_NEAR(seen, c.expected(a, b), 2e-6 * (1 + std::abs(c.expected(a, b)))) << c.name << " of " << a << ", " << b;
}

TEST(Elementwise, BinaryFunctions) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const int64_t count : {0, 1, 5, 16, 31, 100, 40000}) {
      Buffer a = random_buffer(count, 1, -2, 2);
      Buffer b = random_buffer(count, 2, -2, 2, 1);
      Buffer dst(count);
      binary(c.fn, a.data(), b.data(), dst.data(), count, 2);
      for (int64_t i = 0; i < count && !HasFailure(); ++i) expect_binary(c, dst[i], a[i], b[i]);
      binary_scalar_right(c.fn, a.data(), 0.6F, dst.data(), count, 1);
      for (int64_t i = 0; i < count && !HasFailure(); ++i) expect_binary(c, dst[i], a[i], 0.6F);
      binary_scalar_left(c.fn, 0.6F, b.data(), dst.data(), count, 1);
      for (int64_t i = 0; i < count && !HasFailure(); ++i) expect_binary(c, dst[i], 0.6F, b[i]);
      binary(c.fn, a.data(), b.data(), b.data(), count, 1);
      binary_scalar_left(c.fn, 0.6F, a.data(), a.data(), count, 1);
    }
  }
}

TEST(Elementwise, RowsAreBroadcast) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const auto& [rows, count] : {std::pair<int64_t, int64_t>{3, 10}, {1, 1}, {7, 33}, {600, 64}}) {
      Buffer a = random_buffer(rows * count, 1, -2, 2);
      Buffer row = random_buffer(count, 2, -2, 2);
      Buffer right(rows * count);
      Buffer left(rows * count);
      binary_row_right(c.fn, a.data(), row.data(), right.data(), rows, count, 2);
      binary_row_left(c.fn, row.data(), a.data(), left.data(), rows, count, 2);
      for (int64_t i = 0; i < rows * count && !HasFailure(); ++i) {
        expect_binary(c, right[i], a[i], row[i % count]);
        expect_binary(c, left[i], row[i % count], a[i]);
      }
    }
  }
}

TEST(Elementwise, Fill) {
  for (const int64_t count : {0, 1, 17, 50000}) {
    Buffer y(count);
    fill(1.5F, y.data(), count, 2);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], 1.5F);
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
