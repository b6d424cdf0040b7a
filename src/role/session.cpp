#include "role/session.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "observe/trace/merge.h"
#include "observe/trace/role_trace.h"
#include "role/all_reduce_member.h"
#include "role/group_member.h"
#include "role/replicas.h"
#include "run/leaders_log.h"
#include "run/run_end.h"
#include "run/run_log.h"
#include "run/summary.h"
#include "settings/machine.h"
#include "train/data_options.h"
#include "train/run_checkpointer.h"
#include "train/setup.h"
#include "train/training_observer.h"

namespace lockstep::role {
namespace {

constexpr std::chrono::seconds kSummaryPatience{10};

data::Dataset load_data(const settings::Settings& settings, const nn::ModelDef& model, const SessionOptions& session) {
  if (session.dataset != nullptr) return *session.dataset;
  return data::load(settings.dataset, train::data_options(settings, model.image), session.fetch_progress);
}

}  // namespace

class Session::Impl final : exchange::RunEvents {
 public:
  Impl(settings::Configuration configuration, SessionOptions options);

  [[nodiscard]] train::StartEvent start_event() const;
  train::Outcome run();

  settings::Settings settings;
  std::optional<run::RunDirectory> directory;
  train::StopReason finished = train::StopReason::none;

 private:
  void open_run(settings::Configuration& configuration);
  /// Opens the run as a member of a cluster: its settings, the run's folder and its own folder in it.
  void open_member_run(settings::Configuration& configuration);
  [[nodiscard]] bool chief() const { return !member_ || member_->chief(); }
  /// Returns true if this process may become the leader, which writes the run's files.
  [[nodiscard]] bool may_lead() const { return chief() || member_->leadership_moves(); }
  [[nodiscard]] bool leads() const { return !member_ || member_->leads(); }
  /// Returns the options for training with others, for a Setup; nothing if this process trains alone.
  std::optional<train::Together> join_others(const nn::ModelDef& model, const data::Dataset& dataset);
  [[nodiscard]] const run::RunDirectory& whole_run() const { return run_ ? *run_ : *directory; }

  // Events of an all-reduce process. Between replicas of one process only the bucket size changes.
  void training_begins(uint64_t step, uint64_t examples) override;
  void group_begins(uint64_t number, uint64_t step) override {
    if (observer_ && member_) observer_->group(number, step);
  }
  void group_breaks_up() override;
  /// Keeps the bucket size for a later resume.
  void bucket_size_found(size_t bytes) override;
  [[nodiscard]] bool is_newest(uint64_t step) const override;

  /// Returns the initial state of a cluster: the newest checkpoint, or the model's initial parameters.
  ps::Initial initial();
  void open_outputs();
  void observe();
  [[nodiscard]] train::Fence fence() const;
  /// Writes the trace if there is one; failures are warnings.
  void write_trace() const;
  [[nodiscard]] double seconds_before() const;
  [[nodiscard]] int64_t began() const;
  train::StopReason train_replicas(train::Trainer& first, const train::RunClock& clock);
  /// Returns the checkpoint to resume from; nothing for a new run.
  std::optional<checkpoint::Checkpoint> load_checkpoint();
  [[nodiscard]] train::StopReason find_finished(const checkpoint::TrainingState& state) const;
  [[nodiscard]] train::Outcome outcome(const checkpoint::TrainingState& state, train::StopReason reason) const;
  void write_summary(const train::Outcome& outcome, const std::string& error);
  /// Reports the error to hooks and writes the summary. Ignores further failures, because the current error is the one
  /// that counts.
  void end_with_error(train::Trainer& trainer, train::StopReason reason, const std::string& error) noexcept;

  /// Returns whether a member was interrupted before it joined the others: it gave up waiting for them.
  [[nodiscard]] bool gave_up(const train::Trainer& trainer, const std::exception& error) const;

  SessionOptions options_;
  base::TrafficMeter traffic_;  ///< traffic with other roles
  std::optional<observe::RoleTrace> trace_;
  settings::ModelCatalog models_;  ///< owns the model if it is a file
  bool resumed_ = false;
  std::optional<checkpoint::CheckpointStore> store_;
  std::optional<train::Setup> setup_;
  std::optional<run::RunLog> log_;
  /// the run's folder, if another member may lead later; the session itself then writes to its role's subfolder
  std::optional<run::RunDirectory> run_;
  std::optional<run::LeadersLog> leaders_log_;
  std::optional<data::Dataset> replicas_data_;
  std::optional<Replicas> replicas_;
  std::unique_ptr<train::Hooks> pictures_;  ///< absent if the model has no pictures
  std::unique_ptr<train::Hooks> samples_;   ///< absent likewise
  std::optional<train::TrainingObserver> observer_;
  std::vector<train::Hooks*> hooks_;
  checkpoint::TrainingState start_;
  size_t parameters_ = 0;
  train::ModelTraits traits_;
  int64_t started_ = 0;
  std::unique_ptr<GroupMember> member_;
  std::optional<checkpoint::Checkpoint> initial_checkpoint_;  ///< checkpoint that `initial` lends out
  std::vector<float> initial_parameters_;
};

Session::Impl::Impl(settings::Configuration configuration, SessionOptions options) : options_(std::move(options)) {
  if (options_.process != nullptr) {
    open_member_run(configuration);
  } else {
    open_run(configuration);
    settings = configuration.resolve();
    settings.batch = batch_per_replica(settings);
  }
  models_ = configuration.models();
  settings.threads = settings.replicas > 1 ? threads_per_replica(settings) : settings::resolve_threads(settings);
  const std::optional<checkpoint::Checkpoint> checkpoint = load_checkpoint();
  const nn::ModelDef& model = configuration.model(settings.model);
  if (checkpoint) {
    traits_ = train::traits_of({&model, settings.options, checkpoint->header.image, checkpoint->header.classes});
    start_ = checkpoint->header.state;
    parameters_ = checkpoint->header.parameter_count();
    finished = member_ ? train::StopReason::none : find_finished(start_);
    if (finished != train::StopReason::none) return;
  }
  data::Dataset dataset = load_data(settings, model, options_);
  if (settings.trace) trace_.emplace(member_ ? options_.process->task.str() : "train");
  const std::optional<train::Together> together = join_others(model, dataset);
  setup_.emplace(settings, model, std::move(dataset), checkpoint ? &*checkpoint : nullptr,
                 together ? &*together : nullptr, trace_ ? &trace_->training() : nullptr);
  traits_ = setup_->traits();
  settings = setup_->settings();
  parameters_ = setup_->parameters().count();
  open_outputs();
}

std::optional<train::Together> Session::Impl::join_others(const nn::ModelDef& model, const data::Dataset& dataset) {
  if (!member_ && settings.replicas <= 1) return std::nullopt;
  const data::ImageShape& shape = dataset.shape();
  const train::ModelTraits traits =
      train::traits_of({&model, settings.options, {shape.channels, shape.height, shape.width}, dataset.classes()});
  MemberStart start;
  start.examples = dataset.train.count();
  start.mean_loss = traits.loss_over == nn::LossOver::mean;
  start.state = &start_;
  start.trace = trace_ ? &trace_->training() : nullptr;
  start.events = this;
  if (member_) {
    start.initial = [this] { return initial(); };
    return member_->together(std::move(start));
  }
  replicas_data_ = dataset;
  replicas_.emplace(settings, model, *replicas_data_, options_.interrupt);
  return replicas_->together(std::move(start));
}

void Session::Impl::training_begins(uint64_t step, uint64_t examples) {
  if (!member_) return;
  store_->remove_leftovers();
  // Groups go on from the newest state, so only a user goes back; the checkpoint that a user named is used once.
  if (!std::exchange(settings.checkpoint, {}).empty()) store_->abandon_after(step);
  std::error_code ignored;
  std::filesystem::remove(whole_run().summary_file(), ignored);  // it describes the earlier part only
  if (leaders_log_) leaders_log_->go_back(step, examples);
}

bool Session::Impl::is_newest(uint64_t step) const { return !member_ || run::kept_step(whole_run().path()) <= step; }

void Session::Impl::group_breaks_up() {
  if (leaders_log_) leaders_log_->close();
}

void Session::Impl::bucket_size_found(size_t bytes) {
  settings.bucket_mb = static_cast<double>(bytes) / kBucketMegabyte;
  settings.autotune = false;
  base::write_whole_file(whole_run().config_file(), settings::to_yaml(settings));
}

void Session::Impl::open_member_run(settings::Configuration& configuration) {
  const ClusterProcess& process = *options_.process;
  const std::string resumed = configuration.given_text("resume");
  std::string run;
  if (!resumed.empty()) {
    const std::string runs_dir = configuration.given_text("runs-dir");
    run = run::find_run(resumed, runs_dir.empty() ? settings::Settings{}.runs_dir : runs_dir);
    configuration.resume_from(run + "/config.yaml");
  }
  settings = configuration.resolve();
  const std::string job = job_digest(settings, process.spec);
  ClusterProcess metered = process;
  metered.meter = &traffic_;
  member_ = make_member(std::move(metered), settings, job, options_.interrupt);
  settings.batch = member_->batch();
  if (run.empty()) run = settings.run_dir;
  if (run.empty()) run = member_->find_run(configuration.model(settings.model).name);
  member_->set_run(run);
  directory = run::RunDirectory::share(member_->folder(run), process.task.folder());
  if (member_->leadership_moves() && !member_->chief()) run_ = run::RunDirectory::share(run, process.task.folder());
  // A restarted role continues its files.
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
  settings.checkpoint.clear();  // the checkpoint the user named is used once; later resumes take the newest
  store_->abandon_after(initial_checkpoint_->header.state.step);
  const checkpoint::CheckpointHeader& header = initial_checkpoint_->header;
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
    directory = run::RunDirectory::create_for(settings, models_.find(settings.model).name);
    models_.keep_copy(settings.model, directory->path());
  }
  if (!store_) store_.emplace(whole_run().checkpoints(), settings.keep);
  if (resumed_ && !member_) store_->abandon_after(start_.step);
  const bool alone = !member_ || !member_->leadership_moves();  // in the run's folder
  if (chief() && alone) store_->remove_leftovers();
  base::write_whole_file(directory->config_file(), settings::to_yaml(settings));
  // A member of a cluster continues at the group's step, which comes after all lines of its log, so it keeps them all.
  // Only the first rank of an MPI job starts from its own checkpoint, for all.
  const bool as_checkpoint = !member_ || (options_.process->mpi && chief());
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
  const train::PictureSink sink = [this](const std::string& name, uint64_t step, const train::EncodedPicture& picture) {
    observer_->show(name, step, picture);
  };
  if (may_lead()) pictures_ = setup_->picture_writer(whole_run().pictures(), sink);
  if (pictures_) hooks_.push_back(pictures_.get());
  if (observer_->shows()) samples_ = setup_->sample_writer(sink);
  if (samples_) hooks_.push_back(samples_.get());
  hooks_.insert(hooks_.end(), options_.hooks.begin(), options_.hooks.end());
}

void Session::Impl::observe() {
  run::ObservedRole role;
  train::Shown shown;
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

void Session::Impl::open_run(settings::Configuration& configuration) {
  const std::string run = configuration.given_text("resume");
  if (run.empty()) return;
  const std::string runs_dir = configuration.given_text("runs-dir");
  directory = run::RunDirectory::open(run, runs_dir.empty() ? settings::Settings{}.runs_dir : runs_dir);
  configuration.resume_from(directory->config_file());
  resumed_ = true;
}

std::optional<checkpoint::Checkpoint> Session::Impl::load_checkpoint() {
  const bool all_reduce = member_ && member_->leadership_moves();
  if (!resumed_ && !all_reduce) return std::nullopt;
  store_.emplace(whole_run().checkpoints(), settings.keep);
  if (member_ && store_->list().empty()) return std::nullopt;
  if (settings.checkpoint.empty() && store_->list().empty()) {
    throw UsageError(fmt::format("run {} ended before its first checkpoint; start again with --config {}",
                                 directory->path(), directory->config_file()));
  }
  std::string path;
  checkpoint::Checkpoint checkpoint = store_->load(settings.checkpoint, path);
  train::check_settings_match(checkpoint.header, settings, path);
  // An older checkpoint may name a best checkpoint that has been removed since.
  std::optional<checkpoint::EvalRecord>& best = checkpoint.header.state.best_checkpoint;
  if (best && !store_->has(best->step)) best.reset();
  return checkpoint;
}

train::StopReason Session::Impl::find_finished(const checkpoint::TrainingState& state) const {
  const train::StopReason reason = train::StopRules::from(settings).check(state, train::RunClock(state.seconds));
  const bool out_of_data = settings.repeat > 0 && state.data.first_pass() >= settings.repeat;
  return reason == train::StopReason::none && out_of_data ? train::StopReason::data : reason;
}

train::StartEvent Session::Impl::start_event() const {
  train::StartEvent event;
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

train::Outcome Session::Impl::outcome(const checkpoint::TrainingState& state, train::StopReason reason) const {
  train::Outcome outcome = run::outcome_of(state, reason, traits_.accuracy);
  outcome.run_dir = directory->path();
  outcome.already_finished = finished != train::StopReason::none;
  outcome.parameters = parameters_;
  outcome.peak_memory_bytes = settings::peak_memory_bytes();
  if (member_) outcome.role = member_->task().str();
  if (outcome.already_finished) run::take_recorded_memory(directory->summary_file(), outcome);
  if (observer_) outcome.phases = observer_->phases();
  std::error_code ignored;
  if (std::filesystem::is_directory(directory->pictures(), ignored)) outcome.pictures = directory->pictures();
  return outcome;
}

void Session::Impl::write_summary(const train::Outcome& outcome, const std::string& error) {
  run::Summary summary;
  summary.settings = settings;
  summary.outcome = outcome;
  summary.error = error;
  summary.started = started_;
  summary.ended = std::time(nullptr);
  summary.threads = setup_->threads();
  summary.wait_policy = settings::wait_policy_name(settings);
  summary.isa = settings::active_isa();
  if (member_) summary.role = member_->task().str();
  if (observer_) summary.resources = observer_->stop();
  // The chief's folder is the run's; the leader writes there.
  const std::string json = run::to_json(summary);
  if (!chief()) base::write_whole_file(directory->summary_file(), json);
  if (!leads()) return;
  std::optional<base::LockFile> lock;
  if (member_ && member_->leadership_moves()) {
    // Another member may have continued without this one, and have ended.
    lock = base::LockFile::lock(whole_run().path() + "/.summary.lock", kSummaryPatience);
    if (!is_newest(outcome.steps)) return;
    const std::string why = member_->why_not_latest();
    if (!why.empty()) {
      options_.process->log("warning", "the summary is not kept: " + why);
      return;
    }
  }
  base::write_whole_file(whole_run().summary_file(), json);
}

void Session::Impl::end_with_error(train::Trainer& trainer, train::StopReason reason,
                                   const std::string& error) noexcept {
  const auto try_to = [](const auto& action) {
    try {
      action();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the first error is the one to report
    }
  };
  try_to([&] {
    if (observer_) observer_->add_end(trainer.phases_since());
    const train::Outcome ended = outcome(trainer.state(), reason);
    for (train::Hooks* hook : hooks_) try_to([&] { hook->on_end(ended); });
    write_summary(ended, error);
    write_trace();
  });
}

bool Session::Impl::gave_up(const train::Trainer& trainer, const std::exception& error) const {
  const bool interrupted = options_.interrupt != nullptr && options_.interrupt->load();
  const bool other = dynamic_cast<const IoError*>(&error) != nullptr ||
                     dynamic_cast<const UsageError*>(&error) != nullptr ||
                     dynamic_cast<const DataError*>(&error) != nullptr;
  return member_ && interrupted && !other && trainer.state().step == start_.step;
}

train::Fence Session::Impl::fence() const {
  if (!member_ || !member_->leadership_moves()) return {};
  train::Fence fence;
  fence.why_not = [this] { return member_->why_not_latest(); };
  fence.group = [this] { return member_->group(); };
  fence.warn = [this](const std::string& line) { options_.process->log("warning", line); };
  return fence;
}

void Session::Impl::write_trace() const {
  if (!trace_) return;
  const char* name = member_ && chief() ? observe::kChiefTraceFile : observe::kTraceFile;
  const std::string problem = trace_->write(directory->path() + "/" + name);
  if (problem.empty()) return;
  const auto& log = member_ ? options_.process->log : options_.log;
  if (log) log("warning", problem);
}

/// Returns the training time so far. A role that its launcher has restarted did not stop the training, so the time
/// since its newest checkpoint, or since the launch, counts.
double Session::Impl::seconds_before() const {
  const double launched = member_ ? options_.process->launched : 0;
  if (!resumed_ || launched <= 0) return start_.seconds;
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto files = store_->list();
  if (files.empty()) return std::max(0.0, now - launched);
  struct stat status {};
  if (::stat(files.back().path.c_str(), &status) != 0) return start_.seconds;
  const double saved = static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  return saved > launched ? start_.seconds + std::max(0.0, now - saved) : start_.seconds;
}

/// Returns when the training began: this process, or the launch that restarted it.
int64_t Session::Impl::began() const {
  const double launched = member_ ? options_.process->launched : 0;
  return resumed_ && launched > 0 ? static_cast<int64_t>(launched) : std::time(nullptr);
}

train::StopReason Session::Impl::train_replicas(train::Trainer& first, const train::RunClock& clock) {
  replicas_->start();
  train::StopReason reason = train::StopReason::none;
  try {
    reason = first.run(clock);
  } catch (...) {
    replicas_->fail();
    throw;
  }
  replicas_->finish();
  return reason;
}

train::Outcome Session::Impl::run() {
  if (finished != train::StopReason::none) return outcome(start_, finished);
  train::RunCheckpointer checkpointer(*setup_, *store_, fence());
  train::Parts parts = setup_->parts();
  if (may_lead()) parts.checkpointer = &checkpointer;
  parts.hooks = hooks_;
  parts.interrupt = options_.interrupt;
  started_ = began();
  train::TrainerOptions trainer_options = setup_->trainer_options();
  trainer_options.trace_steps = static_cast<uint64_t>(settings.trace_steps);
  train::Trainer trainer(std::move(parts), member_ ? member_->adapted(trainer_options) : trainer_options, start_);
  const train::RunClock clock(seconds_before());
  train::StopReason reason = train::StopReason::none;
  try {
    train::StartEvent start = start_event();
    start.clock = &clock;
    for (train::Hooks* hook : hooks_) hook->on_start(start);
    reason = replicas_ ? train_replicas(trainer, clock) : trainer.run(clock);
  } catch (const NonFiniteError& error) {
    if (member_) member_->end();
    end_with_error(trainer, train::StopReason::not_finite, error.what());
    throw;
  } catch (const std::exception& error) {
    if (!gave_up(trainer, error)) {
      end_with_error(trainer, train::StopReason::error, error.what());
      throw;
    }
    end_with_error(trainer, train::StopReason::interrupted, "");
    return outcome(trainer.state(), train::StopReason::interrupted);
  }
  if (observer_) observer_->add_end(trainer.phases_since());
  train::Outcome ended = outcome(trainer.state(), reason);
  if (member_) member_->report(ended);
  if (replicas_) replicas_->report(ended);
  for (train::Hooks* hook : hooks_) hook->on_end(ended);
  write_summary(ended, "");
  write_trace();
  if (member_) member_->end();
  return ended;
}

Session::Session(settings::Configuration configuration, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(configuration), std::move(options))) {}
Session::~Session() = default;

const settings::Settings& Session::settings() const { return impl_->settings; }
const std::string& Session::run_dir() const { return impl_->directory->path(); }
bool Session::finished() const { return impl_->finished != train::StopReason::none; }
train::StartEvent Session::start_event() const { return impl_->start_event(); }
train::Outcome Session::run() { return impl_->run(); }

}  // namespace lockstep::role
