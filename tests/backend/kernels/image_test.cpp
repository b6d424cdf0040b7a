// Normalisation in every layout, and sampling, which must never read or write beyond its image.
#include "backend/cpu/kernels/lrn.h"
#include "backend/cpu/kernels/sampling.h"
#include "backend/kernels/support.h"

namespace lockstep::backend::cpu {
namespace {

/// Returns the place of channel c of position i of image n in [outer][channels / block][inner][block].
int64_t at(const Lrn& s, int64_t n, int64_t c, int64_t i) {
  const int64_t blocks = (s.channels + s.block - 1) / s.block;
  return ((n * blocks + c / s.block) * s.inner + i) * s.block + c % s.block;
}

int64_t stored(const Lrn& s) { return s.outer * ((s.channels + s.block - 1) / s.block) * s.block * s.inner; }

/// Random values, zero in the pad channels of the last block.
Buffer draw(const Lrn& s, uint64_t seed) {
  Buffer values(stored(s));
  base::Sequence random(seed, 1);
  for (int64_t n = 0; n < s.outer; ++n) {
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t i = 0; i < s.inner; ++i) values[at(s, n, c, i)] = 2.0F * random.uniform() - 1.0F;
    }
  }
  return values;
}

double norm(const Lrn& s, Buffer& x, int64_t n, int64_t c, int64_t i) {
  double sum = 0;
  for (int64_t j = std::max<int64_t>(0, c - s.radius); j <= std::min(s.channels - 1, c + s.radius); ++j) {
    sum += static_cast<double>(x[at(s, n, j, i)]) * x[at(s, n, j, i)];
  }
  return s.bias + s.alpha * sum;
}

double gradient(const Lrn& s, Buffer& x, Buffer& dy, int64_t n, int64_t c, int64_t i) {
  double shared = 0;
  for (int64_t j = std::max<int64_t>(0, c - s.radius); j <= std::min(s.channels - 1, c + s.radius); ++j) {
    shared += dy[at(s, n, j, i)] * x[at(s, n, j, i)] * std::pow(norm(s, x, n, j, i), -s.beta - 1.0);
  }
  return dy[at(s, n, c, i)] * std::pow(norm(s, x, n, c, i), -s.beta) -
         2.0 * s.alpha * s.beta * x[at(s, n, c, i)] * shared;
}

TEST(LrnKernels, AgreeWithTheDefinitionInEveryLayout) {
  for (const int block : {1, 4, 8, 16, 32}) {
    if (!lrn_takes_block(block)) continue;
    for (const float beta : {0.75F, 0.5F}) {
      for (const int64_t channels : {1, 5, 16, 37}) {
        const Lrn s{2, channels, 19, block, 2, 0.4F, beta, 1.5F};
        Buffer x = draw(s, 1);
        Buffer dy = draw(s, 2);
        Buffer y(stored(s));
        Buffer dx(stored(s));
        Buffer scratch(lrn_scratch(s, 2));
        lrn(s, x.data(), y.data(), scratch.data(), 2);
        lrn_backward(s, x.data(), dy.data(), dx.data(), scratch.data(), 2);
        for (int64_t k = 0; k < s.outer * s.channels * s.inner; ++k) {
          const int64_t n = k / (channels * s.inner);
          const int64_t c = k / s.inner % channels;
          const int64_t i = k % s.inner;
          EXPECT_NEAR(y[at(s, n, c, i)], x[at(s, n, c, i)] / std::pow(norm(s, x, n, c, i), beta), 1e-6);
          EXPECT_NEAR(dx[at(s, n, c, i)], gradient(s, x, dy, n, c, i), 2e-6) << "channel " << c << ", block " << block;
        }
      }
    }
  }
}

/// Points far outside, at the edges, and NaN: reading them must stay inside the image.
TEST(SamplingKernels, StayInsideTheImageWhateverThePoints) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> coordinates{-1.0F, 1.0F,  -1.1F,     1.1F,       0.0F, 1e30F, -1e30F,
                                       kInf,  -kInf, 0.999999F, -0.999999F, 3e9F, -3e9F};
  for (const bool clipped : {true, false}) {
    const auto points = static_cast<int64_t>(coordinates.size() * coordinates.size());
    const BilinearSample s{1, 2, 5, 3, points, 1.5F, 2.5F, clipped ? 0.0F : 0.5F, clipped};
    Buffer image = random_buffer(30, 1);
    Buffer grid(2 * points);
    Buffer dst(2 * points);
    Buffer diff_grid(2 * points);
    Buffer diff_image(30);
    for (int64_t i = 0; i < points; ++i) {
      grid[2 * i] = coordinates[static_cast<size_t>(i) / coordinates.size()];
      grid[2 * i + 1] = coordinates[static_cast<size_t>(i) % coordinates.size()];
    }
    bilinear_sample(s, image.data(), grid.data(), dst.data(), 1);
    bilinear_sample_backward_grid(s, image.data(), grid.data(), dst.data(), diff_grid.data(), 1);
    bilinear_sample_backward_image(s, grid.data(), dst.data(), diff_image.data(), 1);
    for (int64_t i = 0; i < 2 * points; ++i) EXPECT_LE(std::fabs(dst[i]), 1.0F) << "point " << i;
  }
}

TEST(SamplingKernels, APointThatIsNoNumberGivesNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool clipped : {true, false}) {
    const BilinearSample s{1, 1, 2, 2, 1, 1.0F, 1.0F, clipped ? 0.0F : 0.5F, clipped};
    Buffer image = random_buffer(4, 1);
    Buffer grid(2);
    grid[0] = nan;
    Buffer dst(1);
    bilinear_sample(s, image.data(), grid.data(), dst.data(), 1);
    EXPECT_TRUE(std::isnan(dst[0]));
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
