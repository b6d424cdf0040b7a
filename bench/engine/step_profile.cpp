// The time of a training step by kernel, and each kernel's share of the machine's peak measured in the same run.
// Winograd's convolutions count as the direct sums they replace, so they may exceed the peak.
//
//   step_profile [MODEL [BATCH [THREADS [OPTIMIZER]]]] [--exact-conv] [--bf16 [--blocked | --channels-last]]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/wait_policy.h"
#include "bench_model.h"
#include "inspect/describe.h"
#include "machine_limits.h"

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

/// Median times over many steps, in microseconds.
struct Times {
  std::vector<double> kernels;
  double update = 0;
};

/// Runs whole steps, since kernels take longer after an update: other cores have written the parameters.
Times times_of_parts(BenchModel& model, size_t kernels, int steps) {
  std::vector<std::vector<double>> samples(kernels, std::vector<double>(static_cast<size_t>(steps)));
  std::vector<double> updates;
  for (size_t i = 0; i < static_cast<size_t>(steps); ++i) {
    updates.push_back(1e6 * model.step_observed([&](size_t kernel, Clock::time_point begin, Clock::time_point end) {
      samples[kernel][i] = std::chrono::duration<double, std::micro>(end - begin).count();
    }));
  }
  Times times;
  for (std::vector<double>& of_kernel : samples) times.kernels.push_back(median(of_kernel));
  times.update = median(updates);
  return times;
}

/// Returns the GFLOP/s of a kernel and its share of the peak; blank for kernels bound by memory.
std::string rate_text(double flops, double us, double peak) {
  constexpr double kWorthSaying = 0.02;
  const double rate = flops / us / 1e3;
  if (rate < kWorthSaying * peak) return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%8.1f %5.0f%%", rate, 100.0 * rate / peak);
  return text.data();
}

void print_parts(const program::Program& program, const Times& parts, double step_us, double peak) {
  const std::vector<double>& times = parts.kernels;
  std::vector<size_t> order;
  for (size_t k = 0; k < times.size(); ++k) {
    if (times[k] > 0) order.push_back(k);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] > times[b]; });
  const char* const format = "%-48s %-33s %-10s %11.2f %6.1f%% %s\n";
  std::printf("%-48s %-33s %-10s %11s %7s %8s %6s\n", "node", "kernel", "layout", "us", "share", "GFLOP/s", "peak");
  double sum = parts.update;
  for (const size_t k : order) {
    const program::KernelInfo& kernel = program.kernels()[k];
    const auto flops = static_cast<double>(inspect::flops(program.graph(), program.graph().nodes()[k]));
    sum += times[k];
    std::printf(format, kernel.name.c_str(), kernel.implementation.c_str(), kernel.layout.str().c_str(), times[k],
                100.0 * times[k] / step_us, rate_text(flops, times[k], peak).c_str());
  }
  std::printf(format, "update of the parameters", "", "", parts.update, 100.0 * parts.update / step_us, "");
  std::printf(format, "parameter copies, the rest", "", "", step_us - sum, 100.0 * (step_us - sum) / step_us, "");
}

/// Warms up for about a second; returns the number of runs that take the given time, within limits.
int runs_in(BenchModel& model, double seconds) {
  constexpr int kFewest = 3;
  constexpr int kMost = 200;
  const Clock::time_point start = Clock::now();
  int warm = 0;
  do {
    model.step();
    ++warm;
  } while (milliseconds_since(start) < 1e3 && warm < kMost);
  const double each = milliseconds_since(start) / warm;
  return std::clamp(static_cast<int>(1e3 * seconds / each), kFewest, kMost);
}

int run(const BenchOptions& options) {
  const double peak = measure_gflops(options.threads);
  std::printf("machine: %.0f GFLOP/s and %.1f GB/s with %d threads\n", peak, measure_bandwidth(options.threads),
              options.threads);
  BenchModel model(options);
  const int runs = runs_in(model, 5);
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const Clock::time_point start = Clock::now();
    model.step();
    times.push_back(milliseconds_since(start));
  }
  const double step_ms = median(times);
  const program::Program& program = model.programs().for_batch(options.batch);
  const Times parts = times_of_parts(model, program.kernels().size(), runs);
  inspect::DescribeRequest request;
  request.model = &nn::find_model(options.model);
  request.options = options.options;
  request.batch = options.batch;
  request.classes = request.model->classes;
  const inspect::ModelDescription description = inspect::describe(request);
  const auto flops = static_cast<double>(description.forward_flops + description.backward_flops);
  std::printf("%s batch %lld: %.4f ms per step, %.1f examples/s, %.2f MFLOP, %.1f GFLOP/s, %.0f%% of the peak\n\n",
              options.model.c_str(), static_cast<long long>(options.batch), step_ms,
              1e3 * static_cast<double>(options.batch) / step_ms, flops / 1e6, flops / step_ms / 1e6,
              100.0 * flops / step_ms / 1e6 / peak);
  print_parts(program, parts, 1e3 * step_ms, peak);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::base::ensure_wait_policy(lockstep::base::WaitPolicy::brief, false, argv);
  lockstep::bench::BenchOptions options;
  options.threads = lockstep::base::available_cores();
  std::vector<std::string> arguments(argv + 1, argv + argc);
  options.exact_conv = std::erase(arguments, "--exact-conv") > 0;
  options.bf16 = std::erase(arguments, "--bf16") > 0;
  if (std::erase(arguments, "--blocked") > 0) options.channels_last = false;
  if (std::erase(arguments, "--channels-last") > 0) options.channels_last = true;
  try {
    if (!arguments.empty()) options.model = arguments[0];
    options.optimizer = lockstep::nn::find_model(options.model).defaults.optimizer;
    if (arguments.size() > 1) options.batch = std::stoll(arguments[1]);
    if (arguments.size() > 2) options.threads = std::stoi(arguments[2]);
    if (arguments.size() > 3) options.optimizer = arguments[3];
    return lockstep::bench::run(options);
  } catch (const std::exception& error) {
    std::cerr << "step_profile: " << error.what() << "\n";
    return 1;
  }
}
