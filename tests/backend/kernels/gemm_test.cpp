#include "backend/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support.h"

namespace lockstep::backend::cpu {
namespace {

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
  }
  return x;
}

struct Operands {
  Gemm shape;
  int64_t lda, ldb, ldc;
  Buffer a, b, bias;
};

Operands make_operands(const Gemm& g, uint64_t seed) {
  const int64_t lda = g.lda != 0 ? g.lda : (g.transpose_a ? g.m : g.k);
  const int64_t ldb = g.ldb != 0 ? g.ldb : (g.transpose_b ? g.k : g.n);
  const int64_t ldc = g.ldc != 0 ? g.ldc : g.n;
  const int64_t shift = static_cast<int64_t>(seed % 3);
  return {g,
          lda,
          ldb,
          ldc,
          random_buffer((g.transpose_a ? g.k : g.m) * lda, seed, -1, 1, shift),
          random_buffer((g.transpose_b ? g.n : g.k) * ldb, seed + 1, -1, 1, shift),
          random_buffer(g.n, seed + 2)};
}

Reference reference(Operands& o, bool with_bias, int64_t m, int64_t n) {
  Reference sum;
  if (with_bias) sum.add(o.bias[n]);
  for (int64_t k = 0; k < o.shape.k; ++k) {
    const double a = o.a[o.shape.transpose_a ? k * o.lda + m : m * o.lda + k];
    const double b = o.b[o.shape.transpose_b ? n * o.ldb + k : k * o.ldb + n];
    sum.add(a * b);
  }
  return sum;
}

void check(const Gemm& g, bool with_bias, uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << g.m << " x " << g.n << " x " << g.k << " ta " << g.transpose_a << " tb "
                                    << g.transpose_b << " bias " << with_bias << " act "
                                    << static_cast<int>(g.activation));
  Operands o = make_operands(g, seed);
  Buffer c1(g.m * o.ldc);
  Buffer c2(g.m * o.ldc);
  for (const int threads : {1, 2, 3, 16}) {
    Buffer& c = threads == 1 ? c1 : c2;
    for (int64_t i = 0; i < c.size(); ++i) c[i] = 77.0F;
    Buffer scratch(gemm_scratch(g, threads));
    gemm(g, o.a.data(), o.b.data(), with_bias ? o.bias.data() : nullptr, c.data(), scratch.data(), threads);
    if (threads == 1) continue;
    ASSERT_EQ(std::memcmp(c1.data(), c2.data(), static_cast<size_t>(c1.size()) * sizeof(float)), 0)
        << "other bits with " << threads << " threads";
  }
  for (int64_t m = 0; m < g.m; ++m) {
    for (int64_t n = 0; n < o.ldc; ++n) {
      if (n >= g.n) {
        ASSERT_EQ(c1[m * o.ldc + n], 77.0F) << "wrote behind a row";
        continue;
      }
      Reference expected = reference(o, with_bias, m, n);
      expected.value = activated(g.activation, expected.value);
      expect_close(c1[m * o.ldc + n], expected, "C", m * o.ldc + n);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Gemm, AllSmallShapes) {
  uint64_t seed = 1;
  for (const int64_t m : {1, 2, 3, 7, 8, 17, 33}) {
    for (const int64_t n : {1, 2, 3, 5, 7, 8, 10, 13, 16, 17, 21, 31, 33, 65}) {
      for (const int64_t k : {0, 1, 2, 5, 16, 33, 50}) {
        for (int flags = 0; flags < 4; ++flags) {
          check({.m = m, .n = n, .k = k, .transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0},
                seed % 2 == 0, seed);
          ++seed;
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Gemm, EmptyResults) {
  check({.m = 0, .n = 5, .k = 3}, true, 1);
  check({.m = 5, .n = 0, .k = 3}, true, 2);
  check({.m = 0, .n = 0, .k = 0}, true, 3);
}

TEST(Gemm, TheShapesOfTheModelsAndThreads) {
  uint64_t seed = 1000;
  for (const int64_t batch : {1, 3, 8, 64, 100, 130}) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{784, 10}, {400, 120}, {120, 84}, {84, 10}}) {
      check({.m = batch, .n = out, .k = in, .activation = Activation::relu}, true, seed++);
      check({.m = batch, .n = in, .k = out, .transpose_b = true}, false, seed++);
      check({.m = in, .n = out, .k = batch, .transpose_a = true}, false, seed++);
      if (HasFailure()) return;
    }
  }
}

TEST(Gemm, ALargeMatrixSharedOutByColumns) {
  for (const int64_t n : {1024, 1000}) {
    check({.m = 40, .n = n, .k = 270, .activation = Activation::relu}, true, 1500);
    check({.m = 40, .n = n, .k = 270, .transpose_b = true}, false, 1501);
    check({.m = 270, .n = n, .k = 40, .transpose_a = true}, false, 1502);
  }
}

TEST(Gemm, EveryElementIsInOneThreadsShare) {
  const Gemm shapes[] = {{.m = 128, .n = 200, .k = 784},
                         {.m = 784, .n = 200, .k = 128, .transpose_a = true},
                         {.m = 128, .n = 200, .k = 784, .transpose_b = true},
                         {.m = 784, .n = 10, .k = 100, .transpose_a = true},
                         {.m = 64, .n = 10, .k = 784},
                         {.m = 6, .n = 84, .k = 300, .transpose_b = true},
                         {.m = 90, .n = 7, .k = 1}};
  for (const Gemm& shape : shapes) {
    for (const int threads : {1, 2, 3, 5, 16, 64}) {
      std::vector<int> owners(static_cast<size_t>(shape.m * shape.n));
      for (const base::Runs& runs : gemm_shares(shape, threads)) {
        for (int64_t i = 0; i < runs.count; ++i) {
          const int64_t first = runs.first + i * runs.stride;
          ASSERT_LE(first + runs.length, shape.m * shape.n);
          for (int64_t j = 0; j < runs.length; ++j) ++owners[static_cast<size_t>(first + j)];
        }
      }
      EXPECT_EQ(std::ranges::count(owners, 1), shape.m * shape.n) << shape.m << " x " << shape.n << ", " << threads;
    }
  }
}

TEST(Gemm, LeadingDimensionsAndActivations) {
  uint64_t seed = 2000;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh, Activation::sigmoid}) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 10, 40},
                                  {40, 10, 5},
                                  {9, 10, 64},
                                  {37, 10, 1},
                                  {20, 50, 30},
                                  {300, 70, 40},
                                  {1, 10, 100},
                                  {70, 10, 70}}) {
      for (int flags = 0; flags < 4; ++flags) {
        Gemm g{.m = m, .n = n, .k = k, .transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0};
        g.activation = activation;
        check(g, true, seed++);
        g.lda = (g.transpose_a ? m : k) + 3;
        g.ldb = (g.transpose_b ? k : n) + 2;
        g.ldc = n + 5;
        check(g, seed % 2 == 0, seed);
        ++seed;
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Gemm, ReluKeepsNan) {
  Gemm g{.m = 20, .n = 20, .k = 20, .activation = Activation::relu};
  Operands o = make_operands(g, 5);
  o.a[3 * 20 + 4] = std::nanf("");
  Buffer c(400);
  gemm(g, o.a.data(), o.b.data(), nullptr, c.data(), nullptr, 1);
  EXPECT_TRUE(std::isnan(c[3 * 20]));
  EXPECT_FALSE(std::isnan(c[2 * 20]));
}

}  // namespace
}  // namespace lockstep::backend::cpu
