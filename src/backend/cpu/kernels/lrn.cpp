#include "backend/cpu/kernels/lrn.h"

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/lrn.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/math-inl.h"
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

/// Vectors that together hold all channels of some pixels. Lanes are pixels (one vector per channel) or channels (one
/// pixel). Either way the terms of neighbouring channels lie `step` floats apart in scratch.
struct Group {
  int64_t vectors = 0;
  int64_t step = 0;    ///< floats between channels, in scratch
  int64_t used = 0;    ///< lanes in use
  int64_t stride = 0;  ///< floats between vectors, in memory: `together` of them side by side
  int64_t together = 1;

  [[nodiscard]] HWY_INLINE int64_t at(int64_t v) const {
    return together == 1 ? v * stride : v / together * stride + v % together * kLanes;
  }
};

/// Terms of all channels with `radius` channels of zeros on either side.
class Terms {
 public:
  HWY_INLINE Terms(const Lrn& s, const Group& g, float* scratch) : s_(s), g_(g), data_(scratch) {}

  HWY_INLINE void set(int64_t v, V terms) { hn::StoreU(terms, Full(), data_ + s_.radius * g_.step + v * kLanes); }
  HWY_INLINE V near_sum(int64_t v) const {
    const float* first = data_ + v * kLanes;
    V sum = hn::LoadU(Full(), first);
    for (int64_t j = 1; j <= 2 * s_.radius; ++j) sum = hn::Add(sum, hn::LoadU(Full(), first + j * g_.step));
    return sum;
  }

 private:
  const Lrn& s_;
  const Group& g_;
  float* data_;
};

/// norm ^ -beta.
HWY_INLINE V inverse_power(V norm, float beta) {
  const Full d;
  const V one = hn::Set(d, 1.0F);
  if (beta == 0.75F) return hn::Div(one, hn::Sqrt(hn::Mul(norm, hn::Sqrt(norm))));
  return exp_any(d, hn::Mul(hn::Set(d, -beta), log_any(d, norm)));
}

HWY_INLINE void square_all(const Group& g, const float* src, Terms& squares) {
  for (int64_t v = 0; v < g.vectors; ++v) {
    const V x = load_some(Full(), src + g.at(v), g.used);
    squares.set(v, hn::Mul(x, x));
  }
}

HWY_INLINE V norm_at(const Lrn& s, const Terms& squares, int64_t v) {
  return hn::MulAdd(hn::Set(Full(), s.alpha), squares.near_sum(v), hn::Set(Full(), s.bias));
}

void normalise(const Lrn& s, const Group& g, const float* src, float* dst, float* scratch) {
  const Full d;
  Terms squares(s, g, scratch);
  square_all(g, src, squares);
  for (int64_t v = 0; v < g.vectors; ++v) {
    const V x = load_some(d, src + g.at(v), g.used);
    store_some(d, hn::Mul(x, inverse_power(norm_at(s, squares, v), s.beta)), dst + g.at(v), g.used);
  }
}

/// dx = dy n^-beta - 2 alpha beta x sum(dy x n^(-beta - 1)), where n is the norm.
void normalise_backward(const Lrn& s, const Group& g, const float* src, const float* diff_dst, float* diff_src,
                        float* scratch, int64_t scratch_size) {
  const Full d;
  Terms squares(s, g, scratch);
  Terms products(s, g, scratch + scratch_size);
  square_all(g, src, squares);
  for (int64_t v = 0; v < g.vectors; ++v) {
    const V norm = norm_at(s, squares, v);
    const V own = hn::Mul(load_some(d, diff_dst + g.at(v), g.used), inverse_power(norm, s.beta));
    const V x = load_some(d, src + g.at(v), g.used);
    products.set(v, hn::Div(hn::Mul(own, x), norm));
    store_some(d, own, diff_src + g.at(v), g.used);
  }
  const V factor = hn::Set(d, -2.0F * s.alpha * s.beta);
  for (int64_t v = 0; v < g.vectors; ++v) {
    const V x = hn::Mul(factor, load_some(d, src + g.at(v), g.used));
    const V own = load_some(d, diff_src + g.at(v), g.used);
    store_some(d, hn::MulAdd(x, products.near_sum(v), own), diff_src + g.at(v), g.used);
  }
}

int64_t groups(const Lrn& s) { return s.outer * (s.block == 1 ? (s.inner + kLanes - 1) / kLanes : s.inner); }

int64_t terms_size(const Lrn& s) {
  if (s.block == 1) return (s.channels + 2 * s.radius) * kLanes;
  const int64_t padded = (s.channels + s.block - 1) / s.block * s.block;
  return (padded + 2 * s.radius + kLanes - 1) / kLanes * kLanes;
}

bool takes_block(int block) { return block == 1 || block % kLanes == 0; }

/// Calls body(group, offset in memory) for groups of the range.
template <class Body>
HWY_INLINE void for_groups(const Lrn& s, base::Range range, Body body) {
  if (s.block == 1) {
    const int64_t strips = (s.inner + kLanes - 1) / kLanes;
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t begin = i % strips * kLanes;
      const Group group{s.channels, kLanes, std::min<int64_t>(kLanes, s.inner - begin), s.inner, 1};
      body(group, i / strips * s.channels * s.inner + begin);
    }
    return;
  }
  const int64_t blocks = (s.channels + s.block - 1) / s.block;
  const int64_t together = s.block / kLanes;
  const Group group{blocks * together, 1, kLanes, s.inner * s.block, together};
  for (int64_t i = range.begin; i < range.end; ++i) {
    body(group, (i / s.inner * blocks * s.inner + i % s.inner) * s.block);
  }
}

void lrn_share(const Lrn& s, base::Range range, const float* src, float* dst, float* scratch) {
  std::fill_n(scratch, terms_size(s), 0.0F);
  for_groups(s, range, [&](const Group& group, int64_t at) { normalise(s, group, src + at, dst + at, scratch); });
}

void lrn_backward_share(const Lrn& s, base::Range range, const float* src, const float* diff_dst, float* diff_src,
                        float* scratch) {
  const int64_t size = terms_size(s);
  std::fill_n(scratch, 2 * size, 0.0F);
  for_groups(s, range, [&](const Group& group, int64_t at) {
    normalise_backward(s, group, src + at, diff_dst + at, diff_src + at, scratch, size);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(groups);
HWY_EXPORT(terms_size);
HWY_EXPORT(takes_block);
HWY_EXPORT(lrn_share);
HWY_EXPORT(lrn_backward_share);

/// Elements for which one more thread pays off.
constexpr int64_t kGrain = 4'096;

void for_shares(const Lrn& shape, int threads, base::FunctionRef<void(base::Range, int)> body) {
  const int64_t count = HWY_DYNAMIC_DISPATCH(groups)(shape);
  base::parallel(base::split_for(shape.outer * shape.channels * shape.inner, kGrain, threads),
                 [&](int thread, int parts) { body(base::share(count, thread, parts), thread); });
}

}  // namespace

bool lrn_takes_block(int block) { return HWY_DYNAMIC_DISPATCH(takes_block)(block); }

int64_t lrn_scratch(const Lrn& shape, int threads) { return 2 * threads * HWY_DYNAMIC_DISPATCH(terms_size)(shape); }

void lrn(const Lrn& shape, const float* src, float* dst, float* scratch, int threads) {
  const int64_t size = 2 * HWY_DYNAMIC_DISPATCH(terms_size)(shape);
  for_shares(shape, threads, [&](base::Range mine, int thread) {
    HWY_DYNAMIC_DISPATCH(lrn_share)(shape, mine, src, dst, scratch + thread * size);
  });
}

void lrn_backward(const Lrn& shape, const float* src, const float* diff_dst, float* diff_src, float* scratch,
                  int threads) {
  const int64_t size = 2 * HWY_DYNAMIC_DISPATCH(terms_size)(shape);
  for_shares(shape, threads, [&](base::Range mine, int thread) {
    HWY_DYNAMIC_DISPATCH(lrn_backward_share)(shape, mine, src, diff_dst, diff_src, scratch + thread * size);
  });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
