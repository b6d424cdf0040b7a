#include "role/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>

#include "checkpoint/checkpoint_store.h"
#include "observe/trace/merge.h"
#include "observe/trace/role_trace.h"
#include "role/all_reduce_member.h"
#include "role/checkpoint_source.h"
#include "role/role_observer.h"
#include "run/run_directory.h"
#include "run/run_log.h"
#include "settings/machine.h"
#include "train/data_options.h"
#include "train/stop_rules.h"

namespace lockstep::role {
namespace {

/// The settings of a role, and the folder of the run if it is given.
struct Prepared {
  settings::Settings settings;
  std::string job;
  std::string run;  ///< folder of the run; empty: not known yet
};

Prepared prepare(settings::Configuration& configuration, const ClusterProcess& process) {
  Prepared made;
  const std::string resumed = configuration.given_text("resume");
  if (!resumed.empty()) {
    const std::string runs_dir = configuration.given_text("runs-dir");
    made.run = run::find_run(resumed, runs_dir.empty() ? settings::Settings{}.runs_dir : runs_dir);
    configuration.resume_from(made.run + "/config.yaml");
  }
  made.settings = configuration.resolve();
  if (made.run.empty()) made.run = made.settings.run_dir;
  made.job = job_digest(made.settings, process.spec);
  check_cluster_settings(made.settings, process.spec, process.tell_launcher != nullptr);
  check_keys(made.settings, process);
  return made;
}

ps::Durability durability_of(const settings::Settings& settings) {
  if (settings.durability == settings::Durability::machine) return ps::Durability::machine;
  return settings.durability == settings::Durability::checkpoint ? ps::Durability::checkpoint : ps::Durability::process;
}

std::string find_run_of(const settings::Settings& settings, const ClusterProcess& process, const std::string& job,
                        const std::atomic<bool>* interrupt) {
  const bool all_reduce = process.spec.ps.empty();
  return all_reduce ? find_all_reduce_run(settings, process, job, interrupt)
                    : find_cluster_run(settings, process, job, interrupt);
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

/// Returns the evaluation as an event, and keeps the best one in `best`.
train::EvalEvent to_event(uint64_t step, const train::Metrics& metrics, double seconds, double took,
                          std::optional<checkpoint::EvalRecord>& best) {
  const checkpoint::EvalRecord record{step, 0, metrics.loss, metrics.accuracy, metrics.examples};
  train::EvalEvent event;
  event.step = step;
  event.loss = metrics.loss;
  event.accuracy = metrics.has_accuracy ? metrics.accuracy : std::numeric_limits<double>::quiet_NaN();
  event.examples = metrics.examples;
  event.best = is_better(record, best);
  if (event.best) best = record;
  event.seconds = seconds;
  event.eval_seconds = took;
  return event;
}

/// The processes that had the last checkpoint may have left before it was asked for. Then it is read from the run's
/// folder, if that is shared. Returns its step, with the parameters in place; nothing if the evaluator has had it
/// already.
std::optional<uint64_t> take_last(const std::string& run, uint64_t after, program::ParameterStore& parameters) {
  const checkpoint::CheckpointStore store(run + "/checkpoints");
  const std::vector<checkpoint::CheckpointStore::File> files = store.list();
  if (files.empty() || files.back().step <= after) return std::nullopt;
  std::string path;
  const checkpoint::Checkpoint last = store.load_newest(path);
  if (last.parameters().size() != parameters.count()) return std::nullopt;
  std::copy(last.parameters().begin(), last.parameters().end(), parameters.values().begin());
  return last.header.state.step;
}

}  // namespace

void run_server(settings::Configuration configuration, const RoleOptions& options) {
  base::TrafficMeter traffic;
  ClusterProcess process = options.process;
  process.meter = &traffic;
  Prepared prepared = prepare(configuration, process);
  const settings::Settings& settings = prepared.settings;
  if (prepared.run.empty() && process.task.index == 0) {
    const std::string name = settings.name.empty() ? configuration.model(settings.model).name : settings.name;
    prepared.run = run::RunDirectory::create(settings.runs_dir, name).path();
  } else if (prepared.run.empty()) {
    prepared.run = find_cluster_run(settings, process, prepared.job, options.interrupt);
  }
  const run::RunDirectory folder =
      run::RunDirectory::share(prepared.run + "/" + process.task.folder(), process.task.folder());
  ps::ServerOptions server;
  server.index = process.task.index;
  server.spec = process.spec;
  server.security = security_of(settings, process);
  server.folder = folder.path();
  server.durability = durability_of(settings);
  server.job = prepared.job;
  server.run = std::filesystem::path(prepared.run).filename().string();
  server.threads = settings::resolve_threads(settings);
  server.patience = settings.patience;
  server.contributions = settings.contributions;
  server.resumed = !configuration.given_text("resume").empty();
  server.log = process.log;
  server.interrupt = options.interrupt;
  server.meter = process.meter;
  std::optional<observe::RoleTrace> trace;
  if (settings.trace) trace.emplace(process.task.str());
  server.tracer = trace ? &trace->tracer() : nullptr;
  ps::Server running(server);
  ServerObserver observer(settings, observed_role(process, folder.path()), running);
  const Beat beat([&] {
    const ps::Server::Progress progress = running.progress();
    observer.look(progress);
    if (options.on_progress) options.on_progress(progress);
  });
  const auto write_trace = [&] {
    const std::string problem = trace ? trace->write(folder.path() + "/" + observe::kTraceFile) : "";
    if (!problem.empty()) process.log("warning", problem);
  };
  try {
    running.run();
  } catch (...) {
    write_trace();
    throw;
  }
  write_trace();
}

void run_evaluator(settings::Configuration configuration, const RoleOptions& options) {
  base::TrafficMeter traffic;
  ClusterProcess process = options.process;
  process.meter = &traffic;
  Prepared prepared = prepare(configuration, process);
  const settings::Settings& settings = prepared.settings;
  const nn::ModelDef& model = configuration.model(settings.model);
  if (prepared.run.empty()) prepared.run = find_run_of(settings, process, prepared.job, options.interrupt);
  process.look_for_ending = look_in(prepared.run);
  const data::Dataset dataset =
      data::load(settings.dataset, train::data_options(settings, model.image), options.fetch_progress);
  const run::RunDirectory folder =
      run::RunDirectory::share(prepared.run + "/" + process.task.folder(), process.task.folder());
  const auto backend = settings::make_backend(settings.backend, settings::resolve_threads(settings),
                                              {.exact_conv = settings.exact_conv, .precision = settings.precision});
  const data::ImageShape& shape = dataset.shape();
  const train::ModelSpec spec{&model,
                              nn::resolve_options(model, settings.options),
                              {shape.channels, shape.height, shape.width},
                              dataset.classes()};
  program::ParameterStore parameters = make_parameters(spec, settings.seed);
  const data::PixelScaling pixels = settings.pixels != settings::PixelValues::standard ? data::PixelScaling{}
                                    : dataset.pixels                                   ? *dataset.pixels
                                                     : data::standardise(dataset.train);
  const data::Examples& split =
      settings.eval_split == settings::EvalSplit::validation ? dataset.validation : dataset.test;
  train::Evaluator evaluator(spec, *backend, parameters.values().data(), split, settings.eval_batch, &pixels);
  EvaluatorObserver observer(settings, observed_role(process, folder.path()));
  run::RunLog log(folder, 0, std::filesystem::exists(folder.evals_file()), UINT64_MAX);
  const train::StopRules rules = train::StopRules::from(settings);
  const auto source = follow_checkpoints(settings, process, prepared.job, options.interrupt, parameters);
  const train::RunClock clock;
  std::optional<checkpoint::EvalRecord> best;
  const auto evaluate = [&](uint64_t step) {
    const double before = clock.seconds();
    const train::Metrics metrics = evaluator.run();
    const train::EvalEvent event = to_event(step, metrics, clock.seconds(), clock.seconds() - before, best);
    log.on_eval(event);
    observer.on_eval(event);
    for (train::Hooks* hook : options.hooks) hook->on_eval(event);
    checkpoint::TrainingState state;
    state.last_eval = checkpoint::EvalRecord{step, 0, metrics.loss, metrics.accuracy, metrics.examples};
    return rules.check_goals(state);
  };
  uint64_t step = 0;
  while (const std::optional<uint64_t> found = source->next(step)) {
    step = *found;
    const train::StopReason goal = evaluate(step);
    if (goal != train::StopReason::none) source->stop(goal);
  }
  const bool interrupted = options.interrupt != nullptr && options.interrupt->load();
  if (interrupted) return;
  if (const auto last = take_last(prepared.run, step, parameters)) static_cast<void>(evaluate(*last));
}

}  // namespace lockstep::role
