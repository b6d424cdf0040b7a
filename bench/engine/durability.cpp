// The cost of a parameter server's durability: updates per second of a shard with each setting, measured in turns in
// one run, as ratios to memory alone. No network; one contribution per update.
//
//   durability --folder DIR --seconds 1 --rounds 3
//
// The state files lie in DIR; its disk is the one that `machine` measures.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ps/parameter_shard.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string folder = ".";
  double seconds = 1;  ///< per turn
  int rounds = 3;
  int threads = 1;
};

struct Workload {
  const char* name;
  size_t parameters;
  optim::Method method;
};

constexpr std::array<Workload, 3> kWorkloads{{{"lr, sgd", 7850, optim::Method::sgd},
                                              {"lenet, adam", 61706, optim::Method::adam},
                                              {"alexnet, sgd", 61100840, optim::Method::sgd}}};
constexpr std::array kDurabilities{ps::Durability::checkpoint, ps::Durability::process, ps::Durability::machine};
constexpr std::array<const char*, 3> kNames{"checkpoint", "process", "machine"};

/// A shard that is updated repeatedly for a given time.
class Contestant {
 public:
  Contestant(const Workload& workload, ps::Durability durability, const Options& options, const std::string& file)
      : file_(file), gradient_(workload.parameters, 1e-3F) {
    ps::ParameterShardOptions shard;
    shard.optimizer.method = workload.method;
    shard.parameters = workload.parameters;
    shard.durability = durability;
    shard.file = file;
    shard.threads = options.threads;
    shard_ = std::make_unique<ps::ParameterShard>(shard);
    shard_->initialise(0, gradient_, {}, ledger_);
    for (int i = 0; i < 3; ++i) update();  // touches every buffer
  }
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;
  ~Contestant() {
    shard_.reset();
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
    std::filesystem::remove(file_ + ".lock", ignored);
  }

  /// Returns the seconds per update over one turn.
  double turn(double seconds) {
    const auto start = Clock::now();
    int updates = 0;
    double passed = 0;
    do {
      update();
      ++updates;
      passed = std::chrono::duration<double>(Clock::now() - start).count();
    } while (passed < seconds);
    return passed / updates;
  }

 private:
  void update() {
    const ps::Contribution one{gradient_};
    shard_->apply({&one, 1}, 1, {step_++, 1e-3F, 1}, ledger_);
  }

  std::string file_;
  std::vector<float> gradient_;
  std::array<std::byte, 256> ledger_{};  // a dozen workers' counters
  std::unique_ptr<ps::ParameterShard> shard_;
  uint64_t step_ = 0;
};

void measure(const Workload& workload, const Options& options) {
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (size_t i = 0; i < kDurabilities.size(); ++i) {
    const std::string file = options.folder + "/durability-bench-" + kNames[i];
    contestants.push_back(std::make_unique<Contestant>(workload, kDurabilities[i], options, file));
  }
  std::array<double, kDurabilities.size()> best{};
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < best.size(); ++i) {
      const double time = contestants[i]->turn(options.seconds);
      best[i] = round == 0 ? time : std::min(best[i], time);
    }
  }
  for (size_t i = 0; i < best.size(); ++i) {
    std::printf("%-14s %10zu parameters  %-10s %12.1f updates/s  %8.2f times checkpoint's time\n", workload.name,
                workload.parameters, kNames[i], 1 / best[i], best[i] / best[0]);
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the cost of a parameter server's durability");
  app.add_option("--folder", options.folder, "folder for temporary state files");
  app.add_option("--seconds", options.seconds, "per turn")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "turns of each setting; the best counts")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "threads of a shard")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  for (const Workload& workload : kWorkloads) measure(workload, options);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  try {
    return lockstep::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "durability: %s\n", error.what());
    return 1;
  }
}
