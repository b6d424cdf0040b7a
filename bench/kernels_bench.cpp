#include <benchmark/benchmark.h>

#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/batch_conv.h"
#include "backend/cpu/kernels/batch_layout.h"
#include "backend/cpu/kernels/gemm.h"

using namespace lockstep::backend::cpu;

namespace {

BatchConv conv1(int64_t batch) {
  return {.lanes = batch_lanes(batch), .batch = batch, .in_channels = 1, .in_height = 28, .in_width = 28,
          .out_channels = 6, .window = {5, 5, 1, 1, 2, 2, 2, 2}};
}
BatchConv conv2(int64_t batch) {
  return {.lanes = batch_lanes(batch), .batch = batch, .in_channels = 6, .in_height = 14, .in_width = 14,
          .out_channels = 16, .window = {5, 5, 1, 1, 0, 0, 0, 0}};
}
BatchConv conv(int which, int64_t batch) { return which == 1 ? conv1(batch) : conv2(batch); }

double flops(const BatchConv& c) {
  return 2.0 * c.batch * c.in_channels * c.out_channels * c.out_height() * c.out_width() * 25;
}

struct Buffer {
  explicit Buffer(int64_t n) : p(static_cast<float*>(std::aligned_alloc(64, (n * 4 + 63) / 64 * 64 + 64))) {}
  Buffer(Buffer&& o) : p(o.p) { o.p = nullptr; }
  ~Buffer() { std::free(p); }
  float* data() { return p; }
  float& operator[](int64_t i) { return p[i]; }
  float* p;
};
Buffer noise(int64_t n) {
  Buffer v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = float(i * 7919 % 1000) / 1000 - 0.5F;
  return v;
}

void BM_forward(benchmark::State& state) {
  BatchConv c = conv(state.range(0), state.range(1));
  auto src = noise(batch_blocked_size(c.batch, c.in_channels * c.in_height * c.in_width, c.lanes));
  auto dst = noise(batch_blocked_size(c.batch, c.out_channels * c.out_height() * c.out_width(), c.lanes));
  auto w = noise(c.out_channels * c.in_channels * 25);
  for (auto _ : state) {
    batch_conv_forward(c, src.data(), w.data(), w.data(), Activation::relu, dst.data(), nullptr, state.range(2));
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPs"] = benchmark::Counter(flops(c) * state.iterations(), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_forward)->ArgsProduct({{1, 2}, {8, 64, 512}, {1, 2}})->UseRealTime();

void BM_backward_data(benchmark::State& state) {
  BatchConv c = conv(state.range(0), state.range(1));
  auto src = noise(batch_blocked_size(c.batch, c.in_channels * c.in_height * c.in_width, c.lanes));
  auto dst = noise(batch_blocked_size(c.batch, c.out_channels * c.out_height() * c.out_width(), c.lanes));
  auto w = noise(c.out_channels * c.in_channels * 25);
  for (auto _ : state) {
    batch_conv_backward_data(c, dst.data(), w.data(), src.data(), nullptr, state.range(2));
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPs"] = benchmark::Counter(flops(c) * state.iterations(), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_backward_data)->ArgsProduct({{2}, {8, 64, 512}, {1, 2}})->UseRealTime();

void BM_backward_weights(benchmark::State& state) {
  BatchConv c = conv(state.range(0), state.range(1));
  auto src = noise(batch_blocked_size(c.batch, c.in_channels * c.in_height * c.in_width, c.lanes));
  auto dst = noise(batch_blocked_size(c.batch, c.out_channels * c.out_height() * c.out_width(), c.lanes));
  auto w = noise(c.out_channels * c.in_channels * 25);
  auto b = noise(c.out_channels);
  auto scratch = noise(batch_conv_scratch(c, ConvPass::backward_weights, state.range(2)) + 1);
  for (auto _ : state) {
    batch_conv_backward_weights(c, src.data(), dst.data(), w.data(), b.data(), scratch.data(), state.range(2));
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPs"] = benchmark::Counter(flops(c) * state.iterations(), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_backward_weights)->ArgsProduct({{1, 2}, {8, 64, 512}, {1, 2}})->UseRealTime();

void BM_gemm(benchmark::State& state) {
  Gemm g{.m = state.range(0), .n = state.range(1), .k = state.range(2), .transpose_a = (state.range(3) & 1) != 0,
         .transpose_b = (state.range(3) & 2) != 0};
  int threads = state.range(4);
  auto a = noise(g.m * g.k), b = noise(g.k * g.n), c = noise(g.m * g.n), scratch = noise(gemm_scratch(g, threads));
  for (auto _ : state) {
    gemm(g, a.data(), b.data(), nullptr, c.data(), scratch.data(), threads);
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPs"] = benchmark::Counter(2.0 * g.m * g.n * g.k * state.iterations(), benchmark::Counter::kIsRate);
}
void gemm_shapes(benchmark::internal::Benchmark* b) {
  for (int t : {1, 2}) {
    for (int m : {1, 8, 64, 512}) {
      for (auto [in, out] : {std::pair{400, 120}, {120, 84}, {84, 10}}) {
        b->Args({m, out, in, 0, t});
        b->Args({m, in, out, 2, t});
        b->Args({in, out, m, 1, t});
      }
    }
    for (int m : {1, 100, 512}) {
      b->Args({m, 10, 784, 0, t});
      b->Args({784, 10, m, 1, t});
    }
  }
}
BENCHMARK(BM_gemm)->Apply(gemm_shapes)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  limit_isa_from_environment();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
