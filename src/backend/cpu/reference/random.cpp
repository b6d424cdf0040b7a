// Random tensors and dropout, word by word; see random_rows.h.
#include "backend/cpu/kernel_list.h"
#include "backend/random_rows.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {
namespace {

constexpr int64_t kPayingSamples = 4096;  // for one more thread

/// Calls body(element index, the four words, number of words used) for every block of four elements.
template <class Body>
void for_blocks(const RandomShape& s, uint32_t stream, const StepContext& context, int threads, Body body) {
  const base::Philox philox = op_random(context, stream);
  const base::Split used = base::split_for(s.rows * s.width, kPayingSamples, threads);
  base::parallel(used, [&](int part, int parts) {
    const base::Range mine = base::share(s.rows, part, parts);
    for (int64_t r = mine.begin; r < mine.end; ++r) {
      const uint64_t row = (context.first_row + static_cast<uint64_t>(r)) << 32;
      for (int64_t j = 0; j < s.width; j += 4) {
        const auto block = philox(context.step, row | static_cast<uint64_t>(j / 4));
        body(r * s.width + j, block, std::min<int64_t>(4, s.width - j));
      }
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> reference_dropout(const KernelRequest& request, const CpuOptions& options) {
  const graph::RandomAttrs attrs = request.node.as<graph::RandomAttrs>();
  const RandomShape s = random_rows(request.out_shape());
  const float kept = 1.0F / (1.0F - attrs.a);
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext& context) {
    for_blocks(s, attrs.stream, context, threads, [&](int64_t at, const base::Philox::Block& words, int64_t count) {
      for (int64_t k = 0; k < count; ++k) {
        const bool stays = base::uniform01(words[static_cast<size_t>(k)]) >= attrs.a;
        m.out()[at + k] = stays ? m.in(0)[at + k] * kept : 0.0F;
      }
    });
  });
}

std::unique_ptr<Kernel> reference_random(const KernelRequest& request, const CpuOptions& options) {
  const graph::RandomAttrs attrs = request.node.as<graph::RandomAttrs>();
  const RandomShape s = random_rows(request.out_shape());
  const bool normal = request.node.op == graph::Op::random_normal;
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext& context) {
    for_blocks(s, attrs.stream, context, threads, [&](int64_t at, const base::Philox::Block& words, int64_t count) {
      const auto first = base::normal2(words[0], words[1]);
      const auto second = base::normal2(words[2], words[3]);
      const float values[4]{first[0], first[1], second[0], second[1]};
      for (int64_t k = 0; k < count; ++k) {
        m.out()[at + k] = normal ? attrs.a + attrs.b * values[k]
                                 : attrs.a + (attrs.b - attrs.a) * base::uniform01(words[static_cast<size_t>(k)]);
      }
    });
  });
}

}  // namespace lockstep::backend::cpu
