// The cost of an all-reduce, as a ratio to two processes that exchange the same number of bytes over a bare loopback
// socket, and through shared memory with plain copies. All are measured in turn in one run.
//
//   collective_bench [--engines inprocess,gloo] [--ranks 2,3,4] [--bytes 4000,250000,...] [--rounds 10] [--spin US]
//   mpirun -n 3 collective_bench
//
// A round is a block of exchanges by each way. Rank 0 measures. A barrier precedes each block, so that no rank's part
// is ready beforehand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include "bare.h"
#include "crews.h"
#include "lockstep/error.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;
using collective::Collective;

struct Options {
  std::vector<std::string> engines;
  std::vector<int> ranks{2, 3, 4};
  std::vector<size_t> bytes{4'000, 250'000, 4'000'000, 244'000'000};
  int rounds = 10;
  int spin = 0;
};

struct Times {
  std::vector<double> seconds;
  [[nodiscard]] double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  [[nodiscard]] double median() {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

/// Returns enough exchanges in a row for the common start not to matter.
int block_of(size_t bytes) { return static_cast<int>(std::clamp<size_t>(20'000'000 / bytes, 1, 200)); }

void check(const base::Status& result) {
  if (!result) throw Error(result.failure().message());
}

double block(Collective& group, std::span<float> data, int times) {
  check(group.barrier());
  check(group.all_reduce(data.first(1)));
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) check(group.all_reduce(data));
  return std::chrono::duration<double>(Clock::now() - start).count() / times;
}

void report(const Collective& group, size_t bytes, Times& engine, Times& socket, Times& copy) {
  std::printf("%-10s %5d %12zu  %11.1f (%11.1f)  %11.1f  %11.1f  %7.2f (%7.2f)  %7.2f (%7.2f)\n",
              std::string(group.engine()).c_str(), group.size(), bytes, engine.best() * 1e6, engine.median() * 1e6,
              socket.best() * 1e6, copy.best() * 1e6, engine.best() / socket.best(), engine.median() / socket.median(),
              engine.best() / copy.best(), engine.median() / copy.median());
  std::fflush(stdout);
}

/// Runs on each rank; the rank with a partner also measures the bare exchanges.
void measure(Collective& group, const Options& options, BarePartner* partner) {
  for (const size_t bytes : options.bytes) {
    std::vector<float> data(bytes / sizeof(float), 0.0F);
    const int times = block_of(bytes);
    Times engine;
    Times socket;
    Times copy;
    for (int round = -1; round < options.rounds; ++round) {  // the first round warms up
      if (partner != nullptr) {
        const BareTimes bare = partner->exchange(bytes, times);
        if (round >= 0) socket.seconds.push_back(bare.socket);
        if (round >= 0) copy.seconds.push_back(bare.copy);
      }
      const double seconds = block(group, data, times);
      if (round >= 0) engine.seconds.push_back(seconds);
    }
    if (partner != nullptr) report(group, bytes, engine, socket, copy);
  }
}

void print_head(const Options& options) {
  std::printf("microseconds, best of %d rounds (median); %s waits\n", options.rounds,
              options.spin > 0 ? "spinning" : "blocking");
  std::printf("%-10s %5s %12s  %25s  %11s  %11s  %17s  %17s\n", "engine", "ranks", "bytes", "all-reduce", "socket",
              "copy", "over socket", "over copy");
}

void run(Options options) {
  const std::chrono::microseconds spin(options.spin);
  const Job here = job();
  if (here.size > 1) options.ranks = {here.size};
  std::optional<BarePartner> partner;
  if (here.rank == 0) {
    partner.emplace(*std::max_element(options.bytes.begin(), options.bytes.end()), spin);
    print_head(options);
  }
  for (const Crew& crew : crews()) {
    const auto& wanted = options.engines;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), crew.engine) == wanted.end()) continue;
    for (const int size : options.ranks) {
      crew.run(size, {.deadline = collective::Seconds(60), .spin = spin},
               [&](Collective& group) { measure(group, options, group.rank() == 0 ? &*partner : nullptr); });
    }
  }
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app("Measures the cost of an all-reduce, as a ratio to a bare exchange between two processes");
  app.add_option("--engines", options.engines, "only these")->delimiter(',');
  app.add_option("--ranks", options.ranks, "sizes of groups")->delimiter(',');
  app.add_option("--bytes", options.bytes, "sizes of vectors")->delimiter(',');
  app.add_option("--rounds", options.rounds);
  app.add_option("--spin", options.spin, "microseconds that a wait polls before it sleeps");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);  // as the program does
  try {
    lockstep::bench::run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_bench: %s\n", error.what());
    return 1;
  }
}
