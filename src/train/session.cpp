#include "train/session.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "observe/trace/merge.h"
#include "observe/trace/role_trace.h"
#include "train/all_reduce_member.h"
#include "train/data_options.h"
#include "train/group_member.h"
#include "train/leaders_log.h"
#include "train/machine.h"
#include "train/replicas.h"
#include "train/run_checkpointer.h"
#include "train/run_end.h"
#include "train/run_log.h"
#include "train/setup.h"
#include "train/summary.h"
#include "train/training_observer.h"

namespace lockstep::train {
namespace {

constexpr std::chrono::seconds kSummaryPatience{10};

data::Dataset load_data(const Settings& settings, const nn::ModelDef& model, const SessionOptions& session) {
  if (session.dataset != nullptr) return *session.dataset;
  return data::load(settings.dataset, data_options(settings, model.image), session.fetch_progress);
}

}  // namespace

class Session::Impl {
 public:
  Impl(Configuration configuration, SessionOptions options);

  [[nodiscard]] StartEvent start_event() const;
  Outcome run();

  Settings settings;
  std::optional<RunDirectory> directory;
  StopReason finished = StopReason::none;

 private:
  void open_run(Configuration& configuration);
  /// The same for one of a cluster: its settings, the run's folder and its own in it.
  void open_member_run(Configuration& configuration);
  [[nodiscard]] bool chief() const { return !member_ || member_->chief(); }
  /// Whether this process may come to write for all, and whether it does now.
  [[nodiscard]] bool may_lead() const { return chief() || member_->leadership_moves(); }
  [[nodiscard]] bool leads() const { return !member_ || member_->leads(); }
  /// The exchange with others, for a Setup; nothing for one that trains alone.
  std::optional<Together> join_others(const nn::ModelDef& model, const data::Dataset& dataset);
  /// All-reduce: training begins at this step, whatever had been written beyond it.
  void began(uint64_t step, uint64_t examples);
  /// All-reduce: whether nobody has kept anything of a later step in the run's folder.
  [[nodiscard]] bool is_newest(uint64_t step) const { return kept_step(whole_run().path()) <= step; }
  [[nodiscard]] const RunDirectory& whole_run() const { return run_ ? *run_ : *directory; }
  /// All-reduce: another one may lead after this.
  void regrouping();
  /// All-reduce: keeps the bucket size that was found, for when the run is resumed.
  void tuned(size_t bytes);
  /// What a cluster starts with: the newest checkpoint, or the model as it is made.
  ps::Initial initial();
  void open_outputs();
  void observe();
  /// Where there is one; what goes wrong is a warning.
  void write_trace() const;
  StopReason train_replicas(Trainer& first, const RunClock& clock);
  /// The checkpoint to go on from; nothing for a new run.
  std::optional<Checkpoint> load_checkpoint();
  [[nodiscard]] StopReason find_finished(const TrainingState& state) const;
  [[nodiscard]] Outcome outcome(const TrainingState& state, StopReason reason) const;
  void write_summary(const Outcome& outcome, const std::string& error);
  /// Tells everyone and writes the summary, in spite of further failures: the error that is on its way counts.
  void end_with_error(Trainer& trainer, StopReason reason, const std::string& error) noexcept;

  SessionOptions options_;
  base::TrafficMeter traffic_;  ///< with other roles
  std::optional<observe::RoleTrace> trace_;
  ModelCatalog models_;  ///< owns the model where it is a file
  bool resumed_ = false;
  std::optional<CheckpointStore> store_;
  std::optional<Setup> setup_;
  std::optional<RunLog> log_;
  std::optional<RunDirectory> run_;  ///< the whole run's folder, where leadership moves and this one is a role's
  std::optional<LeadersLog> leaders_log_;
  std::optional<data::Dataset> replicas_data_;
  std::optional<Replicas> replicas_;
  std::unique_ptr<Hooks> pictures_;  ///< absent where the model shows nothing
  std::unique_ptr<Hooks> samples_;   ///< the same
  std::optional<TrainingObserver> observer_;
  std::vector<Hooks*> hooks_;
  TrainingState start_;
  size_t parameters_ = 0;
  ModelTraits traits_;
  int64_t started_ = 0;
  std::unique_ptr<GroupMember> member_;
  std::optional<Checkpoint> initial_checkpoint_;  ///< that `initial` lends out
  std::vector<float> initial_parameters_;
};

Session::Impl::Impl(Configuration configuration, SessionOptions options) : options_(std::move(options)) {
  if (options_.group != nullptr) {
    open_member_run(configuration);
  } else {
    open_run(configuration);
    settings = configuration.resolve();
    settings.batch = batch_per_replica(settings);
  }
  models_ = configuration.models();
  settings.threads = settings.replicas > 1 ? threads_per_replica(settings) : resolve_threads(settings);
  const std::optional<Checkpoint> checkpoint = load_checkpoint();
  const nn::ModelDef& model = configuration.model(settings.model);
  if (checkpoint) {
    traits_ = traits_of({&model, settings.options, checkpoint->header.image, checkpoint->header.classes});
    start_ = checkpoint->header.state;
    parameters_ = checkpoint->header.parameter_count();
    finished = member_ ? StopReason::none : find_finished(start_);
    if (finished != StopReason::none) return;
  }
  data::Dataset dataset = load_data(settings, model, options_);
  if (settings.trace) trace_.emplace(member_ ? options_.group->task.str() : "train");
  const std::optional<Together> together = join_others(model, dataset);
  setup_.emplace(settings, model, std::move(dataset), checkpoint ? &*checkpoint : nullptr,
                 together ? &*together : nullptr, trace_ ? &trace_->training() : nullptr);
  traits_ = setup_->traits();
  settings = setup_->settings();
  parameters_ = setup_->parameters().count();
  open_outputs();
}

std::optional<Together> Session::Impl::join_others(const nn::ModelDef& model, const data::Dataset& dataset) {
  if (!member_ && settings.replicas <= 1) return std::nullopt;
  const data::ImageShape& shape = dataset.shape();
  const ModelTraits traits =
      traits_of({&model, settings.options, {shape.channels, shape.height, shape.width}, dataset.classes()});
  MemberStart start;
  start.examples = dataset.train.count();
  start.mean_loss = traits.loss_over == nn::LossOver::mean;
  start.state = &start_;
  start.trace = trace_ ? &trace_->training() : nullptr;
  start.tuned = [this](size_t bytes) { tuned(bytes); };
  if (member_) {
    start.initial = [this] { return initial(); };
    start.began = [this](uint64_t step, uint64_t examples) { began(step, examples); };
    start.went_back = [this](uint64_t step) { store_->abandon_after(step); };
    start.is_newest = [this](uint64_t step) { return is_newest(step); };
    start.regrouping = [this] { regrouping(); };
    return member_->together(std::move(start));
  }
  replicas_data_ = dataset;
  replicas_.emplace(settings, model, *replicas_data_, options_.interrupt);
  return replicas_->together(std::move(start));
}

void Session::Impl::began(uint64_t step, uint64_t examples) {
  settings.checkpoint.clear();  // what the user named counts once; then it is the newest
  store_->remove_leftovers();
  store_->abandon_after(step);
  std::error_code ignored;
  std::filesystem::remove(whole_run().summary_file(), ignored);  // it says nothing of now
  if (leaders_log_) leaders_log_->go_back(step, examples);
}

void Session::Impl::regrouping() {
  if (leaders_log_) leaders_log_->let_go();
}

void Session::Impl::tuned(size_t bytes) {
  settings.bucket_mb = static_cast<double>(bytes) / kBucketMegabyte;
  settings.autotune = false;
  base::write_whole_file(whole_run().config_file(), to_yaml(settings));
}

void Session::Impl::open_member_run(Configuration& configuration) {
  const ClusterProcess& group = *options_.group;
  const std::string resumed = configuration.given_text("resume");
  std::string run;
  if (!resumed.empty()) {
    const std::string runs_dir = configuration.given_text("runs-dir");
    run = find_run(resumed, runs_dir.empty() ? Settings{}.runs_dir : runs_dir);
    configuration.resume_from(run + "/config.yaml");
  }
  settings = configuration.resolve();
  const std::string job = job_digest(settings, group.spec);
  ClusterProcess metered = group;
  metered.meter = &traffic_;
  member_ = make_member(std::move(metered), settings, job, options_.interrupt);
  settings.batch = member_->batch();
  if (run.empty()) run = settings.run_dir;
  if (run.empty()) run = member_->find_run(configuration.model(settings.model).name);
  member_->set_run(run);
  directory = RunDirectory::share(member_->folder(run), group.task.folder());
  if (member_->leadership_moves() && !member_->chief()) run_ = RunDirectory::share(run, group.task.folder());
  // A role that was here before goes on in its files.
  resumed_ = std::filesystem::exists(directory->steps_file());
}

ps::Initial Session::Impl::initial() {
  ps::Initial initial;
  if (store_->list().empty()) {
    log_->go_back(0, 0);
    initial_parameters_ = setup_->first_parameters();
    initial.parameters = initial_parameters_;
    return initial;
  }
  std::string path;
  initial_checkpoint_ = store_->load(settings.checkpoint, path);
  settings.checkpoint.clear();  // what the user named counts once; then it is the newest
  store_->abandon_after(initial_checkpoint_->header.state.step);
  const CheckpointHeader& header = initial_checkpoint_->header;
  initial.version = header.state.step;
  initial.examples = header.state.examples;
  log_->go_back(initial.version, initial.examples);
  initial.data = header.state.data;
  initial.parameters = initial_checkpoint_->parameters();
  for (size_t i = 0; i < header.slots.size(); ++i) initial.slots.push_back(initial_checkpoint_->slot(i));
  return initial;
}

void Session::Impl::open_outputs() {
  if (member_) {
    if (chief()) base::make_directories(directory->checkpoints());
    if (run_) base::make_directories(run_->checkpoints());
    if (!resumed_) models_.keep_copy(settings.model, directory->path());
  } else if (!resumed_) {
    directory = RunDirectory::create_for(settings, models_.find(settings.model).name);
    models_.keep_copy(settings.model, directory->path());
  }
  if (!store_) store_.emplace(whole_run().checkpoints(), settings.keep);
  if (resumed_ && !member_) store_->abandon_after(start_.step);
  const bool alone = !member_ || !member_->leadership_moves();  // in the run's folder
  if (chief() && alone) store_->remove_leftovers();
  base::write_whole_file(directory->config_file(), to_yaml(settings));
  // One of a cluster goes on at the group's step, which is behind all that it has logged.
  // Only the first rank of an MPI job begins with its own checkpoint, for all.
  const bool as_checkpoint = !member_ || (options_.group->mpi && chief());
  const uint64_t kept = as_checkpoint ? start_.step : UINT64_MAX;
  const auto every = static_cast<uint64_t>(settings.log_every);
  if (member_ && member_->leadership_moves()) {
    leaders_log_.emplace(run_ ? *run_ : *directory, every, [this] { return leads(); });
    hooks_.push_back(&*leaders_log_);
  }
  if (!leaders_log_ || run_) {
    log_.emplace(*directory, every, resumed_, kept);
    hooks_.push_back(&*log_);
  }
  observe();
  const PictureSink sink = [this](const std::string& name, uint64_t step, const EncodedPicture& picture) {
    observer_->show(name, step, picture);
  };
  if (may_lead()) pictures_ = setup_->picture_writer(whole_run().pictures(), sink);
  if (pictures_) hooks_.push_back(pictures_.get());
  if (observer_->shows()) samples_ = setup_->sample_writer(sink);
  if (samples_) hooks_.push_back(samples_.get());
  hooks_.insert(hooks_.end(), options_.hooks.begin(), options_.hooks.end());
}

void Session::Impl::observe() {
  ObservedRole role;
  Shown shown;
  if (member_) {
    role = member_->observed(directory->path());
    shown = member_->shown(setup_->parameters());
  } else {
    role.folder = directory->path();
    role.log = options_.log;
    role.first_step = start_.step;
    shown.parameters = &setup_->parameters();
    shown.devices.compute = "/job:local/device:CPU:0";
  }
  shown.graph = [this] { return setup_->training_graph(); };
  observer_.emplace(settings, std::move(role), std::move(shown));
  hooks_.push_back(&*observer_);
}

void Session::Impl::open_run(Configuration& configuration) {
  const std::string run = configuration.given_text("resume");
  if (run.empty()) return;
  const std::string runs_dir = configuration.given_text("runs-dir");
  directory = RunDirectory::open(run, runs_dir.empty() ? Settings{}.runs_dir : runs_dir);
  configuration.resume_from(directory->config_file());
  resumed_ = true;
}

std::optional<Checkpoint> Session::Impl::load_checkpoint() {
  const bool all_reduce = member_ && member_->leadership_moves();
  if (!resumed_ && !all_reduce) return std::nullopt;
  store_.emplace(whole_run().checkpoints(), settings.keep);
  if (member_ && store_->list().empty()) return std::nullopt;
  if (settings.checkpoint.empty() && store_->list().empty()) {
    throw UsageError(fmt::format("run {} ended before its first checkpoint; start anew with --config {}",
                                 directory->path(), directory->config_file()));
  }
  std::string path;
  Checkpoint checkpoint = store_->load(settings.checkpoint, path);
  check_settings_match(checkpoint.header, settings, path);
  // What was the best at an older checkpoint may have been removed since.
  std::optional<EvalRecord>& best = checkpoint.header.state.best_checkpoint;
  if (best && !store_->has(best->step)) best.reset();
  return checkpoint;
}

StopReason Session::Impl::find_finished(const TrainingState& state) const {
  const StopReason reason = StopRules::from(settings).check(state, RunClock(state.seconds));
  const bool out_of_data = settings.repeat > 0 && state.data.first_pass() >= settings.repeat;
  return reason == StopReason::none && out_of_data ? StopReason::data : reason;
}

StartEvent Session::Impl::start_event() const {
  StartEvent event;
  event.model = models_.find(settings.model).name;
  event.dataset = settings.dataset;
  event.run_dir = directory->path();
  event.parameters = parameters_;
  event.has_accuracy = traits_.accuracy;
  event.batch = settings.batch;
  event.accumulate = settings.accumulate;
  event.limit_seconds = settings.seconds;
  event.first_step = start_.step;
  event.first_examples = start_.examples;
  event.first_aside_seconds = start_.aside_seconds;
  event.threads = static_cast<int>(settings.threads);
  if (!setup_) return event;
  event.train_examples = setup_->dataset().train.count();
  event.data_origin = setup_->dataset().origin;
  event.steps_per_epoch = setup_->steps_per_epoch();
  event.total_steps = setup_->total_steps();
  return event;
}

Outcome Session::Impl::outcome(const TrainingState& state, StopReason reason) const {
  Outcome outcome = outcome_of(state, reason, traits_.accuracy);
  outcome.run_dir = directory->path();
  outcome.already_finished = finished != StopReason::none;
  outcome.parameters = parameters_;
  outcome.peak_memory_bytes = peak_memory_bytes();
  if (observer_) outcome.phases = observer_->phases();
  std::error_code ignored;
  if (std::filesystem::is_directory(directory->pictures(), ignored)) outcome.pictures = directory->pictures();
  return outcome;
}

void Session::Impl::write_summary(const Outcome& outcome, const std::string& error) {
  Summary summary;
  summary.settings = settings;
  summary.outcome = outcome;
  summary.error = error;
  summary.started = started_;
  summary.ended = std::time(nullptr);
  summary.threads = setup_->threads();
  summary.wait_policy = wait_policy_name(settings);
  summary.isa = active_isa();
  if (member_) summary.role = member_->task().str();
  if (observer_) summary.resources = observer_->stop();
  // The chief's folder is the run's: there the one who leads writes.
  const std::string json = to_json(summary);
  if (!chief()) base::write_whole_file(directory->summary_file(), json);
  if (!leads()) return;
  std::optional<base::LockFile> lock;
  if (member_ && member_->leadership_moves()) {
    // Another one may have gone on without this one, and have ended.
    lock = base::LockFile::lock(whole_run().path() + "/.summary.lock", kSummaryPatience);
    if (!is_newest(outcome.steps)) return;
  }
  base::write_whole_file(whole_run().summary_file(), json);
}

void Session::Impl::end_with_error(Trainer& trainer, StopReason reason, const std::string& error) noexcept {
  const auto try_to = [](const auto& action) {
    try {
      action();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the first error is the one to report
    }
  };
  try_to([&] {
    if (observer_) observer_->add_end(trainer.phases_since());
    const Outcome ended = outcome(trainer.state(), reason);
    for (Hooks* hook : hooks_) try_to([&] { hook->on_end(ended); });
    write_summary(ended, error);
    write_trace();
  });
}

void Session::Impl::write_trace() const {
  if (!trace_) return;
  const char* name = member_ && chief() ? observe::kChiefTraceFile : observe::kTraceFile;
  const std::string problem = trace_->write(directory->path() + "/" + name);
  if (problem.empty()) return;
  const auto& log = member_ ? options_.group->log : options_.log;
  if (log) log("warning", problem);
}

StopReason Session::Impl::train_replicas(Trainer& first, const RunClock& clock) {
  replicas_->start();
  StopReason reason = StopReason::none;
  try {
    reason = first.run(clock);
  } catch (...) {
    replicas_->fail();
    throw;
  }
  replicas_->finish();
  return reason;
}

Outcome Session::Impl::run() {
  if (finished != StopReason::none) return outcome(start_, finished);
  RunCheckpointer checkpointer(*setup_, *store_);
  Parts parts = setup_->parts();
  if (may_lead()) parts.checkpointer = &checkpointer;
  parts.hooks = hooks_;
  parts.interrupt = options_.interrupt;
  started_ = std::time(nullptr);
  TrainerOptions trainer_options = setup_->trainer_options();
  trainer_options.trace_steps = static_cast<uint64_t>(settings.trace_steps);
  Trainer trainer(std::move(parts), member_ ? member_->adapted(trainer_options) : trainer_options, start_);
  const RunClock clock(start_.seconds);
  StopReason reason = StopReason::none;
  try {
    StartEvent start = start_event();
    start.clock = &clock;
    for (Hooks* hook : hooks_) hook->on_start(start);
    reason = replicas_ ? train_replicas(trainer, clock) : trainer.run(clock);
  } catch (const NonFiniteError& error) {
    if (member_) member_->end();
    end_with_error(trainer, StopReason::not_finite, error.what());
    throw;
  } catch (const std::exception& error) {
    end_with_error(trainer, StopReason::error, error.what());
    throw;
  }
  if (observer_) observer_->add_end(trainer.phases_since());
  Outcome ended = outcome(trainer.state(), reason);
  if (member_) member_->report(ended);
  if (replicas_) replicas_->report(ended);
  for (Hooks* hook : hooks_) hook->on_end(ended);
  write_summary(ended, "");
  write_trace();
  if (member_) member_->end();
  return ended;
}

Session::Session(Configuration configuration, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(configuration), std::move(options))) {}
Session::~Session() = default;

const Settings& Session::settings() const { return impl_->settings; }
const std::string& Session::run_dir() const { return impl_->directory->path(); }
bool Session::finished() const { return impl_->finished != StopReason::none; }
StartEvent Session::start_event() const { return impl_->start_event(); }
Outcome Session::run() { return impl_->run(); }

Outcome train(const Request& request) {
  Configuration configuration(request.models);
  if (!request.config_file.empty()) configuration.load_yaml(request.config_file);
  for (const auto& [name, text] : request.settings) configuration.set(name, text);
  Session session(configuration, {request.hooks, request.interrupt});
  return session.run();
}

}  // namespace lockstep::train
