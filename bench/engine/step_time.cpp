// The time of one training step, for bench/compare: one JSON line on standard output.
//
//   step_time --model lenet --batch 64 --optimizer adam --threads 2 --seconds 2
//   step_time --model lenet --batch 64 --optimizer adam --threads 2 --epoch --data DIR
//   step_time --model lenet --batch 8 --optimizer adam --threads 2 --check FILE
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <vector>

#include "base/wait_policy.h"
#include "bench_model.h"
#include "data/catalog.h"
#include "data/loader.h"
#include "lockstep/error.h"
#include "train/trainer.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCheckedSteps = 3;

struct Options {
  BenchOptions model;
  double seconds = 2;
  uint64_t warm_up = 20;
  bool may_rise = false;
  bool epoch = false;
  std::string folder;
  std::string check;
};

struct Measured {
  double ms_per_step = 0;
  uint64_t steps = 0;
  double first_loss = 0;  ///< loss of the first and last step, or mean of the first and last epoch; it must have fallen
  double last_loss = 0;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Returns a figure of this process from /proc, in MB: VmRSS is the memory held now, VmHWM the peak.
double memory_mb(const std::string& figure) {
  std::ifstream status("/proc/self/status");
  std::string name;
  double kilobytes = 0;
  while (status >> name) {
    if (name == figure + ":" && status >> kilobytes) return kilobytes * 1024 / 1e6;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

/// Warms up, then takes the median over chunks of about 20 ms.
Measured time_steps(BenchModel& model, double seconds, uint64_t warm_up) {
  constexpr double kWarmUpSeconds = 0.5;
  constexpr double kChunkSeconds = 0.02;
  Measured measured;
  measured.first_loss = model.step();
  uint64_t warm = 0;
  const Clock::time_point begin = Clock::now();
  while (warm < warm_up || seconds_since(begin) < kWarmUpSeconds) {
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

/// Trains over the data through the loader with the product's own training loop; measures the second epoch.
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

template <class T>
void write(std::ofstream& file, std::span<T> values) {
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

/// Writes the batch and the initial parameters, which the peers start from too, then prints the first losses.
int check(BenchModel& model, const Options& options) {
  // With its initial parameters AlexNet gives the same answer for all faint images; stronger ones make the losses
  // differ.
  if (options.model.model == "alexnet") {
    for (float& pixel : model.images()) pixel *= 20;
  }
  std::ofstream file(options.check, std::ios::binary);
  write(file, model.images());
  write(file, model.labels());
  write(file, model.parameters().values());
  if (!file.flush()) throw Error("cannot write " + options.check);
  std::printf("{\"parameters\": %zu, \"losses\": [", model.parameters().count());
  for (int i = 0; i < kCheckedSteps; ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", model.step());
  std::printf("]}\n");
  return 0;
}

/// Turns dropout off: programs with different masks cannot be compared.
void drop_nothing(BenchOptions& options) {
  const std::vector<nn::ModelOption>& known = nn::find_model(options.model).options;
  const auto is_dropout = [](const nn::ModelOption& option) { return option.name == "dropout"; };
  if (std::any_of(known.begin(), known.end(), is_dropout)) options.options["dropout"] = "0";
}

int measure(BenchModel& model, const Options& options, double memory_before) {
  const Measured measured = options.epoch ? time_epoch(model, options.model, options.folder)
                                          : time_steps(model, options.seconds, options.warm_up);
  const bool fell = options.may_rise || measured.last_loss < measured.first_loss;
  if (!std::isfinite(measured.last_loss) || !fell) {
    std::fprintf(stderr, "step_time: the loss went from %g to %g\n", measured.first_loss, measured.last_loss);
    return 1;
  }
  std::printf(
      "{\"ms_per_step\": %.6g, \"steps\": %llu, \"loss_first\": %.6g, \"loss_last\": %.6g, "
      "\"parameters\": %zu, \"memory_mb\": %.1f, \"memory_before_mb\": %.1f}\n",
      measured.ms_per_step, static_cast<unsigned long long>(measured.steps), measured.first_loss, measured.last_loss,
      model.parameters().count(), memory_mb("VmHWM"), memory_before);
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  std::string precision = "f32";
  CLI::App app("Time of one training step");
  app.add_option("--model", options.model.model)->required();
  app.add_option("--batch", options.model.batch)->required()->check(CLI::PositiveNumber);
  app.add_option("--optimizer", options.model.optimizer)->required();
  app.add_option("--threads", options.model.threads)->required()->check(CLI::PositiveNumber);
  app.add_option("--precision", precision)->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--channels-last", options.model.channels_last, "layout of bf16 images: true or false");
  app.add_flag("--exact-conv", options.model.exact_conv, "no Winograd convolutions");
  app.add_option("--seconds", options.seconds);
  app.add_option("--warm-up", options.warm_up, "steps before the measured ones")->check(CLI::PositiveNumber);
  app.add_flag("--may-rise", options.may_rise, "a loss that does not fall is no failure");
  app.add_flag("--epoch", options.epoch, "a whole epoch of real data through the loader");
  app.add_option("--data", options.folder, "folder of the idx files");
  app.add_option("--check", options.check, "write the batch and parameters here and print the first losses");
  CLI11_PARSE(app, argc, argv);
  options.model.bf16 = precision == "bf16";
  if (!options.check.empty()) drop_nothing(options.model);
  const double memory_before = memory_mb("VmRSS");
  BenchModel model(options.model);
  return options.check.empty() ? measure(model, options, memory_before) : check(model, options);
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
