#include "train/roles.h"

#include <fmt/format.h>

#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>

#include "lockstep/error.h"
#include "train/data_options.h"
#include "train/machine.h"
#include "train/run_directory.h"
#include "train/run_log.h"
#include "train/stop_rules.h"

namespace lockstep::train {
namespace {

/// The settings of a role, and the folder of the run where it is given.
struct Prepared {
  Settings settings;
  std::string job;
  std::string run;  ///< empty: not known yet
};

Prepared prepare(Configuration& configuration, const Group& group) {
  Prepared made;
  const std::string resumed = configuration.given_text("resume");
  if (!resumed.empty()) {
    const std::string runs_dir = configuration.given_text("runs-dir");
    made.run = find_run(resumed, runs_dir.empty() ? Settings{}.runs_dir : runs_dir);
    configuration.resume_from(made.run + "/config.yaml");
  }
  made.settings = configuration.resolve();
  if (made.run.empty()) made.run = made.settings.run_dir;
  made.job = job_digest(made.settings, group.spec);
  check_cluster_settings(made.settings, group.spec);
  return made;
}

ps::Durability durability_of(const Settings& settings) {
  if (settings.durability == "machine") return ps::Durability::machine;
  return settings.durability == "checkpoint" ? ps::Durability::checkpoint : ps::Durability::process;
}

/// Calls a function twice a second until it ends.
class Beat {
 public:
  explicit Beat(std::function<void()> action) : thread_([this, action = std::move(action)] { run(action); }) {}
  Beat(const Beat&) = delete;
  Beat& operator=(const Beat&) = delete;
  ~Beat() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void run(const std::function<void()>& action) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(500), [this] { return ended_; })) action();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

/// Follows the snapshots of all servers.
class Follower {
 public:
  Follower(const Prepared& prepared, const RoleOptions& options, graph::ParameterStore& parameters)
      : parameters_(parameters) {
    const Group& group = options.group;
    const auto servers = static_cast<int>(group.spec.ps.size());
    for (int i = 0; i < servers; ++i) {
      ps::LinkOptions link;
      const cluster::Task server{cluster::Role::ps, i};
      link.server = server.str();
      link.address = group.spec.address(server);
      link.hello.set_protocol(ps::kProtocol);
      link.hello.set_role(group.task.str());
      link.hello.set_member(-1);
      link.hello.set_job(prepared.job);
      link.security = security_of(prepared.settings);
      link.patience = prepared.settings.patience;
      link.log = group.log;
      link.interrupt = options.interrupt;
      links_.push_back(std::make_unique<ps::Link>(std::move(link)));
    }
    ranges_ = ps::place(parameters.infos(), servers, ps::parse_placement(prepared.settings.placement));
  }

  /// The next snapshot's step with the parameters in place; nothing when training has ended.
  std::optional<uint64_t> next(uint64_t after) {
    for (;;) {
      if (links_.front()->ended() && !reachable()) return std::nullopt;
      base::Result<std::optional<uint64_t>> found = try_next(after);
      if (found) return found.value();
      const bool over = std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link->ended(); });
      if (over) return std::nullopt;
      if (gave_up_) throw Error(found.failure().message);
    }
  }

  void stop(StopReason reason) {
    base::Result<transport::Stream*> stream = links_.front()->stream("a stop");
    if (!stream) return;
    transport::Header order = ps::header(ps::Kind::stop);
    order.extra = static_cast<uint64_t>(reason);
    static_cast<void>(stream.value()->write(order));
  }

 private:
  bool reachable() { return links_.front()->stream("the last snapshot").ok(); }

  base::Result<std::optional<uint64_t>> try_next(uint64_t after) {
    uint64_t version = after;
    for (size_t i = 0; i < links_.size(); ++i) {
      ps::Link& link = *links_[i];
      base::Result<transport::Stream*> stream = link.stream("the next checkpoint");
      if (!stream) {
        gave_up_ = true;
        return stream.failure();
      }
      transport::Header ask = ps::header(ps::Kind::follow);
      ask.version = version;
      ask.flags = i > 0 ? ps::kExact : 0;
      base::Result<bool> sent = stream.value()->write(ask);
      base::Result<std::optional<uint64_t>> got = sent ? take(ranges_[i], *stream.value()) : sent.failure();
      if (!got) {
        link.drop(got.failure().message);
        return got;
      }
      if (!got.value()) return got;
      if (i > 0 && *got.value() != version) return base::Failure{"the servers' snapshots differ"};
      version = *got.value();
    }
    return std::optional<uint64_t>(version);
  }

  base::Result<std::optional<uint64_t>> take(const std::vector<graph::ParameterRange>& ranges,
                                             transport::Stream& stream) {
    size_t count = 0;
    for (const graph::ParameterRange& range : ranges) count += range.count;
    std::vector<float> shard(count);
    for (;;) {
      base::Result<transport::Frame> frame = stream.read();
      if (!frame) return frame.failure();
      if (ps::kind_of(frame.value()) == ps::Kind::end) return std::optional<uint64_t>();
      if (ps::kind_of(frame.value()) == ps::Kind::snapshot_end) {
        size_t local = 0;
        for (const graph::ParameterRange& range : ranges) {
          std::copy_n(shard.begin() + static_cast<ptrdiff_t>(local), range.count,
                      parameters_.values().begin() + static_cast<ptrdiff_t>(range.offset));
          local += range.count;
        }
        return std::optional<uint64_t>(frame.value().header.version);
      }
      if (ps::kind_of(frame.value()) != ps::Kind::state) return base::Failure{"an answer that is no snapshot"};
      ps::take_elements(frame.value(), shard);
    }
  }

  graph::ParameterStore& parameters_;
  std::vector<std::unique_ptr<ps::Link>> links_;
  std::vector<std::vector<graph::ParameterRange>> ranges_;  ///< of each server
  bool gave_up_ = false;
};

EvalEvent to_event(uint64_t step, const Metrics& metrics, double seconds, double took, std::optional<double>& best) {
  EvalEvent event;
  event.step = step;
  event.loss = metrics.loss;
  event.accuracy = metrics.has_accuracy ? metrics.accuracy : std::numeric_limits<double>::quiet_NaN();
  event.examples = metrics.examples;
  const double score = metrics.has_accuracy ? metrics.accuracy : -metrics.loss;
  event.best = !best || score > *best;
  if (event.best) best = score;
  event.seconds = seconds;
  event.eval_seconds = took;
  return event;
}

}  // namespace

void run_server(Configuration configuration, const RoleOptions& options) {
  const Group& group = options.group;
  Prepared prepared = prepare(configuration, group);
  const Settings& settings = prepared.settings;
  if (prepared.run.empty() && group.task.index == 0) {
    const std::string name = settings.name.empty() ? configuration.model(settings.model).name : settings.name;
    prepared.run = RunDirectory::create(settings.runs_dir, name).path();
  } else if (prepared.run.empty()) {
    prepared.run = find_cluster_run(settings, group, prepared.job, options.interrupt);
  }
  const RunDirectory folder = RunDirectory::share(prepared.run + "/" + group.task.folder(), group.task.folder());
  ps::ServerOptions server;
  server.index = group.task.index;
  server.spec = group.spec;
  server.security = security_of(settings);
  server.folder = folder.path();
  server.durability = durability_of(settings);
  server.job = prepared.job;
  server.run = std::filesystem::path(prepared.run).filename().string();
  server.threads = resolve_threads(settings);
  server.patience = settings.patience;
  server.contributions = settings.contributions;
  server.resumed = !configuration.given_text("resume").empty();
  server.log = group.log;
  server.interrupt = options.interrupt;
  ps::Server running(server);
  std::optional<Beat> beat;
  if (options.on_progress) beat.emplace([&] { options.on_progress(running.progress()); });
  running.run();
}

void run_evaluator(Configuration configuration, const RoleOptions& options) {
  const Group& group = options.group;
  Prepared prepared = prepare(configuration, group);
  const Settings& settings = prepared.settings;
  const nn::ModelDef& model = configuration.model(settings.model);
  const data::Dataset dataset =
      data::load(settings.dataset, data_options(settings, model.image), options.fetch_progress);
  if (prepared.run.empty()) prepared.run = find_cluster_run(settings, group, prepared.job, options.interrupt);
  const RunDirectory folder = RunDirectory::share(prepared.run + "/" + group.task.folder(), group.task.folder());
  const auto backend = make_backend(settings.backend, resolve_threads(settings),
                                    {.exact_conv = settings.exact_conv, .precision = settings.precision});
  const data::ImageShape& shape = dataset.shape();
  const ModelSpec spec{&model,
                       nn::resolve_options(model, settings.options),
                       {shape.channels, shape.height, shape.width},
                       dataset.classes()};
  graph::ParameterStore parameters = make_parameters(spec, settings.seed);
  const data::PixelScaling pixels = settings.pixels != "standard" ? data::PixelScaling{}
                                    : dataset.pixels              ? *dataset.pixels
                                                                  : data::standardise(dataset.train);
  const data::Examples& split = settings.eval_split == "validation" ? dataset.validation : dataset.test;
  Evaluator evaluator(spec, *backend, parameters.values().data(), split, settings.eval_batch, &pixels);
  RunLog log(folder, 0, std::filesystem::exists(folder.evals_file()), UINT64_MAX);
  const StopRules rules = StopRules::from(settings);
  Follower follower(prepared, options, parameters);
  const RunClock clock;
  std::optional<double> best;
  uint64_t step = 0;
  while (const std::optional<uint64_t> found = follower.next(step)) {
    step = *found;
    const double before = clock.seconds();
    const Metrics metrics = evaluator.run();
    const EvalEvent event = to_event(step, metrics, clock.seconds(), clock.seconds() - before, best);
    log.on_eval(event);
    for (Hooks* hook : options.hooks) hook->on_eval(event);
    TrainingState state;
    state.last_eval = EvalRecord{step, 0, metrics.loss, metrics.accuracy, metrics.examples};
    const StopReason goal = rules.check_goals(state);
    if (goal != StopReason::none) follower.stop(goal);
  }
}

}  // namespace lockstep::train
