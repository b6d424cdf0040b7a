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

// Each update below does one vector's worth of work, from element i on. Whole vectors are updated in place. The last
// few elements go through aligned buffers and the same instructions, so that an element's bits do not depend on its
// position.

HWY_INLINE void sgd_vector(Tag d, SgdUpdate u, Source from, const float* g, Target to, size_t i) {
  const auto kept = hn::Mul(hn::LoadU(d, from.params + i), hn::Set(d, u.keep));
  hn::StoreU(hn::NegMulAdd(hn::LoadU(d, g + i), hn::Set(d, u.rate), kept), d, to.params + i);
}

/// scale * g + decay * p.
HWY_INLINE hn::Vec<Tag> effective_gradient(Tag d, float scale, float decay, hn::Vec<Tag> g, hn::Vec<Tag> p) {
  return hn::MulAdd(p, hn::Set(d, decay), hn::Mul(g, hn::Set(d, scale)));
}

template <bool Nesterov>
HWY_INLINE void momentum_vector(Tag d, MomentumUpdate u, Source from, const float* g, Target to, size_t i) {
  const auto params = hn::LoadU(d, from.params + i);
  const auto grads = effective_gradient(d, u.scale, u.decay, hn::LoadU(d, g + i), params);
  const auto factor = hn::Set(d, u.momentum);
  const auto velocity = hn::MulAdd(hn::LoadU(d, from.first + i), factor, grads);
  hn::StoreU(velocity, d, to.first + i);
  const auto direction = Nesterov ? hn::MulAdd(velocity, factor, grads) : velocity;
  hn::StoreU(hn::NegMulAdd(direction, hn::Set(d, u.rate), params), d, to.params + i);
}

HWY_INLINE void adam_vector(Tag d, AdamUpdate u, Source from, const float* g, Target to, size_t i) {
  const auto params = hn::LoadU(d, from.params + i);
  const auto grads = effective_gradient(d, u.scale, u.decay, hn::LoadU(d, g + i), params);
  const auto old_first = hn::LoadU(d, from.first + i);
  const auto first = hn::MulAdd(hn::Sub(grads, old_first), hn::Set(d, u.rest1), old_first);
  const auto new_square = hn::Mul(hn::Mul(grads, grads), hn::Set(d, u.rest2));
  const auto second = hn::MulAdd(hn::LoadU(d, from.second + i), hn::Set(d, u.beta2), new_square);
  hn::StoreU(first, d, to.first + i);
  hn::StoreU(second, d, to.second + i);
  const auto divisor = hn::MulAdd(hn::Sqrt(second), hn::Set(d, u.root), hn::Set(d, u.epsilon));
  hn::StoreU(hn::NegMulAdd(hn::Div(first, divisor), hn::Set(d, u.rate), params), d, to.params + i);
}

/// An aligned copy of the last few elements of an array, if there is an array, while they are worked on.
class Rest {
 public:
  Rest(const float* src, size_t begin, size_t end) : begin_(begin), count_(end - begin) {
    if (src != nullptr) std::copy_n(src + begin, count_, values_);
  }
  float* data() { return values_; }
  void give_back(float* dst) const {
    if (dst != nullptr) std::copy_n(values_, count_, dst + begin_);
  }

 private:
  HWY_ALIGN float values_[kLanes] = {};
  size_t begin_;
  size_t count_;
};

/// Calls vector(from, g, to, i) for each vector's worth of the elements [i, end).
template <class Vector>
HWY_INLINE void for_vectors(Source from, const float* g, Target to, size_t i, size_t end, const Vector& vector) {
  for (; i + kLanes <= end; i += kLanes) vector(from, g, to, i);
  if (i == end) return;
  Rest params(from.params, i, end);
  Rest first(from.first, i, end);
  Rest second(from.second, i, end);
  Rest grads(g, i, end);
  vector(Source{params.data(), first.data(), second.data()}, grads.data(),
         Target{params.data(), first.data(), second.data()}, size_t{0});
  params.give_back(to.params);
  first.give_back(to.first);
  second.give_back(to.second);
}

void sgd_part(SgdUpdate u, Source from, const float* g, Target to, size_t begin, size_t end) {
  for_vectors(from, g, to, begin, end,
              [u](Source f, const float* grads, Target t, size_t i) HWY_ATTR { sgd_vector(Tag(), u, f, grads, t, i); });
}

template <bool Nesterov>
void momentum_loop(MomentumUpdate u, Source from, const float* g, Target to, size_t begin, size_t end) {
  for_vectors(from, g, to, begin, end, [u](Source f, const float* grads, Target t, size_t i) HWY_ATTR {
    momentum_vector<Nesterov>(Tag(), u, f, grads, t, i);
  });
}

void momentum_part(MomentumUpdate u, Source from, const float* g, Target to, size_t begin, size_t end) {
  if (u.nesterov) return momentum_loop<true>(u, from, g, to, begin, end);
  momentum_loop<false>(u, from, g, to, begin, end);
}

void adam_part(AdamUpdate u, Source from, const float* g, Target to, size_t begin, size_t end) {
  for_vectors(from, g, to, begin, end, [u](Source f, const float* grads, Target t, size_t i) HWY_ATTR {
    adam_vector(Tag(), u, f, grads, t, i);
  });
}

HWY_INLINE void add_vector(Tag d, float weight, float scale, const float* a, const float* b, float* dst) {
  const auto sum = hn::MulAdd(hn::LoadU(d, b), hn::Set(d, weight), hn::LoadU(d, a));
  hn::StoreU(hn::Mul(sum, hn::Set(d, scale)), d, dst);
}

void add_part(float weight, float scale, const float* a, const float* b, float* dst, size_t count) {
  const Tag d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) add_vector(d, weight, scale, a + i, b + i, dst + i);
  if (i == count) return;
  Rest left(a, i, count);
  Rest right(b, i, count);
  add_vector(d, weight, scale, left.data(), right.data(), left.data());
  left.give_back(dst);
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

/// Elements for which one more thread pays off: for loops bound by memory, and for Adam's with its root and division.
constexpr int64_t kGrain = 8192;
constexpr int64_t kAdamGrain = 2048;
/// The same for sums; their parts, and so their bits, depend on it.
constexpr int64_t kSumGrain = 16384;
/// Shares start at whole cache lines.
constexpr int64_t kLine = 64;

/// Calls part(begin, count) for each thread's share.
template <class Part>
void split(size_t count, int64_t grain, int threads, const Part& part) {
  const base::Split used = base::split_for(static_cast<int64_t>(count), grain, threads);
  if (used.parts == 1) return part(size_t{0}, count);
  base::parallel(used, [&](int thread, int of) {
    const base::Range mine = base::share(static_cast<int64_t>(count), thread, of, kLine);
    part(static_cast<size_t>(mine.begin), static_cast<size_t>(mine.size()));
  });
}

}  // namespace

void sgd_update(const SgdUpdate& update, const Source& from, const float* grads, const Target& to, size_t count,
                int threads) {
  split(count, kGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(sgd_part)(update, from, grads, to, i, i + n);
  });
}

void momentum_update(const MomentumUpdate& update, const Source& from, const float* grads, const Target& to,
                     size_t count, int threads) {
  split(count, kGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(momentum_part)(update, from, grads, to, i, i + n);
  });
}

void adam_update(const AdamUpdate& update, const Source& from, const float* grads, const Target& to, size_t count,
                 int threads) {
  split(count, kAdamGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(adam_part)(update, from, grads, to, i, i + n);
  });
}

void add_weighted(float weight, float scale, const float* a, const float* b, float* dst, size_t count, int threads) {
  split(count, kGrain, threads, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(add_part)(weight, scale, a + i, b + i, dst + i, n);
  });
}

double sum_of_squares(std::span<const float> values, int threads) {
  constexpr int kParts = 64;
  const auto count = static_cast<int64_t>(values.size());
  const int parts = base::split_for(count, kSumGrain / 4, kParts).parts;
  std::array<double, kParts> sums{};
  base::Split used = base::split_for(count, kSumGrain, threads);
  used.parts = std::min(parts, used.parts);
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
