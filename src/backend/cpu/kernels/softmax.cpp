#include "backend/cpu/kernels/softmax.h"

#include <cmath>

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/softmax.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/math-inl.h"
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

/// Classes up to which kLanes rows are transposed and computed side by side, one row per lane.
constexpr int64_t kFewClasses = 16;
constexpr int kChunks = kFewClasses / kLanes;

/// Reads `rows` rows of `classes` as one vector per class; lanes behind the last row are zero.
HWY_INLINE void load_classes(const float* src, int64_t rows, int64_t classes, V* by_class) {
  const Full d;
  HWY_UNROLL(4)
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    V* block = by_class + chunk * kLanes;
    const int64_t count = std::clamp<int64_t>(classes - chunk * kLanes, 0, kLanes);
    if (count == 0) continue;
    for (int64_t r = 0; r < kLanes; ++r) {
      block[r] = r < rows ? load_some(d, src + r * classes + chunk * kLanes, count) : hn::Zero(d);
    }
    transpose(d, block);
  }
}

/// Inverse of load_classes; destroys by_class.
HWY_INLINE void store_classes(V* by_class, int64_t rows, int64_t classes, float* dst) {
  const Full d;
  HWY_UNROLL(4)
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    V* block = by_class + chunk * kLanes;
    const int64_t count = std::clamp<int64_t>(classes - chunk * kLanes, 0, kLanes);
    if (count == 0) continue;
    transpose(d, block);
    for (int64_t r = 0; r < rows; ++r) store_some(d, block[r], dst + r * classes + chunk * kLanes, count);
  }
}

/// labels == nullptr: softmax only.
void few_classes(int64_t rows, int64_t classes, const float* src, const int32_t* labels, float* losses, float* dst) {
  const Full d;
  V x[kFewClasses];
  for (int c = 0; c < kFewClasses; ++c) x[c] = hn::Zero(d);
  HWY_ALIGN float at_label[kLanes] = {};
  for (int64_t r = 0; r < rows && labels != nullptr; ++r) at_label[r] = src[r * classes + labels[r]];
  load_classes(src, rows, classes, x);
  V largest = x[0];
  for (int64_t c = 1; c < classes; ++c) largest = hn::Max(largest, x[c]);
  V sum = hn::Zero(d);
  for (int64_t c = 0; c < classes; ++c) {
    x[c] = exp_negative(d, hn::Sub(x[c], largest));
    sum = hn::Add(sum, x[c]);
  }
  const V scale = hn::Div(hn::Set(d, 1.0F), sum);
  for (int64_t c = 0; c < classes; ++c) x[c] = hn::Mul(x[c], scale);
  store_classes(x, rows, classes, dst);
  if (labels == nullptr) return;
  const V loss = hn::Add(hn::Log(d, sum), hn::Sub(largest, hn::Load(d, at_label)));
  store_some(d, loss, losses, rows);
}

/// Finds one long row's largest value and the sum of exp(x - largest); leaves the exponentials in dst.
void exponentials(const float* src, int64_t classes, float* dst, float& largest, float& sum) {
  const Full d;
  V best = hn::Set(d, src[0]);
  int64_t i = 0;
  for (; i + kLanes <= classes; i += kLanes) best = hn::Max(best, hn::LoadU(d, src + i));
  largest = hn::GetLane(hn::MaxOfLanes(d, best));
  for (; i < classes; ++i) largest = std::max(largest, src[i]);
  const V shift = hn::Set(d, largest);
  V total = hn::Zero(d);
  for (i = 0; i + kLanes <= classes; i += kLanes) {
    const V e = exp_negative(d, hn::Sub(hn::LoadU(d, src + i), shift));
    hn::StoreU(e, d, dst + i);
    total = hn::Add(total, e);
  }
  if (const int64_t rest = classes - i; rest > 0) {
    const V e = exp_negative(d, hn::Sub(load_some(d, src + i, rest), shift));
    store_some(d, e, dst + i, rest);
    total = hn::Add(total, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(rest)), e));
  }
  sum = hn::GetLane(hn::SumOfLanes(d, total));
}

void scale_row(float* dst, int64_t classes, float scale) {
  const Full d;
  const V factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + kLanes <= classes; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, dst + i), factor), d, dst + i);
  for (; i < classes; ++i) dst[i] *= scale;
}

void many_classes(int64_t classes, const float* src, const int32_t* label, float* loss, float* dst) {
  float largest = 0;
  float sum = 0;
  const float at_label = label == nullptr ? 0.0F : src[*label];
  exponentials(src, classes, dst, largest, sum);
  scale_row(dst, classes, 1.0F / sum);
  if (label != nullptr) *loss = std::log(sum) + (largest - at_label);
}

void softmax_rows(base::Range rows, int64_t classes, const float* src, const int32_t* labels, float* losses,
                  float* dst) {
  const int64_t step = classes <= kFewClasses ? kLanes : 1;
  for (int64_t r = rows.begin; r < rows.end; r += step) {
    const int32_t* label = labels == nullptr ? nullptr : labels + r;
    float* loss = losses == nullptr ? nullptr : losses + r;
    if (classes <= kFewClasses) {
      few_classes(std::min(step, rows.end - r), classes, src + r * classes, label, loss, dst + r * classes);
    } else {
      many_classes(classes, src + r * classes, label, loss, dst + r * classes);
    }
  }
}

void cross_entropy_backward_rows(base::Range rows, int64_t classes, const float* probabilities, const int32_t* labels,
                                 const float* diff_losses, float* diff_logits) {
  const Full d;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* p = probabilities + r * classes;
    float* dst = diff_logits + r * classes;
    const float at_label = p[labels[r]];
    const V factor = hn::Set(d, diff_losses[r]);
    int64_t i = 0;
    for (; i + kLanes <= classes; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, p + i), factor), d, dst + i);
    if (const int64_t rest = classes - i; rest > 0) {
      store_some(d, hn::Mul(load_some(d, p + i, rest), factor), dst + i, rest);
    }
    dst[labels[r]] = (at_label - 1.0F) * diff_losses[r];
  }
}

void softmax_backward_rows(base::Range rows, int64_t classes, const float* dst, const float* diff_dst,
                           float* diff_src) {
  const Full d;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* y = dst + r * classes;
    const float* dy = diff_dst + r * classes;
    float* dx = diff_src + r * classes;
    V sum = hn::Zero(d);
    for (int64_t i = 0; i < classes; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, classes - i);
      sum = hn::MulAdd(load_some(d, y + i, count), load_some(d, dy + i, count), sum);
    }
    const V dot = hn::SumOfLanes(d, sum);
    for (int64_t i = 0; i < classes; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, classes - i);
      const V diff = hn::Sub(load_some(d, dy + i, count), dot);
      store_some(d, hn::Mul(load_some(d, y + i, count), diff), dx + i, count);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(cross_entropy_backward_rows);
HWY_EXPORT(softmax_backward_rows);

/// Elements for which one more thread pays off, and the rows that are assigned together.
constexpr int64_t kGrain = 4'096;
constexpr int64_t kRowGrain = 16;

void for_rows(int64_t rows, int64_t classes, int threads, base::FunctionRef<void(base::Range)> body) {
  if (classes == 0) return;
  base::parallel(base::split_for(rows * classes, kGrain, threads),
                 [&](int thread, int count) { body(base::share(rows, thread, count, kRowGrain)); });
}

}  // namespace

void softmax(int64_t rows, int64_t classes, const float* src, float* dst, int threads) {
  for_rows(rows, classes, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(softmax_rows)(mine, classes, src, nullptr, nullptr, dst);
  });
}

void softmax_backward(int64_t rows, int64_t classes, const float* dst, const float* diff_dst, float* diff_src,
                      int threads) {
  for_rows(rows, classes, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(softmax_backward_rows)(mine, classes, dst, diff_dst, diff_src);
  });
}

void softmax_cross_entropy(int64_t rows, int64_t classes, const float* logits, const int32_t* labels, float* losses,
                           float* probabilities, int threads) {
  for_rows(rows, classes, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(softmax_rows)(mine, classes, logits, labels, losses, probabilities);
  });
}

void softmax_cross_entropy_backward(int64_t rows, int64_t classes, const float* probabilities, const int32_t* labels,
                                    const float* diff_losses, float* diff_logits, int threads) {
  for_rows(rows, classes, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(cross_entropy_backward_rows)
    (mine, classes, probabilities, labels, diff_losses, diff_logits);
  });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
