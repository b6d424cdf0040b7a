// Measures the cost of an empty parallel loop, and of changing the number of parts from one loop to the next. The
// second figure is a ratio to loops of a constant size in the same run. A ratio far from 1 means that the OpenMP
// runtime ends and creates threads in between.
//
//   parallel_regions [THREADS]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/wait_policy.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLoops = 500;  ///< loops of each size in a round
constexpr int kRounds = 15;
constexpr double kMicro = 1e6;

/// Runs loops with these numbers of parts in turn; returns the microseconds of one loop.
double measure(const std::vector<int>& parts, int team) {
  const Clock::time_point before = Clock::now();
  for (int i = 0; i < kLoops; ++i) {
    for (const int count : parts) base::parallel({count, team}, [](int, int) {});
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - before).count();
  return kMicro * seconds / (kLoops * static_cast<double>(parts.size()));
}

struct Row {
  std::vector<int> parts;
  double best = 1e9;
};

std::string name(const Row& row) { return fmt::format("{}", fmt::join(row.parts, " then ")); }

int run(int team) {
  std::vector<Row> rows{{{team}}};
  for (int parts = team / 2; parts >= 1; parts /= 2) rows.push_back({{parts}});
  for (int parts = team / 2; parts >= 1; parts /= 2) rows.push_back({{team, parts}});
  for (Row& row : rows) measure(row.parts, team);
  // Interleaved, so that other load on the machine disturbs all equally.
  for (int round = 0; round < kRounds; ++round) {
    for (Row& row : rows) row.best = std::min(row.best, measure(row.parts, team));
  }
  fmt::print("empty loops of a team of {}, the least of {} rounds\n", team, kRounds);
  fmt::print("{:>16} {:>12} {:>8}\n", "parts", "us per loop", "ratio");
  for (const Row& row : rows) fmt::print("{:>16} {:>12.2f} {:>8.2f}\n", name(row), row.best, row.best / rows[0].best);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  const int cores = lockstep::base::available_cores();
  const int team = argc > 1 ? std::atoi(argv[1]) : cores;
  if (argc > 2 || team < 2) {
    fmt::print(stderr, "usage: parallel_regions [THREADS], at least 2\n");
    return 2;
  }
  using lockstep::base::WaitPolicy;
  lockstep::base::ensure_wait_policy(team <= cores ? WaitPolicy::brief : WaitPolicy::block, false, argv);
  return lockstep::run(team);
}
