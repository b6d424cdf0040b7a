#include "role/replicas.h"

#include <fmt/format.h>

#include <algorithm>

#include "allreduce/static_membership.h"
#include "base/cpu_quota.h"
#include "base/parallel.h"
#include "collective/in_process.h"
#include "lockstep/error.h"
#include "role/all_reduce_member.h"
#include "train/trainer.h"

namespace lockstep::role {
namespace {

constexpr std::chrono::microseconds kSpinInProcess{50};

collective::GroupOptions group_options(const settings::Settings& settings) {
  collective::GroupOptions options;
  options.deadline = collective::Seconds(settings.patience);
  const bool fits = threads_per_replica(settings) * settings.replicas <= base::useful_threads();
  if (fits && settings.wait_policy != settings::IdleThreads::block) options.spin = kSpinInProcess;
  return options;
}

}  // namespace

int threads_per_replica(const settings::Settings& settings) {
  if (settings.threads > 0) return static_cast<int>(settings.threads);
  return std::max(1, base::useful_threads() / static_cast<int>(settings.replicas));
}

int64_t batch_per_replica(const settings::Settings& settings) {
  const int64_t replicas = std::max<int64_t>(settings.replicas, 1);
  if (settings.global_batch == 0) return settings.batch;
  if (settings.global_batch % replicas != 0) {
    throw UsageError(
        fmt::format("global-batch: {} cannot be shared evenly among {} replicas", settings.global_batch, replicas));
  }
  return settings.global_batch / replicas;
}

Replicas::Replicas(const settings::Settings& settings, const nn::ModelDef& model, const data::Dataset& dataset,
                   const std::atomic<bool>* interrupt)
    : settings_(settings), model_(model), dataset_(dataset), interrupt_(interrupt) {
  const auto count = static_cast<int>(settings.replicas);
  for (auto& member : collective::make_in_process_group(count, group_options(settings))) {
    group_.push_back(std::move(member));
  }
  errors_.resize(group_.size());
  cores_.resize(group_.size());
  // Each keeps to cores of its own: its threads meet every few microseconds, and find each other's data in their
  // caches.
  if (threads_per_replica(settings) * count > base::available_cores()) return;
  for (int replica = 0; replica < count; ++replica) {
    cores_[static_cast<size_t>(replica)] = base::share_of_cores(replica, count);
  }
}

Replicas::~Replicas() {
  group_.front()->abort("the first replica ended");
  wait();
}

train::Together Replicas::join(int replica, MemberStart start, allreduce::AllReduceExchange** made) {
  train::Together together;
  together.gradients_per_update = settings_.replicas;
  if (settings_.shard == settings::Sharding::none) together.seed_of_order = static_cast<uint64_t>(replica);
  allreduce::AllReduceOptions options = all_reduce_options(settings_, start, settings_.batch);
  options.names = names();
  options.one_process = true;
  options.interrupt = interrupt_;
  options.log = [](std::string_view, const std::string&) {};
  together.exchange = [this, replica, made, options = std::move(options)](program::ParameterStore& parameters,
                                                                          const exchange::LocalOptions& local) mutable {
    options.rules = local;
    auto exchange = std::make_unique<allreduce::AllReduceExchange>(
        parameters, std::move(options),
        std::make_unique<allreduce::StaticMembership>(group_[static_cast<size_t>(replica)], "a replica failed"));
    if (made != nullptr) *made = exchange.get();
    return exchange;
  };
  return together;
}

train::Together Replicas::together(MemberStart start) {
  first_kept_.emplace(cores_.front());  // before its Setup starts threads
  start_ = start;
  start_.events = nullptr;  // only the first replica reports events
  start_.state = nullptr;
  return join(0, std::move(start), &first_);
}

void Replicas::start() {
  for (int replica = 1; replica < static_cast<int>(group_.size()); ++replica) {
    threads_.emplace_back([this, replica] { train(replica); });
  }
}

void Replicas::train(int replica) {
  const auto place = static_cast<size_t>(replica);
  const base::KeptToCores kept(cores_[place]);
  try {
    const checkpoint::TrainingState begin;  // the first replica's state arrives with the group
    MemberStart start = start_;
    start.state = &begin;
    if (start.trace != nullptr) start.trace = &start.trace->tracer().track(names()[place]);
    const train::Together together = join(replica, start, nullptr);
    train::Setup setup(settings_, model_, dataset_, nullptr, &together, start.trace);
    train::TrainerOptions options = setup.trainer_options();
    options.who = fmt::format(" on replica {}", replica);
    options.stop.seconds = 0;  // only the first replica's clock counts
    train::Parts parts = setup.parts();
    parts.evaluator = nullptr;
    parts.interrupt = interrupt_;
    train::Trainer trainer(std::move(parts), options);
    trainer.run(train::RunClock());
  } catch (...) {
    errors_[place] = std::current_exception();
    int nobody = -1;
    blamed_.compare_exchange_strong(nobody, replica);
    group_[place]->abort(fmt::format("replica {} failed", replica));
  }
}

void Replicas::wait() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Replicas::fail() {
  int nobody = -1;
  blamed_.compare_exchange_strong(nobody, 0);
  group_.front()->abort("the first replica failed");
  wait();
  const auto blamed = static_cast<size_t>(blamed_.load());
  if (errors_[blamed]) std::rethrow_exception(errors_[blamed]);
}

void Replicas::finish() {
  first_->end();
  wait();
  for (const std::exception_ptr& error : errors_) {
    if (error) std::rethrow_exception(error);
  }
}

void Replicas::report(train::Outcome& outcome) const { add_all_reduce_report(*first_, names(), outcome); }

std::vector<std::string> Replicas::names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < group_.size(); ++i) names.push_back(fmt::format("replica {}", i));
  return names;
}

}  // namespace lockstep::role
