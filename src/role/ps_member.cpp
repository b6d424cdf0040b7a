#include "role/ps_member.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::role {
namespace {

int64_t least_limit(std::initializer_list<int64_t> limits) {
  int64_t least = 0;
  for (const int64_t limit : limits) {
    if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
  }
  return least;
}

ps::Element element_of(settings::WireElement wire) {
  if (wire == settings::WireElement::bf16) return ps::Element::kBfloat16;
  return wire == settings::WireElement::f16 ? ps::Element::kFloat16 : ps::Element::kFloat32;
}

}  // namespace

bool is_sync(const settings::Settings& settings) { return settings.mode == settings::Mode::sync; }

schedule::Placement placement_of(const settings::Settings& settings) {
  using schedule::Placement;
  return settings.placement == settings::Placement::balanced ? Placement::balanced : Placement::round_robin;
}

std::string find_cluster_run(const settings::Settings& settings, const ClusterProcess& process, const std::string& job,
                             const std::atomic<bool>* interrupt) {
  if (!settings.run_dir.empty()) return settings.run_dir;
  ps::ServerLinkOptions options;
  options.server = "ps:0";
  options.address = process.spec.ps.front();
  options.hello.set_protocol(ps::kProtocol);
  options.hello.set_role(process.task.str());
  options.hello.set_member(-1);
  options.hello.set_job(job);
  ps::introduce(options.hello);
  options.security = security_of(settings, process);
  options.patience = settings.patience;
  options.log = process.log;
  options.interrupt = interrupt;
  options.meter = process.meter;
  ps::ServerLink link(std::move(options));
  std::move(link.stream("the name of the run")).value_or_throw();
  const std::string& name = link.welcome().run();
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    throw DataError(
        fmt::format("ps:0 at {} gave '{}' as the run's name; a plain folder name is needed", link.address(), name));
  }
  return settings.runs_dir + "/" + name;
}

std::string PsMember::find_run(const std::string& /*model_name*/) {
  return find_cluster_run(settings_, process_, job_, interrupt_);
}

ps::PsOptions PsMember::exchange_options(int64_t examples, bool mean_loss) const {
  const settings::Settings& s = settings_;
  ps::PsOptions options;
  options.spec = process_.spec;
  options.task = process_.task;
  options.security = security_of(s, process_);
  options.job = job_;
  options.lock_free = s.apply == settings::Apply::lock_free;
  options.placement = placement_of(s);
  options.wire = element_of(s.wire);
  options.patience = s.patience;
  options.log = process_.log;
  options.interrupt = interrupt_;
  options.meter = process_.meter;
  options.look_for_ending = process_.look_for_ending;
  ps::CoordinatorOptions& coordination = options.coordination;
  coordination.members = members();
  coordination.servers = static_cast<int>(process_.spec.ps.size());
  coordination.sync = is_sync(s);
  coordination.max_staleness = s.max_staleness;
  coordination.aggregate = s.aggregate;
  coordination.mean = s.reduce == settings::Reduce::mean;
  coordination.mean_loss = mean_loss;
  coordination.batch = batch();
  coordination.accumulate = s.accumulate;
  coordination.examples = examples;
  coordination.passes = s.steps_per_epoch > 0 ? s.repeat : least_limit({s.epochs, s.repeat});
  coordination.sharded = s.shard == settings::Sharding::by_example;
  coordination.limit_steps = static_cast<uint64_t>(s.steps);
  coordination.start_wait = s.start_wait;
  return options;
}

train::Together PsMember::together(MemberStart start) {
  train::Together together;
  const int64_t workers = members();
  const bool sync = is_sync(settings_);
  together.gradients_per_update = !sync ? 1 : settings_.aggregate > 0 ? settings_.aggregate : workers;
  together.one_of_each_member = sync && settings_.aggregate == 0;
  // If workers are lost, each of the others computes several batches for an update of `aggregate` gradients.
  together.most_batches_per_step = sync && settings_.aggregate > 1 ? settings_.aggregate : 1;
  if (settings_.shard == settings::Sharding::none)
    together.seed_of_order = static_cast<uint64_t>(process_.spec.member_index(process_.task));
  together.exchange = [this, examples = start.examples, mean_loss = start.mean_loss, trace = start.trace,
                       initial = std::move(start.initial)](program::ParameterStore& parameters,
                                                           const exchange::LocalOptions& local) {
    ps::PsOptions options = exchange_options(examples, mean_loss);
    options.rules = {local.optimizer, local.schedule, local.clip_norm};
    options.threads = local.threads;
    options.initial = initial;
    options.trace = trace;
    auto made = std::make_unique<ps::PsExchange>(parameters, std::move(options));
    exchange_ = made.get();
    return made;
  };
  return together;
}

train::TrainerOptions PsMember::adapted(train::TrainerOptions options) const {
  options.who = " on " + process_.task.str();
  const bool someone_else =
      chief() ? !process_.spec.evaluator.empty() : settings_.evaluate != settings::WhoEvaluates::all;
  options.evaluates_at_the_end_only = someone_else;
  options.stop.steps = 0;  // the coordinator counts steps
  return options;
}

train::Shown PsMember::shown(const program::ParameterStore& parameters) const {
  train::Shown shown = GroupMember::shown(parameters);
  const std::vector<graph::ParameterInfo>& infos = parameters.infos();
  const auto places = schedule::place(infos, static_cast<int>(process_.spec.ps.size()), placement_of(settings_));
  std::vector<std::string> devices(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    for (size_t server = 0; server < places.size() && devices[i].empty(); ++server) {
      const bool here = !schedule::intersect(places[server], {infos[i].offset, infos[i].count()}).empty();
      if (here) devices[i] = fmt::format("/job:ps/task:{}/device:CPU:0", server);
    }
  }
  shown.devices.parameter = [devices = std::move(devices)](size_t parameter) { return devices[parameter]; };
  return shown;
}

void PsMember::end() {
  if (exchange_ != nullptr && leads()) exchange_->end();
}

void PsMember::report(train::Outcome& outcome) const {
  if (exchange_ == nullptr || !leads()) return;
  const std::vector<cluster::Task> tasks = process_.spec.members();
  const std::vector<ps::WorkerHistory>& records = exchange_->records();
  for (size_t i = 0; i < std::min(records.size(), tasks.size()); ++i) {
    const ps::WorkerHistory& from = records[i];
    train::WorkerRecord worker;
    worker.role = tasks[i].str();
    worker.iterations = from.iterations;
    worker.examples = from.examples;
    worker.updates = from.updates;
    worker.dropped = from.dropped;
    worker.restarts = from.joins > 0 ? from.joins - 1 : 0;
    worker.finished_seconds = from.finished_seconds;
    worker.staleness = from.staleness;
    const auto updates = static_cast<double>(std::max<uint64_t>(from.updates, 1));
    worker.staleness_mean = static_cast<double>(from.staleness_sum) / updates;
    worker.staleness_max = from.staleness_max;
    const double all = from.wait_seconds + from.busy_seconds;
    worker.wait_share = all > 0 ? from.wait_seconds / all : 0;
    worker.loss = from.loss;
    worker.accuracy = from.accuracy;
    if (i == 0 && outcome.last_eval) {
      worker.loss = outcome.last_eval->loss;
      worker.accuracy = outcome.last_eval->accuracy;
    }
    outcome.workers.push_back(std::move(worker));
  }
}

}  // namespace lockstep::role
