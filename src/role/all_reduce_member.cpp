#include "role/all_reduce_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "allreduce/static_membership.h"
#include "base/address.h"
#include "base/parallel.h"
#include "base/wait_policy.h"
#include "collective/gloo/gloo_engine.h"
#include "collective/mpi/mpi_engine.h"
#include "lockstep/error.h"
#include "role/who_decides.h"
#include "run/run_directory.h"
#include "settings/machine.h"

namespace lockstep::role {
namespace {

constexpr std::chrono::microseconds kSpin{50};  ///< as OpenMP's threads spin if each has a core
constexpr size_t kMostNameBytes = 256;

collective::Element wire_of(const settings::Settings& settings) {
  if (settings.wire == settings::WireElement::bf16) return collective::Element::bfloat16;
  return settings.wire == settings::WireElement::f16 ? collective::Element::float16 : collective::Element::float32;
}

collective::GroupOptions group_options(const settings::Settings& settings, const ClusterProcess& process) {
  collective::GroupOptions options;
  options.meter = process.meter;
  options.deadline = collective::Seconds(settings.patience);
  if (settings::wait_policy(settings) != base::WaitPolicy::block) options.spin = kSpin;
  return options;
}

/// Returns the folder of a run that another process named.
std::string run_folder(const settings::Settings& settings, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    throw DataError(fmt::format("another member gave '{}' as the run's name; a plain folder name is needed", name));
  }
  return settings.runs_dir + "/" + name;
}

/// Sends rank 0's text to all ranks; returns it.
std::string tell_all(collective::Collective& ranks, const std::string& text) {
  std::vector<std::byte> bytes(kMostNameBytes);
  if (ranks.rank() == 0) std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return std::byte(c); });
  ranks.broadcast(bytes, 0).or_throw();
  std::string told;
  for (const std::byte byte : bytes) {
    if (byte == std::byte{0}) break;
    told.push_back(static_cast<char>(byte));
  }
  return told;
}

}  // namespace

allreduce::AllReduceOptions all_reduce_options(const settings::Settings& settings, const MemberStart& start,
                                               int64_t batch) {
  allreduce::AllReduceOptions options;
  options.initial.step = start.state->step;
  options.initial.examples = start.state->examples;
  options.initial.data = start.state->data;
  options.batch = batch;
  options.accumulate = settings.accumulate;
  options.examples = start.examples;
  options.sharded = settings.shard == settings::Sharding::by_example;
  options.mean = settings.reduce == settings::Reduce::mean;
  options.mean_loss = start.mean_loss;
  options.wire = wire_of(settings);
  options.bucket_bytes = static_cast<size_t>(settings.bucket_mb * kBucketMegabyte);
  options.autotune = settings.autotune;
  options.top_k = settings.top_k;
  options.events = start.events;
  options.trace = start.trace;
  return options;
}

void add_all_reduce_report(const allreduce::AllReduceExchange& exchange, const std::vector<std::string>& names,
                           train::Outcome& outcome) {
  const std::vector<allreduce::MemberTotals>& records = exchange.totals();
  for (size_t i = 0; i < std::min(records.size(), names.size()); ++i) {
    const allreduce::MemberTotals& from = records[i];
    if (from.steps == 0) continue;
    train::WorkerRecord worker;
    worker.role = names[i];
    worker.iterations = from.batches;
    worker.updates = from.steps;
    worker.examples = from.examples;
    worker.restarts = from.joins > 0 ? from.joins - 1 : 0;
    worker.finished_seconds = outcome.seconds;  // all members end together
    worker.load_seconds = from.load_seconds;
    worker.compute_seconds = from.compute_seconds;
    const double all = from.load_seconds + from.compute_seconds + from.wait_seconds;
    worker.wait_share = all > 0 ? from.wait_seconds / all : 0;
    worker.loss = outcome.last_eval ? outcome.last_eval->loss : std::numeric_limits<double>::quiet_NaN();
    worker.accuracy = outcome.last_eval ? outcome.last_eval->accuracy : std::numeric_limits<double>::quiet_NaN();
    outcome.workers.push_back(std::move(worker));
  }
  const allreduce::Communication from = exchange.communication();
  train::CommunicationRecord& to = outcome.communication;
  to.engine = from.engine;
  to.buckets = from.buckets;
  to.bucket_bytes = from.bucket_bytes;
  to.group = exchange.group();
  to.groups = from.groups;
  to.bytes_per_step = from.steps > 0 ? static_cast<double>(from.bytes_sent) / static_cast<double>(from.steps) : 0;
  to.transfer_seconds = from.transfer_seconds;
  to.wait_seconds = from.wait_seconds;
  outcome.stragglers = exchange.stragglers().lines();
  to.overlapped = from.transfer_seconds > 0 ? std::clamp(1 - from.wait_seconds / from.transfer_seconds, 0.0, 1.0) : 0;
}

AllReduceMember::AllReduceMember(ClusterProcess process, const settings::Settings& settings, std::string job,
                                 const std::atomic<bool>* interrupt)
    : GroupMember(std::move(process), settings, std::move(job), interrupt) {
  if (process_.mpi) ranks_ = collective::make_mpi_group(members(), group_options(settings, process_));
}

allreduce::ElasticOptions elastic_options(const settings::Settings& settings, const ClusterProcess& process,
                                          const std::string& job, const std::atomic<bool>* interrupt) {
  allreduce::ElasticOptions options;
  options.spec = process.spec;
  options.task = process.task;
  options.security = security_of(settings, process);
  options.job = job;
  options.patience = settings.patience;
  options.log = process.log;
  options.interrupt = interrupt;
  options.meter = process.meter;
  options.look_for_ending = process.look_for_ending;
  return options;
}

std::string find_all_reduce_run(const settings::Settings& settings, const ClusterProcess& process,
                                const std::string& job, const std::atomic<bool>* interrupt) {
  const std::string name = allreduce::ask_run_name(elastic_options(settings, process, job, interrupt)).value_or_throw();
  return run_folder(settings, name);
}

std::string AllReduceMember::find_run(const std::string& model_name) {
  if (!chief() && !ranks_) return find_all_reduce_run(settings_, process_, job_, interrupt_);
  if (chief()) {
    const std::string name = settings_.name.empty() ? model_name : settings_.name;
    run_ = std::filesystem::path(run::RunDirectory::create(settings_.runs_dir, name).path()).filename().string();
  }
  if (ranks_) run_ = tell_all(*ranks_, run_);
  return run_folder(settings_, run_);
}

std::string AllReduceMember::advice() const {
  const std::string why = "an MPI job cannot continue without one of its ranks";
  std::string run = run_.empty() ? settings_.run_dir : settings_.runs_dir + "/" + run_;
  if (!settings_.resume.empty()) run = settings_.resume;
  return process_.resume_command ? why + "; to resume:  " + process_.resume_command(run) : why;
}

std::unique_ptr<allreduce::Membership> AllReduceMember::membership() const {
  if (ranks_) {
    return std::make_unique<allreduce::StaticMembership>(ranks_, advice());
  }
  allreduce::ElasticOptions options = elastic_options(settings_, process_, job_, interrupt_);
  options.run = run_;
  options.expected = static_cast<int>(settings_.workers);
  options.min_workers = static_cast<int>(settings_.min_workers);
  options.max_workers = static_cast<int>(settings_.max_workers);
  options.allow_split = settings_.allow_split;
  options.authority = [this] { return make_register(settings_, process_, job_); };
  options.latest = latest_group_;
  options.start_wait = settings_.start_wait;
  options.group = group_options(settings_, process_);
  const std::string host = base::parse_address(process_.spec.address(process_.task)).host;
  options.engine = [host, group = options.group](int rank, int size) {
    return collective::join_over_gloo(host, rank, size, group);
  };
  return std::make_unique<allreduce::ElasticMembership>(std::move(options));
}

train::Together AllReduceMember::together(MemberStart start) {
  latest_group_ = start.state->group;
  train::Together together;
  together.gradients_per_update = members();
  together.one_of_each_member = true;
  if (settings_.shard == settings::Sharding::none)
    together.seed_of_order = static_cast<uint64_t>(process_.spec.member_index(process_.task));
  allreduce::AllReduceOptions options = all_reduce_options(settings_, start, batch());
  for (const cluster::Task& task : process_.spec.members()) options.names.push_back(task.str());
  options.interrupt = interrupt_;
  options.log = process_.log;
  together.exchange = [this, options = std::move(options)](program::ParameterStore& parameters,
                                                           const exchange::LocalOptions& local) mutable {
    options.rules = local;
    auto made = std::make_unique<allreduce::AllReduceExchange>(parameters, std::move(options), membership());
    exchange_ = made.get();
    return made;
  };
  return together;
}

train::TrainerOptions AllReduceMember::adapted(train::TrainerOptions options) const {
  options.who = " on " + process_.task.str();
  options.evaluates_at_the_end_only = !process_.spec.evaluator.empty();
  return options;
}

AllReduceMember::~AllReduceMember() {
  if (ranks_ && !ended_) ranks_->abort("this rank failed");
}

std::string AllReduceMember::why_not_latest() { return exchange_ == nullptr ? "" : exchange_->why_not_latest(); }

uint64_t AllReduceMember::group() const { return exchange_ == nullptr ? 0 : exchange_->group(); }

void AllReduceMember::end() {
  ended_ = true;
  if (exchange_ != nullptr && leads()) exchange_->end();
}

void AllReduceMember::report(train::Outcome& outcome) const {
  if (exchange_ == nullptr || !leads()) return;
  std::vector<std::string> names;
  for (const cluster::Task& task : process_.spec.members()) names.push_back(task.str());
  add_all_reduce_report(*exchange_, names, outcome);
}

}  // namespace lockstep::role
