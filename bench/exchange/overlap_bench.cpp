// The share of all-reduce communication that is hidden behind computing. Two replicas of one process, each with a
// training of its own on one thread, use an engine as slow as a network of --gbit.
//
//   overlap_bench [--model alexnet] [--batch 32] [--steps 6] [--warm-up 2] [--gbit 10] [--bucket-mb 25] [--json]
//
// Transfer is the duration of a replica's operations, from the moment the first replica arrives. Exposed is the part of
// it that the training thread waits for with nothing left to compute. Both include the time in which one replica waits
// for the other to compute. The link time is that of the bytes on the network alone. "share" is 1 - exposed / transfer,
// "of link" is 1 - exposed / link.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "allreduce/static_membership.h"
#include "collective/in_process.h"
#include "collective/throttled.h"
#include "data/random_images.h"
#include "data/synthetic.h"
#include "lockstep/error.h"
#include "role/all_reduce_member.h"
#include "settings/model_catalog.h"
#include "train/setup.h"
#include "train/trainer.h"

namespace lockstep::bench {
namespace {

constexpr int kReplicas = 2;
constexpr double kBytesPerGigabit = 1e9 / 8;

struct Options {
  std::string model = "alexnet";
  int64_t batch = 32;
  int64_t steps = 6;
  int64_t warm_up = 2;
  double gbit = 10;
  double bucket_mb = settings::Settings{}.bucket_mb;
  std::string wire = "f32";
  bool json = false;
};

struct Step {
  double seconds = 0;
  double transfer = 0;
  double exposed = 0;
  double bytes = 0;  ///< bytes sent by this replica

  Step& operator+=(const Step& other) {
    seconds += other.seconds;
    transfer += other.transfer;
    exposed += other.exposed;
    bytes += other.bytes;
    return *this;
  }
};

/// Reads the times of each step from the exchange.
class Watch final : public train::Hooks {
 public:
  void on_step(const train::StepEvent& event) override {
    const allreduce::Communication now = exchange->communication();
    const double seconds = event.clock->seconds();
    steps.push_back({seconds - seconds_, now.transfer_seconds - before_.transfer_seconds,
                     now.wait_seconds - before_.wait_seconds,
                     static_cast<double>(now.bytes_sent - before_.bytes_sent)});
    seconds_ = seconds;
    before_ = now;
  }

  allreduce::AllReduceExchange* exchange = nullptr;
  std::vector<Step> steps;

 private:
  double seconds_ = 0;
  allreduce::Communication before_;
};

data::Dataset images_for(const Options& options) {
  if (options.model != "alexnet") return data::synthetic();
  data::RandomImagesOptions images;
  images.train = kReplicas * options.batch * 2;
  images.test = 8;
  images.fresh = false;
  return data::random_images(images);
}

settings::Settings settings_of(const Options& options) {
  settings::Settings settings;
  settings.model = options.model;
  settings.batch = options.batch;
  settings.optimizer = optim::Method::sgd;
  settings.lr = 0.01;
  settings.epochs = 0;
  settings.steps = options.steps + options.warm_up;
  settings.threads = 1;
  settings.bucket_mb = options.bucket_mb;
  settings::assign(settings, *settings::find_setting("wire"), options.wire, "--wire");
  return settings;
}

class Crew {
 public:
  explicit Crew(const Options& options)
      : settings_(settings_of(options)),
        model_(catalog_.find(options.model)),
        dataset_(images_for(options)),
        watches_(kReplicas) {
    const collective::Network network{options.gbit * kBytesPerGigabit, collective::Seconds(0)};
    for (auto& member : collective::make_in_process_group(kReplicas)) {
      group_.push_back(collective::throttle(std::move(member), network));
    }
  }

  void run() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kReplicas; ++i) threads.emplace_back([this, i] { train(i); });
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] const std::vector<Step>& steps(size_t replica) const { return watches_[replica].steps; }
  [[nodiscard]] const allreduce::Communication& communication() const { return communication_; }

 private:
  void train(size_t replica) {
    try {
      const checkpoint::TrainingState begin;
      train::Together together;
      together.gradients_per_update = kReplicas;
      together.exchange = [this, replica, &begin](program::ParameterStore& parameters,
                                                  const exchange::LocalOptions& rules) {
        role::MemberStart start;
        start.examples = dataset_.train.count();
        start.state = &begin;
        allreduce::AllReduceOptions options = role::all_reduce_options(settings_, start, settings_.batch);
        options.names = {"replica 0", "replica 1"};
        options.log = [](std::string_view, const std::string&) {};
        options.rules = rules;
        auto made = std::make_unique<allreduce::AllReduceExchange>(
            parameters, std::move(options),
            std::make_unique<allreduce::StaticMembership>(group_[replica], "a replica failed"));
        watches_[replica].exchange = made.get();
        return made;
      };
      train::Setup setup(settings_, model_, dataset_, nullptr, &together);
      train::TrainerOptions options = setup.trainer_options();
      options.who = fmt::format(" on replica {}", replica);
      train::Parts parts = setup.parts();
      parts.evaluator = nullptr;
      parts.hooks = {&watches_[replica]};
      train::Trainer(std::move(parts), options).run(train::RunClock());
      if (replica == 0) {
        communication_ = watches_[0].exchange->communication();
        watches_[0].exchange->end();
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "overlap_bench: %s\n", error.what());
      std::_Exit(1);  // the other replica would wait for ever
    }
  }

  settings::Settings settings_;
  settings::ModelCatalog catalog_;
  const nn::ModelDef& model_;
  data::Dataset dataset_;
  std::vector<std::shared_ptr<collective::Collective>> group_;
  std::vector<Watch> watches_;
  allreduce::Communication communication_;
};

struct Result {
  Step mean;         ///< mean of the measured steps of both replicas
  double least = 0;  ///< exposed time of the replica that arrived last, which does not wait for the other to compute
  double link = 0;   ///< link time of a step's bytes, in seconds

  [[nodiscard]] double share() const { return 1 - mean.exposed / mean.transfer; }
  [[nodiscard]] double share_of_link() const { return 1 - mean.exposed / link; }
};

Result evaluate(const Crew& crew, const Options& options) {
  Result result;
  Step sum;
  for (auto i = static_cast<size_t>(options.warm_up); i < crew.steps(0).size(); ++i) {
    sum += crew.steps(0)[i];
    sum += crew.steps(1)[i];
    result.least += std::min(crew.steps(0)[i].exposed, crew.steps(1)[i].exposed);
  }
  const auto measured = static_cast<double>(options.steps);
  const double all = measured * kReplicas;
  result.mean = {sum.seconds / all, sum.transfer / all, sum.exposed / all, sum.bytes / all};
  result.least /= measured;
  result.link = result.mean.bytes / (options.gbit * kBytesPerGigabit);
  return result;
}

void print_json(const Options& options, const allreduce::Communication& all, const Result& result) {
  nlohmann::json json;
  json["model"] = options.model;
  json["batch"] = options.batch;
  json["gbit"] = options.gbit;
  json["bucket_mb"] = options.bucket_mb;
  json["buckets"] = all.buckets;
  json["bytes_per_step"] = result.mean.bytes;
  json["step_ms"] = result.mean.seconds * 1e3;
  json["transfer_ms"] = result.mean.transfer * 1e3;
  json["exposed_ms"] = result.mean.exposed * 1e3;
  json["least_exposed_ms"] = result.least * 1e3;
  json["link_ms"] = result.link * 1e3;
  json["share"] = result.share();
  json["share_of_link"] = result.share_of_link();
  std::printf("%s\n", json.dump().c_str());
}

void print_text(const Options& options, const allreduce::Communication& all, const Result& result, const Crew& crew) {
  fmt::print("{}, {} replicas of one thread, batch {} each, {} Gbit/s, {} buckets of {:.3g} MB\n", options.model,
             kReplicas, options.batch, options.gbit, all.buckets, options.bucket_mb);
  fmt::print("step {:.1f} ms, transfer {:.1f} ms, exposed {:.1f} ms ({:.1f} of the last), link alone {:.1f} ms\n",
             result.mean.seconds * 1e3, result.mean.transfer * 1e3, result.mean.exposed * 1e3, result.least * 1e3,
             result.link * 1e3);
  fmt::print("share {:.1f} %, of link {:.1f} %\n", result.share() * 100, result.share_of_link() * 100);
  for (size_t replica = 0; replica < kReplicas; ++replica) {
    fmt::print("replica {}, exposed ms of each step:", replica);
    for (const Step& step : crew.steps(replica)) fmt::print(" {:.1f}", step.exposed * 1e3);
    fmt::print("\n");
  }
}

void run(const Options& options) {
  Crew crew(options);
  crew.run();
  const Result result = evaluate(crew, options);
  if (options.json) return print_json(options, crew.communication(), result);
  print_text(options, crew.communication(), result, crew);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app("The overlapped share of the communication of a training by all-reduce.");
  app.add_option("--model", options.model);
  app.add_option("--batch", options.batch);
  app.add_option("--steps", options.steps, "measured steps");
  app.add_option("--warm-up", options.warm_up, "steps before the measured ones");
  app.add_option("--gbit", options.gbit, "speed of the network, each way, in Gbit/s");
  app.add_option("--bucket-mb", options.bucket_mb);
  app.add_option("--wire", options.wire);
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  try {
    lockstep::bench::run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap_bench: %s\n", error.what());
    return 1;
  }
}
