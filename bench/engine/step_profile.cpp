// Where the time of a training step goes, by op, beside the machine's limits measured in the same run.
//
//   step_profile [MODEL] [BATCH] [THREADS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "bench_model.h"
#include "machine_limits.h"
#include "ops/op_table.h"
#include "train/describe.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void print_kernels(const graph::Program& program, int runs, double step_ms) {
  std::vector<const graph::KernelInfo*> kernels;
  for (const graph::KernelInfo& kernel : program.kernels()) {
    if (kernel.nanoseconds > 0) kernels.push_back(&kernel);
  }
  std::sort(kernels.begin(), kernels.end(), [](auto* a, auto* b) { return a->nanoseconds > b->nanoseconds; });
  std::printf("%-44s %-24s %-11s %-12s %9s %7s\n", "node", "op", "kernel", "layout", "us", "share");
  for (const auto* kernel : kernels) {
    const double us = static_cast<double>(kernel->nanoseconds) / 1e3 / runs;
    std::printf("%-44s %-24s %-11s %-12s %9.2f %6.1f%%\n", kernel->name.c_str(),
                std::string(ops::name(kernel->op)).c_str(), std::string(kernel->implementation).c_str(),
                kernel->layout.str().c_str(), us, us / 10 / step_ms);
  }
}

int run(const BenchOptions& options) {
  const MachineLimits limits = measure_limits(options.threads);
  std::printf("machine: %.0f GFLOP/s and %.1f GB/s with %d threads\n", limits.gflops, limits.gigabytes_per_second,
              options.threads);
  BenchModel model(options);
  for (int i = 0; i < 50; ++i) model.step();
  constexpr int kRuns = 200;
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const Clock::time_point start = Clock::now();
    model.step();
    times.push_back(milliseconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  const double step_ms = times[kRuns / 2];
  graph::Program& program = model.programs().for_batch(options.batch);
  for (int i = 0; i < kRuns; ++i) program.run_profiled({1, 1, 0});
  train::DescribeRequest request;
  request.model = &nn::find_model(options.model);
  request.batch = options.batch;
  const train::ModelDescription description = train::describe(request);
  const auto flops = static_cast<double>(description.forward_flops + description.backward_flops);
  std::printf("%s batch %lld: %.4f ms per step, %.2f MFLOP, %.1f GFLOP/s, %.0f%% of the machine's peak\n\n",
              options.model.c_str(), static_cast<long long>(options.batch), step_ms, flops / 1e6, flops / step_ms / 1e6,
              100.0 * flops / step_ms / 1e6 / limits.gflops);
  print_kernels(program, kRuns, step_ms);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::BenchOptions options;
  options.threads = lockstep::base::available_cores();
  if (argc > 1) options.model = argv[1];
  if (argc > 2) options.batch = std::atoll(argv[2]);
  if (argc > 3) options.threads = std::atoi(argv[3]);
  options.optimizer = options.model == "lr" ? "sgd" : "adam";
  try {
    return lockstep::bench::run(options);
  } catch (const std::exception& error) {
    std::cerr << "step_profile: " << error.what() << "\n";
    return 1;
  }
}
