#include "machine_limits.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "machine_limits.cpp"  // NOLINT
#include <hwy/foreach_target.h>                  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Runs independent chains of multiply-adds, enough to hide the latency; returns the number of operations.
double multiply_add(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F);
  const auto term = hn::Set(d, 0.001F);
  // Each chain has its own start value: compilers merge equal ones.
  auto a = hn::Set(d, 1.0F), b = hn::Set(d, 1.1F), c = hn::Set(d, 1.2F), e = hn::Set(d, 1.3F), f = hn::Set(d, 1.4F);
  auto g = hn::Set(d, 1.5F), h = hn::Set(d, 1.6F), i = hn::Set(d, 1.7F), j = hn::Set(d, 1.8F), k = hn::Set(d, 1.9F);
  for (int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(hn::Add(h, i), hn::Add(j, k))));
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return 2.0 * 10.0 * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

/// Sums an array, which is as fast as reading memory.
float read_all(const float* data, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, data + i));
    b = hn::Add(b, hn::LoadU(d, data + i + lanes));
    c = hn::Add(c, hn::LoadU(d, data + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, data + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::bench {
namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(read_all);

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

double measure_gflops(int threads) {
  constexpr int64_t kRounds = 2'000'000;
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);
  std::vector<double> done(static_cast<size_t>(threads) * 8);
  const auto work = HWY_DYNAMIC_DISPATCH(multiply_add);
  double best = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const Clock::time_point start = Clock::now();
    base::parallel({threads, threads}, [&](int thread, int) {
      const auto t = static_cast<size_t>(thread);
      done[t * 8] = work(kRounds, &sinks[t * 16]);
    });
    best = std::max(best, done[0] * threads / seconds_since(start) / 1e9);
  }
  return best;
}

double measure_bandwidth(int threads) {
  constexpr int64_t kFloats = 64 << 20;  // 256 MB
  const std::vector<float> data(kFloats, 1.0F);
  std::vector<float> sums(static_cast<size_t>(threads) * 16);
  const auto work = HWY_DYNAMIC_DISPATCH(read_all);
  double best = 0;
  for (int trial = 0; trial < 4; ++trial) {
    const Clock::time_point start = Clock::now();
    base::parallel({threads, threads}, [&](int thread, int parts) {
      const base::Range mine = base::share(kFloats, thread, parts, 64);
      sums[static_cast<size_t>(thread) * 16] = work(data.data() + mine.begin, mine.size());
    });
    best = std::max(best, 4.0 * kFloats / seconds_since(start) / 1e9);
  }
  return best;
}

}  // namespace lockstep::bench
#endif
