#include "backend/cpu/kernels/batch_reorder.h"

#include "backend/cpu/kernels/batch_layout.h"
#include "base/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/batch_reorder.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Calls fn(block, first element, elements) for a thread's share of the L x L squares of all blocks.
template <int Lanes, class Fn>
HWY_INLINE void for_squares(int64_t batch, int64_t rest, int thread, int threads, Fn fn) {
  const int64_t squares = (rest + Lanes - 1) / Lanes;
  const base::Range mine = base::aligned_share(batch_blocks(batch, Lanes) * squares, thread, threads);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t first = i % squares * Lanes;
    fn(i / squares, first, std::min<int64_t>(Lanes, rest - first));
  }
}

template <int Lanes>
void block_squares(int64_t batch, int64_t rest, const float* plain, float* blocked, int thread, int threads) {
  const hn::FixedTag<float, Lanes> d;
  for_squares<Lanes>(batch, rest, thread, threads, [&](int64_t block, int64_t first, int64_t count) HWY_ATTR {
    hn::Vec<decltype(d)> rows[Lanes];
    const float* src = plain + block * Lanes * rest + first;
    const int64_t images = std::min<int64_t>(Lanes, batch - block * Lanes);
    if (images == Lanes && count == Lanes) {
      HWY_UNROLL(16)
      for (int i = 0; i < Lanes; ++i) rows[i] = hn::LoadU(d, src + i * rest);
    } else {
      HWY_UNROLL(16)
      for (int i = 0; i < Lanes; ++i) rows[i] = i < images ? load_some(d, src + i * rest, count) : hn::Zero(d);
    }
    transpose(d, rows);
    float* dst = blocked + (block * rest + first) * Lanes;
    HWY_UNROLL(16)
    for (int i = 0; i < Lanes; ++i) {
      if (i < count) hn::StoreU(rows[i], d, dst + i * Lanes);
    }
  });
}

template <int Lanes>
void plain_squares(int64_t batch, int64_t rest, const float* blocked, float* plain, int thread, int threads) {
  const hn::FixedTag<float, Lanes> d;
  for_squares<Lanes>(batch, rest, thread, threads, [&](int64_t block, int64_t first, int64_t count) HWY_ATTR {
    hn::Vec<decltype(d)> rows[Lanes];
    const float* src = blocked + (block * rest + first) * Lanes;
    HWY_UNROLL(16)
    for (int i = 0; i < Lanes; ++i) rows[i] = i < count ? hn::LoadU(d, src + i * Lanes) : hn::Zero(d);
    transpose(d, rows);
    float* dst = plain + block * Lanes * rest + first;
    const int64_t images = std::min<int64_t>(Lanes, batch - block * Lanes);
    HWY_UNROLL(16)
    for (int i = 0; i < Lanes; ++i) {
      if (i < images && count == Lanes) hn::StoreU(rows[i], d, dst + i * rest);
      if (i < images && count < Lanes) store_some(d, rows[i], dst + i * rest, count);
    }
  });
}

void to_blocked_share(int lanes, int64_t batch, int64_t rest, const float* plain, float* blocked, int thread,
                      int threads) {
#if HWY_TARGET == HWY_AVX3
  if (lanes == 16) return block_squares<16>(batch, rest, plain, blocked, thread, threads);
#endif
  static_cast<void>(lanes);
  block_squares<std::min(kLanes, 8)>(batch, rest, plain, blocked, thread, threads);
}

void to_plain_share(int lanes, int64_t batch, int64_t rest, const float* blocked, float* plain, int thread,
                    int threads) {
#if HWY_TARGET == HWY_AVX3
  if (lanes == 16) return plain_squares<16>(batch, rest, blocked, plain, thread, threads);
#endif
  static_cast<void>(lanes);
  plain_squares<std::min(kLanes, 8)>(batch, rest, blocked, plain, thread, threads);
}

/// A square of `lanes` images and `block` channels at one position.
struct Square {
  int64_t images;
  int64_t channels;
  int64_t in_batch;    ///< offset of its first channel in the batch-blocked tensor
  int64_t in_channel;  ///< offset of its first image in the channel-blocked tensor
  int64_t to_channel;  ///< floats to the next channel in the batch-blocked tensor
  int64_t to_image;    ///< floats to the next image in the channel-blocked tensor
};

/// Calls fn(square) for a thread's share of the blocks of images and channels.
template <class Fn>
HWY_INLINE void for_blocked_squares(const BothBlocked& s, int thread, int threads, Fn fn) {
  const int64_t channel_blocks = (s.channels + s.block - 1) / s.block;
  const base::Range mine = base::aligned_share(batch_blocks(s.batch, s.lanes) * channel_blocks, thread, threads);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t image = i / channel_blocks * s.lanes;
    const int64_t channel = i % channel_blocks * s.block;
    Square square{};
    square.images = std::min<int64_t>(s.lanes, s.batch - image);
    square.channels = std::min<int64_t>(s.block, s.channels - channel);
    square.to_channel = s.inner * s.lanes;
    square.to_image = channel_blocks * s.inner * s.block;
    for (int64_t position = 0; position < s.inner; ++position) {
      square.in_batch = (image * s.channels + channel * s.lanes) * s.inner + position * s.lanes;
      square.in_channel = image * square.to_image + channel * s.inner + position * s.block;
      fn(square);
    }
  }
}

void to_channels_share(const BothBlocked& s, const float* src, float* dst, int thread, int threads) {
  const Full d;
  const bool square_vectors = s.lanes == kLanes && s.block == kLanes;
  for_blocked_squares(s, thread, threads, [&](const Square& q) HWY_ATTR {
    if (!square_vectors) {
      for (int64_t n = 0; n < q.images; ++n) {
        float* to = dst + q.in_channel + n * q.to_image;
        for (int64_t c = 0; c < s.block; ++c) {
          to[c] = c < q.channels ? src[q.in_batch + c * q.to_channel + n] : 0.0F;
        }
      }
      return;
    }
    hn::Vec<Full> rows[kLanes];
    for (int64_t c = 0; c < kLanes; ++c) {
      rows[c] = c < q.channels ? hn::LoadU(d, src + q.in_batch + c * q.to_channel) : hn::Zero(d);
    }
    transpose(d, rows);
    for (int64_t n = 0; n < q.images; ++n) hn::StoreU(rows[n], d, dst + q.in_channel + n * q.to_image);
  });
}

void from_channels_share(const BothBlocked& s, const float* src, float* dst, int thread, int threads) {
  const Full d;
  const bool square_vectors = s.lanes == kLanes && s.block == kLanes;
  for_blocked_squares(s, thread, threads, [&](const Square& q) HWY_ATTR {
    if (!square_vectors) {
      for (int64_t c = 0; c < q.channels; ++c) {
        float* to = dst + q.in_batch + c * q.to_channel;
        for (int64_t n = 0; n < s.lanes; ++n) to[n] = n < q.images ? src[q.in_channel + n * q.to_image + c] : 0.0F;
      }
      return;
    }
    hn::Vec<Full> rows[kLanes];
    for (int64_t n = 0; n < kLanes; ++n) {
      rows[n] = n < q.images ? hn::LoadU(d, src + q.in_channel + n * q.to_image) : hn::Zero(d);
    }
    transpose(d, rows);
    for (int64_t c = 0; c < q.channels; ++c) hn::StoreU(rows[c], d, dst + q.in_batch + c * q.to_channel);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(to_blocked_share);
HWY_EXPORT(to_plain_share);
HWY_EXPORT(to_channels_share);
HWY_EXPORT(from_channels_share);

/// Elements moved for which one more thread pays off.
constexpr int64_t kGrain = 4'096;

}  // namespace

void to_batch_blocked(int lanes, int64_t batch, int64_t rest, const float* plain, float* blocked, int threads) {
  base::parallel(base::split_for(batch * rest, kGrain, threads), [&](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(to_blocked_share)(lanes, batch, rest, plain, blocked, thread, count);
  });
}

void from_batch_blocked(int lanes, int64_t batch, int64_t rest, const float* blocked, float* plain, int threads) {
  base::parallel(base::split_for(batch * rest, kGrain, threads), [&](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(to_plain_share)(lanes, batch, rest, blocked, plain, thread, count);
  });
}

void batch_to_channel_blocked(const BothBlocked& shape, const float* src, float* dst, int threads) {
  base::parallel(base::split_for(shape.batch * shape.channels * shape.inner, kGrain, threads),
                 [&](int thread, int count) {
                   HWY_DYNAMIC_DISPATCH(to_channels_share)(shape, src, dst, thread, count);
                 });
}

void channel_to_batch_blocked(const BothBlocked& shape, const float* src, float* dst, int threads) {
  base::parallel(base::split_for(shape.batch * shape.channels * shape.inner, kGrain, threads),
                 [&](int thread, int count) {
                   HWY_DYNAMIC_DISPATCH(from_channels_share)(shape, src, dst, thread, count);
                 });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
