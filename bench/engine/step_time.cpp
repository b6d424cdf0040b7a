// The time of one training step, for bench/compare: one JSON line on standard output.
//
//   step_time --model lenet --batch 64 --optimizer adam --threads 2 --seconds 2
//   step_time --model lenet --batch 64 --optimizer adam --threads 2 --epoch --data DIR
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>

#include "base/wait_policy.h"
#include "bench_model.h"
#include "data/catalog.h"
#include "data/loader.h"
#include "train/trainer.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Measured {
  double ms_per_step = 0;
  uint64_t steps = 0;
  double first_loss = 0;  ///< of the first and last step, or mean of the first and last epoch: it must have fallen
  double last_loss = 0;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Warms up, then takes the median over chunks of about 20 ms.
Measured time_steps(BenchModel& model, double seconds) {
  constexpr double kWarmUpSeconds = 0.5;
  constexpr double kChunkSeconds = 0.02;
  Measured measured;
  measured.first_loss = model.step();
  uint64_t warm = 0;
  const Clock::time_point begin = Clock::now();
  while (warm < 20 || seconds_since(begin) < kWarmUpSeconds) {
    model.step();
    ++warm;
  }
  const double each = seconds_since(begin) / static_cast<double>(warm);
  const auto chunk = std::max<uint64_t>(1, static_cast<uint64_t>(kChunkSeconds / each));
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (times.size() < 3 || seconds_since(start) < seconds) {
    const Clock::time_point chunk_start = Clock::now();
    for (uint64_t i = 0; i < chunk; ++i) model.step();
    times.push_back(1e3 * seconds_since(chunk_start) / static_cast<double>(chunk));
    measured.steps += chunk;
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  measured.ms_per_step = times[times.size() / 2];
  measured.last_loss = model.step();
  return measured;
}

/// Trains over the data through the loader with the product's own training loop; the second epoch counts.
Measured time_epoch(BenchModel& model, const BenchOptions& options, const std::string& folder) {
  data::LoadOptions load;
  load.source.data_dir = folder;
  load.source.may_fetch = false;
  const data::Dataset dataset = data::load("mnist", load);
  data::LoaderOptions reading;
  reading.batch = options.batch;
  reading.repeat = 0;
  data::Loader loader(dataset.train, reading);
  train::Parts parts;
  parts.parameters = &model.parameters();
  parts.programs = &model.programs();
  parts.exchange = &model.exchange();
  parts.loader = &loader;
  train::TrainerOptions training;
  training.threads = options.threads;
  training.stop.epochs = 1;
  train::Trainer warm(parts, training);
  warm.run(train::RunClock{});
  training.stop.epochs = 2;
  train::Trainer trainer(parts, training, warm.state());
  const Clock::time_point start = Clock::now();
  trainer.run(train::RunClock{});
  const uint64_t steps = trainer.state().step - warm.state().step;
  const double seconds = seconds_since(start);
  return {1e3 * seconds / static_cast<double>(steps), steps, warm.state().epoch_loss, trainer.state().epoch_loss};
}

int run(int argc, char** argv) {
  BenchOptions options;
  double seconds = 2;
  bool epoch = false;
  std::string folder;
  CLI::App app("Time of one training step");
  app.add_option("--model", options.model)->required();
  app.add_option("--batch", options.batch)->required()->check(CLI::PositiveNumber);
  app.add_option("--optimizer", options.optimizer)->required();
  app.add_option("--threads", options.threads)->required()->check(CLI::PositiveNumber);
  app.add_option("--seconds", seconds);
  app.add_flag("--epoch", epoch, "a whole epoch of real data through the loader");
  app.add_option("--data", folder, "folder of the idx files");
  CLI11_PARSE(app, argc, argv);
  BenchModel model(options);
  const Measured measured = epoch ? time_epoch(model, options, folder) : time_steps(model, seconds);
  if (!std::isfinite(measured.last_loss) || measured.last_loss >= measured.first_loss) {
    std::fprintf(stderr, "step_time: the loss went from %g to %g\n", measured.first_loss, measured.last_loss);
    return 1;
  }
  std::printf("{\"ms_per_step\": %.6g, \"steps\": %llu, \"first_loss\": %.6g, \"last_loss\": %.6g}\n",
              measured.ms_per_step, static_cast<unsigned long long>(measured.steps), measured.first_loss,
              measured.last_loss);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::base::ensure_wait_policy(lockstep::base::WaitPolicy::brief, false, argv);
  try {
    return lockstep::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "step_time: " << error.what() << "\n";
    return 1;
  }
}
