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
#include "base/wait_policy.h"
#include "bench_model.h"
#include "machine_limits.h"
#include "train/describe.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median time of each kernel over many runs, in microseconds.
std::vector<double> kernel_times(graph::Program& program, int runs) {
  std::vector<std::vector<double>> samples(program.kernels().size());
  std::vector<uint64_t> before(samples.size());
  for (int i = 0; i < runs; ++i) {
    program.run_profiled({1, 1, 0});
    for (size_t k = 0; k < samples.size(); ++k) {
      const uint64_t now = program.kernels()[k].nanoseconds;
      samples[k].push_back(static_cast<double>(now - before[k]) / 1e3);
      before[k] = now;
    }
  }
  std::vector<double> times;
  for (std::vector<double>& of_kernel : samples) times.push_back(median(of_kernel));
  return times;
}

void print_kernels(const graph::Program& program, const std::vector<double>& times, double step_us) {
  std::vector<size_t> order;
  for (size_t k = 0; k < times.size(); ++k) {
    if (times[k] > 0) order.push_back(k);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] > times[b]; });
  std::printf("%-62s %-11s %-9s %9s %7s\n", "node", "kernel", "layout", "us", "share");
  double sum = 0;
  for (const size_t k : order) {
    const graph::KernelInfo& kernel = program.kernels()[k];
    sum += times[k];
    std::printf("%-62s %-11s %-9s %9.2f %6.1f%%\n", kernel.name.c_str(), std::string(kernel.implementation).c_str(),
                kernel.layout.str().c_str(), times[k], 100.0 * times[k] / step_us);
  }
  std::printf("%-62s %-11s %-9s %9.2f %6.1f%%\n", "optimizer and the rest of the step", "", "", step_us - sum,
              100.0 * (step_us - sum) / step_us);
}

int run(const BenchOptions& options) {
  const double peak = measure_gflops(options.threads);
  std::printf("machine: %.0f GFLOP/s and %.1f GB/s with %d threads\n", peak, measure_bandwidth(options.threads),
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
  const double step_ms = median(times);
  graph::Program& program = model.programs().for_batch(options.batch);
  const std::vector<double> kernels = kernel_times(program, kRuns);
  train::DescribeRequest request;
  request.model = &nn::find_model(options.model);
  request.batch = options.batch;
  const train::ModelDescription description = train::describe(request);
  const auto flops = static_cast<double>(description.forward_flops + description.backward_flops);
  std::printf("%s batch %lld: %.4f ms per step, %.2f MFLOP, %.1f GFLOP/s, %.0f%% of the machine's peak\n\n",
              options.model.c_str(), static_cast<long long>(options.batch), step_ms, flops / 1e6, flops / step_ms / 1e6,
              100.0 * flops / step_ms / 1e6 / peak);
  print_kernels(program, kernels, 1e3 * step_ms);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::base::ensure_wait_policy(lockstep::base::WaitPolicy::brief, false, argv);
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
