#include "optim/update_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/update_kernels.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
constexpr size_t kLanes = HWY_LANES(float);

// Each update below is one vector's worth of work. Whole vectors are done in place; the rest goes through aligned
// buffers and the same instructions, so that an element's bits do not depend on where it lies.

HWY_INLINE void sgd_vector(Tag d, SgdUpdate u, float* p, const float* g) {
  const auto kept = hn::Mul(hn::LoadU(d, p), hn::Set(d, u.keep));
  hn::StoreU(hn::NegMulAdd(hn::LoadU(d, g), hn::Set(d, u.rate), kept), d, p);
}

/// scale * g + decay * p.
HWY_INLINE hn::Vec<Tag> effective_gradient(Tag d, float scale, float decay, hn::Vec<Tag> g, hn::Vec<Tag> p) {
  return hn::MulAdd(p, hn::Set(d, decay), hn::Mul(g, hn::Set(d, scale)));
}

template <bool Nesterov>
HWY_INLINE void momentum_vector(Tag d, MomentumUpdate u, float* p, float* m, const float* g) {
  const auto params = hn::LoadU(d, p);
  const auto grads = effective_gradient(d, u.scale, u.decay, hn::LoadU(d, g), params);
  const auto factor = hn::Set(d, u.momentum);
  const auto velocity = hn::MulAdd(hn::LoadU(d, m), factor, grads);
  hn::StoreU(velocity, d, m);
  const auto direction = Nesterov ? hn::MulAdd(velocity, factor, grads) : velocity;
  hn::StoreU(hn::NegMulAdd(direction, hn::Set(d, u.rate), params), d, p);
}

HWY_INLINE void adam_vector(Tag d, AdamUpdate u, float* p, float* m, float* v, const float* g) {
  const auto params = hn::LoadU(d, p);
  const auto grads = effective_gradient(d, u.scale, u.decay, hn::LoadU(d, g), params);
  const auto old_first = hn::LoadU(d, m);
  const auto first = hn::MulAdd(hn::Sub(grads, old_first), hn::Set(d, u.rest1), old_first);
  const auto new_square = hn::Mul(hn::Mul(grads, grads), hn::Set(d, u.rest2));
  const auto second = hn::MulAdd(hn::LoadU(d, v), hn::Set(d, u.beta2), new_square);
  hn::StoreU(first, d, m);
  hn::StoreU(second, d, v);
  const auto divisor = hn::MulAdd(hn::Sqrt(second), hn::Set(d, u.root), hn::Set(d, u.epsilon));
  hn::StoreU(hn::NegMulAdd(hn::Div(first, divisor), hn::Set(d, u.rate), params), d, p);
}

/// An aligned vector that holds the last few elements of an array while they are worked on.
class Rest {
 public:
  Rest(const float* src, size_t count) : count_(count) { std::copy_n(src, count, values_); }
  float* data() { return values_; }
  void give_back(float* dst) const { std::copy_n(values_, count_, dst); }

 private:
  HWY_ALIGN float values_[kLanes] = {};
  size_t count_;
};

void sgd_part(SgdUpdate u, float* p, const float* g, size_t count) {
  const Tag d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sgd_vector(d, u, p + i, g + i);
  if (i == count) return;
  Rest params(p + i, count - i);
  Rest grads(g + i, count - i);
  sgd_vector(d, u, params.data(), grads.data());
  params.give_back(p + i);
}

template <bool Nesterov>
void momentum_loop(MomentumUpdate u, float* p, float* m, const float* g, size_t count) {
  const Tag d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) momentum_vector<Nesterov>(d, u, p + i, m + i, g + i);
  if (i == count) return;
  Rest params(p + i, count - i);
  Rest velocity(m + i, count - i);
  Rest grads(g + i, count - i);
  momentum_vector<Nesterov>(d, u, params.data(), velocity.data(), grads.data());
  params.give_back(p + i);
  velocity.give_back(m + i);
}

void momentum_part(MomentumUpdate u, float* p, float* m, const float* g, size_t count) {
  if (u.nesterov) return momentum_loop<true>(u, p, m, g, count);
  momentum_loop<false>(u, p, m, g, count);
}

void adam_part(AdamUpdate u, float* p, float* m, float* v, const float* g, size_t count) {
  const Tag d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) adam_vector(d, u, p + i, m + i, v + i, g + i);
  if (i == count) return;
  Rest params(p + i, count - i);
  Rest first(m + i, count - i);
  Rest second(v + i, count - i);
  Rest grads(g + i, count - i);
  adam_vector(d, u, params.data(), first.data(), second.data(), grads.data());
  params.give_back(p + i);
  first.give_back(m + i);
  second.give_back(v + i);
}

HWY_INLINE void add_vector(Tag d, float weight, float scale, const float* src, float* dst) {
  const auto sum = hn::MulAdd(hn::LoadU(d, src), hn::Set(d, weight), hn::LoadU(d, dst));
  hn::StoreU(hn::Mul(sum, hn::Set(d, scale)), d, dst);
}

void add_part(float weight, float scale, const float* src, float* dst, size_t count) {
  const Tag d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) add_vector(d, weight, scale, src + i, dst + i);
  if (i == count) return;
  Rest from(src + i, count - i);
  Rest to(dst + i, count - i);
  add_vector(d, weight, scale, from.data(), to.data());
  to.give_back(dst + i);
}

double squares_part(const float* x, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  constexpr size_t kStep = HWY_LANES(double);
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    const auto a = hn::PromoteTo(d, hn::LoadU(narrow, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(narrow, x + i + kStep));
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

HWY_EXPORT(sgd_part);
HWY_EXPORT(momentum_part);
HWY_EXPORT(adam_part);
HWY_EXPORT(add_part);
HWY_EXPORT(squares_part);

/// Elements that pay for one more thread: loops bound by memory, and Adam's with its root and division.
constexpr int64_t kGrain = 16384;
constexpr int64_t kAdamGrain = 8192;
/// Shares start at whole cache lines.
constexpr int64_t kLine = 64;

/// Calls part(begin, count) for each thread's share.
template <class Part>
void split(size_t count, int64_t grain, int threads, const Part& part) {
  const int used = base::threads_for(static_cast<int64_t>(count), grain, threads);
  if (used == 1) return part(size_t{0}, count);
  base::parallel(used, [&](int thread, int of) {
    const base::Range mine = base::share(static_cast<int64_t>(count), thread, of, kLine);
    part(static_cast<size_t>(mine.begin), static_cast<size_t>(mine.size()));
  });
}

}  // namespace

void sgd_update(const SgdUpdate& update, float* params, const float* grads, size_t count, int threads) {
  split(count, kGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(sgd_part)(update, params + i, grads + i, n);
  });
}

void momentum_update(const MomentumUpdate& update, float* params, float* velocity, const float* grads, size_t count,
                     int threads) {
  split(count, kGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(momentum_part)(update, params + i, velocity + i, grads + i, n);
  });
}

void adam_update(const AdamUpdate& update, float* params, float* first, float* second, const float* grads, size_t count,
                 int threads) {
  split(count, kAdamGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(adam_part)(update, params + i, first + i, second + i, grads + i, n);
  });
}

void add_weighted(float weight, float scale, const float* src, float* dst, size_t count, int threads) {
  split(count, kGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(add_part)(weight, scale, src + i, dst + i, n);
  });
}

double sum_of_squares(std::span<const float> values, int threads) {
  constexpr int kParts = 64;
  const auto count = static_cast<int64_t>(values.size());
  const int parts = base::threads_for(count, kGrain / 4, kParts);
  std::array<double, kParts> sums{};
  const int used = std::min(parts, base::threads_for(count, kGrain, threads));
  base::parallel(used, [&](int thread, int of) {
    const base::Range mine = base::share(parts, thread, of);
    for (int64_t part = mine.begin; part < mine.end; ++part) {
      const base::Range range = base::share(count, static_cast<int>(part), parts, kLine);
      sums[static_cast<size_t>(part)] =
          HWY_DYNAMIC_DISPATCH(squares_part)(values.data() + range.begin, static_cast<size_t>(range.size()));
    }
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace lockstep::optim
#endif  // HWY_ONCE
