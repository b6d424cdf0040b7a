// The CPU kernels on the shapes of softmax regression and LeNet, in GFLOP/s or GB/s and as a share of the same cores'
// peak with multiply-adds alone. Arguments: layer, batch, threads. LOCKSTEP_MAX_ISA limits the instruction set.
//
//   kernels_bench --benchmark_filter=conv/.*/64/2
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/batch_conv.h"
#include "backend/cpu/kernels/batch_layout.h"
#include "backend/cpu/kernels/batch_reorder.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/kernels/pool.h"
#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/kernels/softmax.h"
#include "machine_limits.h"

namespace lockstep::backend::cpu {
namespace {

/// Returns the operations per second of one core, an upper bound.
double peak() {
  static const double flops = 1e9 * bench::measure_gflops(1);
  return flops;
}

/// Floats of a tensor, aligned as in a program's arena.
class Floats {
 public:
  explicit Floats(int64_t count) : data_(static_cast<float*>(std::aligned_alloc(64, (count / 16 + 1) * 64))) {
    for (int64_t i = 0; i < count; ++i) data_.get()[i] = static_cast<float>(i * 7919 % 1000) / 1000.0F - 0.5F;
  }
  float* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
};

/// Times body, which does `flops` operations or moves `bytes` bytes per call.
template <class Body>
void run(benchmark::State& state, int threads, double flops, double bytes, Body body) {
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const auto calls = static_cast<double>(state.iterations());
  if (flops > 0) {
    state.counters["FLOP/s"] = Counter(flops * calls, Counter::kIsRate);
    state.counters["of_peak"] = Counter(flops * calls / (peak() * threads), Counter::kIsRate);
  }
  if (bytes > 0) state.counters["B/s"] = Counter(bytes * calls, Counter::kIsRate);
}

int arg(const benchmark::State& state, size_t i) { return static_cast<int>(state.range(i)); }

struct ConvCase {
  explicit ConvCase(const benchmark::State& state)
      : threads(arg(state, 2)),
        conv(layer(arg(state, 0), state.range(1))),
        src(batch_blocked_size(conv.batch, conv.in_channels * conv.in_height * conv.in_width, conv.lanes)),
        dst(batch_blocked_size(conv.batch, conv.out_channels * conv.out_height() * conv.out_width(), conv.lanes)),
        weights(conv.out_channels * conv.in_channels * 25),
        bias(conv.out_channels),
        scratch(batch_conv_scratch(conv, ConvPass::backward_weights, threads)) {}

  static BatchConv layer(int which, int64_t batch) {
    BatchConv conv;
    conv.lanes = batch_lanes(batch);
    conv.batch = batch;
    conv.in_channels = which == 1 ? 1 : 6;
    conv.in_height = conv.in_width = which == 1 ? 28 : 14;
    conv.out_channels = which == 1 ? 6 : 16;
    conv.window = which == 1 ? Window2d{5, 5, 1, 1, 2, 2, 2, 2} : Window2d{5, 5, 1, 1, 0, 0, 0, 0};
    return conv;
  }

  /// Taps outside the image are not counted, since no kernel computes them.
  [[nodiscard]] double flops() const {
    const double taps = conv.window.pad_top > 0 ? 28 * 5 - 6 : 10 * 5;
    return 2.0 * static_cast<double>(conv.batch * conv.in_channels * conv.out_channels) * taps * taps;
  }

  int threads;
  BatchConv conv;
  Floats src, dst, weights, bias, scratch;
};

void conv_forward(benchmark::State& state) {
  ConvCase c(state);
  run(state, c.threads, c.flops(), 0, [&] {
    batch_conv_forward(c.conv, c.src.data(), c.weights.data(), c.bias.data(), Activation::relu, c.dst.data(),
                       c.scratch.data(), c.threads);
  });
}

void conv_backward_data(benchmark::State& state) {
  ConvCase c(state);
  run(state, c.threads, c.flops(), 0, [&] {
    batch_conv_backward_data(c.conv, c.dst.data(), c.weights.data(), c.src.data(), c.scratch.data(), c.threads);
  });
}

void conv_backward_weights(benchmark::State& state) {
  ConvCase c(state);
  run(state, c.threads, c.flops(), 0, [&] {
    batch_conv_backward_weights(c.conv, c.src.data(), c.dst.data(), c.weights.data(), c.bias.data(), c.scratch.data(),
                                c.threads);
  });
}

/// Fully connected layers: LeNet's three and softmax regression.
constexpr std::array<std::array<int64_t, 2>, 4> kDense{{{400, 120}, {120, 84}, {84, 10}, {784, 10}}};

void run_gemm(benchmark::State& state, const Gemm& shape, bool bias) {
  const int threads = arg(state, 2);
  Floats a(shape.m * shape.k);
  Floats b(shape.k * shape.n);
  Floats row(shape.n);
  Floats c(shape.m * shape.n);
  Floats scratch(gemm_scratch(shape, threads));
  run(state, threads, 2.0 * static_cast<double>(shape.m * shape.n * shape.k), 0,
      [&] { gemm(shape, a.data(), b.data(), bias ? row.data() : nullptr, c.data(), scratch.data(), threads); });
}

void dense_forward(benchmark::State& state) {
  const auto [in, out] = kDense[static_cast<size_t>(state.range(0))];
  run_gemm(state, {.m = state.range(1), .n = out, .k = in, .activation = Activation::relu}, true);
}

void dense_backward_data(benchmark::State& state) {
  const auto [in, out] = kDense[static_cast<size_t>(state.range(0))];
  run_gemm(state, {.m = state.range(1), .n = in, .k = out, .transpose_b = true}, false);
}

void dense_backward_weights(benchmark::State& state) {
  const auto [in, out] = kDense[static_cast<size_t>(state.range(0))];
  run_gemm(state, {.m = in, .n = out, .k = state.range(1), .transpose_a = true}, false);
}

struct PoolCase {
  explicit PoolCase(const benchmark::State& state) : threads(arg(state, 2)) {
    pool.lanes = batch_lanes(state.range(1));
    pool.planes = batch_blocks(state.range(1), pool.lanes) * (state.range(0) == 1 ? 6 : 16);
    pool.in_height = pool.in_width = state.range(0) == 1 ? 28 : 10;
    pool.window = {2, 2, 2, 2};
    size = pool.planes * pool.in_height * pool.in_width * pool.lanes;
  }
  int threads;
  Pool pool;
  int64_t size;
};

void pool_forward(benchmark::State& state) {
  const PoolCase c(state);
  Floats src(c.size);
  Floats dst(c.size / 4);
  run(state, c.threads, 0, 5.0 * static_cast<double>(c.size),
      [&] { max_pool(c.pool, src.data(), dst.data(), c.threads); });
}

void pool_backward(benchmark::State& state) {
  const PoolCase c(state);
  Floats src(c.size);
  Floats diff_dst(c.size / 4);
  Floats diff_src(c.size);
  run(state, c.threads, 0, 9.0 * static_cast<double>(c.size),
      [&] { max_pool_backward(c.pool, src.data(), diff_dst.data(), diff_src.data(), true, c.threads); });
}

void reorder(benchmark::State& state) {
  const int64_t rest = state.range(0);
  const int64_t batch = state.range(1);
  const int lanes = batch_lanes(batch);
  Floats plain(batch * rest);
  Floats blocked(batch_blocked_size(batch, rest, lanes));
  run(state, arg(state, 2), 0, 8.0 * static_cast<double>(batch * rest),
      [&] { to_batch_blocked(lanes, batch, rest, plain.data(), blocked.data(), arg(state, 2)); });
}

void cross_entropy(benchmark::State& state) {
  const int64_t classes = state.range(0);
  const int64_t rows = state.range(1);
  const int threads = arg(state, 2);
  Floats logits(rows * classes);
  Floats probabilities(rows * classes);
  Floats losses(rows);
  const std::vector<int32_t> labels(static_cast<size_t>(rows), 3);
  run(state, threads, 0, 8.0 * static_cast<double>(rows * classes), [&] {
    softmax_cross_entropy(rows, classes, logits.data(), labels.data(), losses.data(), probabilities.data(), threads);
  });
}

void cross_entropy_backward(benchmark::State& state) {
  const int64_t classes = state.range(0);
  const int64_t rows = state.range(1);
  const int threads = arg(state, 2);
  Floats probabilities(rows * classes);
  Floats diff_losses(rows);
  Floats diff_logits(rows * classes);
  const std::vector<int32_t> labels(static_cast<size_t>(rows), 3);
  run(state, threads, 0, 8.0 * static_cast<double>(rows * classes), [&] {
    softmax_cross_entropy_backward(rows, classes, probabilities.data(), labels.data(), diff_losses.data(),
                                   diff_logits.data(), threads);
  });
}

void bias_gradient(benchmark::State& state) {
  const int64_t count = state.range(0);
  const int64_t rows = state.range(1);
  Floats src(rows * count);
  Floats dst(count);
  run(state, arg(state, 2), 0, 4.0 * static_cast<double>(rows * count),
      [&] { column_sums(src.data(), dst.data(), rows, count, arg(state, 2)); });
}

void relu_gradient(benchmark::State& state) {
  const int64_t count = state.range(0) * state.range(1);
  Floats y(count);
  Floats dy(count);
  run(state, arg(state, 2), 0, 12.0 * static_cast<double>(count),
      [&] { binary(BinaryFn::relu_grad, y.data(), dy.data(), dy.data(), count, arg(state, 2)); });
}

using Cases = benchmark::internal::Benchmark;

void conv_cases(Cases* cases) { cases->ArgsProduct({{1, 2}, {8, 64, 512}, {1, 2}})->UseRealTime(); }

void dense_cases(Cases* cases) { cases->ArgsProduct({{0, 1, 2}, {8, 64, 512}, {1, 2}})->UseRealTime(); }

void regression_cases(Cases* cases) {
  dense_cases(cases);
  cases->ArgsProduct({{3}, {1, 100, 512}, {1, 2}});
}

void class_cases(Cases* cases) { cases->ArgsProduct({{10}, {1, 100, 512}, {1, 2}})->UseRealTime(); }

void image_cases(Cases* cases) { cases->ArgsProduct({{784, 400}, {8, 64, 512}, {1, 2}})->UseRealTime(); }

BENCHMARK(conv_forward)->Apply(conv_cases);
BENCHMARK(conv_backward_data)->Apply(conv_cases);
BENCHMARK(conv_backward_weights)->Apply(conv_cases);
BENCHMARK(dense_forward)->Apply(regression_cases);
BENCHMARK(dense_backward_data)->Apply(dense_cases);
BENCHMARK(dense_backward_weights)->Apply(regression_cases);
BENCHMARK(pool_forward)->Apply(conv_cases);
BENCHMARK(pool_backward)->Apply(conv_cases);
BENCHMARK(reorder)->Apply(image_cases);
BENCHMARK(cross_entropy)->Apply(class_cases);
BENCHMARK(cross_entropy_backward)->Apply(class_cases);
BENCHMARK(bias_gradient)->Apply(class_cases);
BENCHMARK(relu_gradient)->Apply(image_cases);

}  // namespace
}  // namespace lockstep::backend::cpu

int main(int argc, char** argv) {
  namespace cpu = lockstep::backend::cpu;
  cpu::limit_isa_from_environment();
  std::cout << cpu::name(cpu::active_isa()) << ", peak of one core " << cpu::peak() / 1e9 << " GFLOP/s\n";
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
