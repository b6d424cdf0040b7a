#include "settings/machine.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/memory.h"
#include "optim/optimizer.h"
#include "profile/measure.h"
#include "transport/stream.h"

namespace lockstep::profile {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Returns the CPU time of this process so far.
double cpu_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Runs `work` until the time is over, and returns the median of its durations.
template <typename Work>
double median_time(double seconds, const Work& work) {
  std::vector<double> times;
  work();
  const Clock::time_point begin = Clock::now();
  while (times.size() < 5 || seconds_since(begin) < seconds) {
    const Clock::time_point before = Clock::now();
    work();
    times.push_back(seconds_since(before));
  }
  return std::max(median_of(times), 1e-9);
}

void measure_memory(plan::Profile& profile, double seconds) {
  constexpr size_t kFloats = size_t{8} << 20;  // larger than most caches
  constexpr double kBytes = static_cast<double>(kFloats) * sizeof(float);
  std::vector<float> from(kFloats, 1.0F);
  std::vector<float> to(kFloats, 0.0F);
  profile.memory_rate = kBytes / median_time(seconds, [&] { std::memcpy(to.data(), from.data(), kFloats * 4); });
  // A server adds a gradient to the sum, and applies the sum: sizes that fit into a cache, as most models do.
  constexpr size_t kGradient = 256 * 1024;
  float* sum = to.data();
  const float* gradient = from.data();
  profile.costs.add = median_time(seconds,
                                  [&] {
                                    for (size_t i = 0; i < kGradient; ++i) sum[i] += gradient[i];
                                  }) /
                      (kGradient * 4);
  optim::Optimizer optimizer({}, kGradient, 1);
  const double update = median_time(seconds, [&] {
    optimizer.apply({to.data(), kGradient}, {from.data(), kGradient}, {.step = 0, .learning_rate = 1e-6F});
  });
  profile.costs.update_byte = update / (kGradient * 4);
}

/// Sends every frame back.
void echo(transport::Stream& stream) {
  while (true) {
    base::Result<transport::Frame> frame = stream.read();
    if (!frame) return;
    const auto held = std::make_shared<transport::Frame>(std::move(frame.value()));
    if (!stream.write(held->header, held->pieces(), held)) return;
  }
}

struct RoundTrip {
  double seconds = 0;
  double cpu = 0;  ///< of both ends
};

RoundTrip round_trip(transport::Stream& stream, const std::vector<std::byte>& payload, double seconds) {
  const auto once = [&] {
    stream.write({.kind = 1}, payload).or_throw();
    (void)stream.read().value_or_throw();
  };
  for (int i = 0; i < 3; ++i) once();
  std::vector<double> times;
  const double cpu = cpu_seconds();
  const Clock::time_point begin = Clock::now();
  while (times.size() < 5 || seconds_since(begin) < seconds) {
    const Clock::time_point before = Clock::now();
    once();
    times.push_back(seconds_since(before));
  }
  return {median_of(times), (cpu_seconds() - cpu) / static_cast<double>(times.size())};
}

/// A round trip is two messages, and each has two ends, which the costs count each for itself.
void measure_messages(plan::Profile& profile, double seconds) {
  transport::Server server({.address = "127.0.0.1:0", .security = {}}, echo);
  const auto stream = transport::connect("127.0.0.1:" + std::to_string(server.port()),
                                         {.security = {}, .patience = std::chrono::seconds(10)})
                          .value_or_throw();
  constexpr size_t kLarge = size_t{4} << 20;
  const RoundTrip small = round_trip(*stream, std::vector<std::byte>(64), seconds);
  const RoundTrip large = round_trip(*stream, std::vector<std::byte>(kLarge), seconds);
  constexpr double kEnds = 4;
  predict::Costs& costs = profile.costs;
  costs.message = small.cpu / kEnds;
  costs.byte = std::max(0.0, large.cpu - small.cpu) / kEnds / kLarge;
  costs.wake = std::clamp((small.seconds - small.cpu) / 2, 2e-6, 1e-3);
  profile.link_rate = 2 * kLarge / std::max(large.seconds - small.seconds, 1e-9);
}

}  // namespace

void measure_machine(plan::Profile& profile, double seconds) {
  profile.host = base::host_name();
  profile.isa = settings::active_isa();
  profile.memory_bytes = base::machine_memory();
  constexpr double kParts = 5;
  measure_memory(profile, seconds / kParts);
  measure_messages(profile, seconds / kParts);
}

}  // namespace lockstep::profile
