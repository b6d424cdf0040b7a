#include "backend/cpu/kernels/batch_layout.h"

#include "backend/cpu/isa.h"

namespace lockstep::backend::cpu {
namespace {

constexpr int64_t kSmallestBatch = 4;

}  // namespace

int batch_lanes(int64_t batch) {
  if (batch < kSmallestBatch) return 0;
  switch (active_isa()) {
    case Isa::sse4:
      return 4;
    case Isa::avx2:
      return 8;
    case Isa::avx512:
      break;
  }
  // Half vectors, if they spare at least a quarter of the lanes.
  return 4 * batch_blocks(batch, 8) * 8 <= 3 * batch_blocks(batch, 16) * 16 ? 8 : 16;
}

}  // namespace lockstep::backend::cpu
