// The vector kernels are bit-identical to base/random.h, for any width, row, step and number of threads.
#include "backend/cpu/kernels/random.h"

#include <cstring>

#include "backend/kernels/support.h"

namespace lockstep::backend::cpu {
namespace {

const base::Philox kPhilox(7, 123);
constexpr uint64_t kStep = (uint64_t{5} << 32) + 9;
constexpr uint64_t kFirstRow = 1000;

RandomRows shape_of(int64_t rows, int64_t width) { return {kPhilox.key(), kStep, kFirstRow, rows, width}; }

/// Returns the four words behind element j of row r.
base::Philox::Block words_at(int64_t r, int64_t j) {
  const uint64_t row = (kFirstRow + static_cast<uint64_t>(r)) << 32;
  return kPhilox(kStep, row | static_cast<uint64_t>(j / 4));
}

float uniform_at(int64_t r, int64_t j) { return base::uniform01(words_at(r, j)[static_cast<size_t>(j % 4)]); }

float normal_at(int64_t r, int64_t j) {
  const auto words = words_at(r, j);
  return j % 4 < 2 ? base::normal2(words[0], words[1])[static_cast<size_t>(j % 2)]
                   : base::normal2(words[2], words[3])[static_cast<size_t>(j % 2)];
}

void expect_bits(float seen, float wanted, const char* what, int64_t r, int64_t j) {
  EXPECT_EQ(std::memcmp(&seen, &wanted, sizeof(seen)), 0)
      << what << " of row " << r << ", element " << j << ": " << seen << " instead of " << wanted;
}

class RandomKernels : public testing::TestWithParam<std::tuple<int64_t, int64_t, int>> {};

TEST_P(RandomKernels, GiveTheBitsOfTheDefinition) {
  const auto [rows, width, threads] = GetParam();
  Buffer src = random_buffer(rows * width, 3);
  Buffer dropped(rows * width);
  Buffer uniform(rows * width);
  Buffer normal(rows * width);
  dropout(shape_of(rows, width), 0.3F, 1.25F, src.data(), dropped.data(), threads);
  random_uniform(shape_of(rows, width), -2.0F, 5.0F, uniform.data(), threads);
  random_normal(shape_of(rows, width), 0.5F, 3.0F, normal.data(), threads);
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t r = i / width;
    const int64_t j = i % width;
    expect_bits(dropped[i], uniform_at(r, j) >= 0.3F ? src[i] * 1.25F : 0.0F, "dropout", r, j);
    expect_bits(uniform[i], -2.0F + 5.0F * uniform_at(r, j), "uniform", r, j);
    expect_bits(normal[i], 0.5F + 3.0F * normal_at(r, j), "normal", r, j);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RandomKernels,
                         testing::Combine(testing::Values(1, 3), testing::Values(1, 3, 4, 7, 16, 33, 64, 95, 5000),
                                          testing::Values(1, 2)));

TEST(RandomNumbers, NormalValuesAreThoseOfTheLibrary) {
  base::Sequence random(2, 2);
  for (int i = 0; i < 200'000; ++i) {
    // The ends of the range first: the largest radius, the smallest, and every quarter of the circle.
    const uint32_t a = i == 0 ? 0U : i == 1 ? ~0U : random.next();
    const uint32_t b = i < 8 ? static_cast<uint32_t>(i) << 29U : random.next();
    const double u = (static_cast<double>(a >> 8U) + 1.0) * 0x1p-24;
    const double angle = 2.0 * M_PI * base::uniform01(b);
    const double radius = std::sqrt(-2.0 * std::log(u));
    const auto seen = base::normal2(a, b);
    ASSERT_NEAR(seen[0], radius * std::cos(angle), 1e-6 * (radius + 1e-3)) << a << " " << b;
    ASSERT_NEAR(seen[1], radius * std::sin(angle), 1e-6 * (radius + 1e-3)) << a << " " << b;
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
