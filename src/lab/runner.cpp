#include "lab/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/own_program.h"
#include "emulate/claims.h"
#include "emulate/rights.h"
#include "lab/guest_layer.h"
#include "lab/noise.h"
#include "lab/run_check.h"
#include "lab/run_process.h"
#include "launch/supervisor.h"
#include "lockstep/error.h"
#include "observe/monitor/host_watch.h"
#include "process/caught_signals.h"
#include "process/child_process.h"
#include "process/descendants.h"

namespace lockstep::lab {
namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;

constexpr const char* kNew = ".new";  ///< suffix of the folder of a run that is made again

double since(Steady::time_point then) { return std::chrono::duration<double>(Steady::now() - then).count(); }

/// Removes a folder. Roles of a killed launcher may still write into it for a moment.
void remove_folder(const std::string& path) {
  std::error_code error;
  for (int attempt = 0; attempt < 20; ++attempt) {
    fs::remove_all(path, error);
    if (!error) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw IoError(fmt::format("cannot remove {}: {}", path, error.message()));
}

class Runner {
 public:
  Runner(const Experiment& experiment, const RunnerOptions& options, const RunnerCallback& callback)
      : experiment_(experiment),
        options_(options),
        callback_(callback),
        folder_(experiment_folder(options.lab_dir, experiment)) {}

  RunnerOutcome run();

 private:
  void check_rights() const;
  void prepare();
  void finish_moves() const;
  void choose();
  void claim_nodes();
  void put_in_place(const std::string& key, const std::string& fresh) const;
  void make(const RunPlan& plan);
  std::optional<RunMeasured> attempt(const RunPlan& plan, const RunMeasured* before);
  void warm_up(const Group& group, const RunPlan& plan);
  Followed train(const RunPlan& plan, const std::string& run_dir, bool warm, observe::HostWatch* watch);
  std::optional<RunMeasured> settle(const RunPlan& plan, const std::string& run_dir, const Followed& trained,
                                    const observe::HostUse& use);
  void fail(const RunPlan& plan, std::string reason);
  [[nodiscard]] int next_signal() const;
  [[nodiscard]] double promised_cores(const RunPlan& plan) const;
  void tell(RunnerEvent::Kind kind, const RunPlan& plan, const std::string& text = "",
            const RunMeasured* measured = nullptr) const;
  /// Returns the runs to make, given those that are finished.
  [[nodiscard]] std::vector<const RunPlan*> to_make(const std::set<std::string>& finished) const;
  [[nodiscard]] std::string log_of(const std::string& run_dir, const char* ending = ".log") const {
    return fmt::format("{}/logs/{}{}", folder_, fs::path(run_dir).filename().string(), ending);
  }

  const Experiment& experiment_;
  const RunnerOptions& options_;
  const RunnerCallback& callback_;
  std::string folder_;
  process::CaughtSignals signals_{{SIGINT, SIGTERM, SIGHUP, SIGTSTP}};
  std::optional<base::LockFile> lock_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Clock> clock_;
  std::set<std::string> finished_;    ///< keys of runs that were done before
  std::vector<const RunPlan*> left_;  ///< runs left to make; the running one first
  std::optional<emulate::ClaimFile> claim_;
  Steady::time_point began_;  ///< start of the running one
  double passed_ = 0;         ///< seconds of the runs that ended here
  size_t count_ = 0;
  RunnerOutcome outcome_;
};

void Runner::tell(RunnerEvent::Kind kind, const RunPlan& plan, const std::string& text,
                  const RunMeasured* measured) const {
  RunnerEvent event;
  event.kind = kind;
  event.plan = &plan;
  event.count = count_;
  event.number = count_ - left_.size() + 1;
  event.seconds = since(began_);
  for (const RunPlan* each : left_) event.left += clock_->seconds(each->key);
  if (!left_.empty() && kind != RunnerEvent::Kind::warming) {
    const double first = clock_->seconds(left_.front()->key);
    event.left -= std::min(event.seconds, 0.95 * first);
  }
  const double so_far = passed_ + (kind == RunnerEvent::Kind::warming ? 0 : event.seconds);
  event.share = so_far / std::max(1e-9, so_far + event.left);
  event.text = text;
  event.measured = measured;
  callback_(event);
}

void Runner::prepare() {
  base::make_directories(folder_ + "/runs");
  base::make_directories(folder_ + "/logs");
  // A process that checks for a running lab holds the lock for an instant.
  for (int attempt = 0; attempt < 10 && !lock_; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lock_ = base::LockFile::try_lock(folder_ + "/.lock");
  }
  if (!lock_) {
    throw UsageError(fmt::format("another lab is running {} in {}; wait for it, or use another --lab-dir",
                                 experiment_.name, options_.lab_dir));
  }
  database_ = std::make_unique<Database>(options_.lab_dir, Database::Access::write);
  outcome_.folder = folder_;
  outcome_.experiment = database_->plan(experiment_, folder_, options_.environment, options_.command, &options_.keys);
  base::write_whole_file(folder_ + "/experiment.yaml", experiment_.text);
  finish_moves();
}

/// Completes the moves of a killed lab: a run's new folder takes its place, unfinished folders are removed.
void Runner::finish_moves() const {
  for (const RunResult& run : database_->results(outcome_.experiment).runs) {
    if (run.state == RunState::done && run.folder.ends_with(kNew)) put_in_place(run.plan.key, run.folder);
  }
  std::vector<std::string> begun;
  for (const auto& entry : fs::directory_iterator(folder_ + "/runs")) {
    const std::string path = folder_ + "/runs/" + entry.path().filename().string();
    if (path.ends_with(kNew) && !database_->has_folder(path)) begun.push_back(path);
  }
  for (const std::string& path : begun) remove_folder(path);
}

/// Moves the new folder into place; the database has it already.
void Runner::put_in_place(const std::string& key, const std::string& fresh) const {
  const std::string folder = fresh.substr(0, fresh.size() - std::string_view(kNew).size());
  std::error_code error;
  if (fs::exists(fresh, error)) {
    remove_folder(folder);
    fs::rename(fresh, folder, error);
    if (error) throw IoError(fmt::format("cannot rename {} to {}: {}", fresh, folder, error.message()));
    fs::rename(log_of(fresh), log_of(folder), error);
  }
  database_->moved(outcome_.experiment, key, folder);
}

std::vector<const RunPlan*> Runner::to_make(const std::set<std::string>& finished) const {
  const std::set<std::string> wanted(options_.keys.begin(), options_.keys.end());
  std::vector<const RunPlan*> plans;
  for (const Group& group : experiment_.groups) {
    for (const RunPlan& plan : group.runs) {
      if (wanted.contains(plan.key) && (options_.again || !finished.contains(plan.key))) plans.push_back(&plan);
    }
  }
  return plans;
}

void Runner::check_rights() const {
  const std::string why = emulate::why_no_emulation();
  if (why.empty()) return;
  std::set<std::string> finished;
  if (is_lab(options_.lab_dir)) {
    finished = Database(options_.lab_dir, Database::Access::read).finished(experiment_);
  }
  for (const RunPlan* plan : to_make(finished)) {
    if (plan->cluster.emulate.empty()) continue;
    throw UsageError(
        fmt::format("{} needs emulated nodes, which this machine does not allow: {}; start it {}with --local on "
                    "processes of this machine",
                    experiment_.name, why, ::geteuid() == 0 ? "" : "with sudo, or "));
  }
}

void Runner::choose() {
  const Results results = database_->results(outcome_.experiment);
  clock_ = std::make_unique<Clock>(options_.models, experiment_, results.runs);
  finished_ = database_->finished(experiment_);
  left_ = to_make(finished_);
  count_ = left_.size();
  outcome_.before = options_.keys.size() - count_;
}

/// Claims the nodes for all runs at once: another program that took them between two runs would leave the next run
/// without.
void Runner::claim_nodes() {
  const std::vector<emulate::NodeSpec> nodes = largest_cluster(left_, options_.models);
  if (!nodes.empty()) claim_.emplace(nodes, emulate::ClaimFile::Cores::leave);
}

/// Returns the cores of the run's emulated nodes together; 0 without nodes.
double Runner::promised_cores(const RunPlan& plan) const {
  double cores = 0;
  for (const emulate::NodeSpec& node : largest_cluster({&plan}, options_.models)) cores += node.cores;
  return cores;
}

Followed Runner::train(const RunPlan& plan, const std::string& run_dir, bool warm, observe::HostWatch* watch) {
  process::Command command;
  command.program = base::own_program();
  const std::string failure_file = log_of(run_dir, ".failure.json");
  command.argv = {options_.program, "--failure-file=" + failure_file};
  for (const std::string& word : run_words(plan, run_dir, options_.data, warm)) command.argv.push_back(word);
  command.environment = {{"TF_CONFIG", ""}};
  // Even if `lockstep guest` itself is killed, nothing of a foreign program is left.
  std::optional<process::Subreaper> subreaper;
  if (plan.is_guest()) {
    subreaper.emplace();
    command.death_signal = SIGTERM;  // if this lab is killed, `lockstep guest` ends its program and what that leaves
  }
  const Followed trained = follow(command, warm ? "" : log_of(run_dir), failure_file, signals_.fd(), [&] {
    if (watch != nullptr) watch->look();
    tell(warm ? RunnerEvent::Kind::warming : RunnerEvent::Kind::tick, plan);
  });
  if (subreaper) (void)process::end_descendants(std::chrono::seconds(10));
  if (plan.is_guest() && trained.ending->ok() && !trained.last_error.empty()) {
    const size_t text = trained.last_error.find("note: ");
    tell(RunnerEvent::Kind::note, plan, trained.last_error.substr(text == std::string::npos ? 0 : text + 6));
  }
  if (trained.log_failed) tell(RunnerEvent::Kind::note, plan, fmt::format("cannot write {}", log_of(run_dir)));
  return trained;
}

void Runner::warm_up(const Group& group, const RunPlan& plan) {
  const std::string folder = folder_ + "/warm-up";
  if (plan.is_guest()) return;
  for (int i = 0; i < group.warm_up && outcome_.signal == 0; ++i) {
    began_ = Steady::now();
    tell(RunnerEvent::Kind::warming, plan);
    remove_folder(folder);
    outcome_.signal = train(plan, folder, true, nullptr).signal;
    remove_folder(folder);
  }
}

void Runner::fail(const RunPlan& plan, std::string reason) {
  if (finished_.contains(plan.key)) {
    database_->forget(outcome_.experiment, plan.key);
    reason += "; its earlier result is kept";
  } else {
    database_->failed(outcome_.experiment, plan.key, reason);
  }
  ++outcome_.failed;
  tell(RunnerEvent::Kind::failed, plan, reason);
}

/// Returns what the run measured; nothing if it failed, which is then recorded.
std::optional<RunMeasured> Runner::settle(const RunPlan& plan, const std::string& run_dir, const Followed& trained,
                                          const observe::HostUse& use) {
  std::string reason;
  RunMeasured measured;
  if (!trained.ending->ok()) {
    reason = why_failed(trained);
    if (!plan.cluster.faults.empty()) reason += "; faults on schedule: " + plan.cluster.faults;
  } else {
    try {
      const records::RunRecord record = records::read_run(run_dir);
      measured = measure(record);
      const bool has_steps = plan.is_guest() || measured.values.contains("steps");
      if (record.state != records::RunState::ended || !has_steps) reason = "it left no summary";
      if (plan.is_guest()) add_guest_figures(run_dir, measured.values);
    } catch (const Error& error) {
      reason = fmt::format("its folder cannot be read: {}", error.what());
    }
  }
  if (!reason.empty()) {
    fail(plan, reason);
    return std::nullopt;
  }
  if (trained.stopped_seconds > 0) add_stop(measured.values, trained.stopped_seconds / since(began_));
  if (plan.cluster.hosts.empty() && plan.guest.logs.empty()) add_noise(measured.values, use, promised_cores(plan));
  return measured;
}

/// Makes a run once. `before`: an earlier try that was disturbed; the less disturbed of the two is kept. Returns what
/// the kept one measured; nothing if this try failed or was interrupted.
std::optional<RunMeasured> Runner::attempt(const RunPlan& plan, const RunMeasured* before) {
  // A result stays until there is a new one: a run that is made again has a second folder.
  const bool again = finished_.contains(plan.key);
  const std::string folder = database_->folder_for(outcome_.experiment, plan.key, folder_ + "/runs/" + plan.key);
  const std::string into = again ? folder + kNew : folder;
  database_->started(outcome_.experiment, plan.key, folder);
  remove_folder(into);
  began_ = Steady::now();
  tell(RunnerEvent::Kind::started, plan);
  observe::HostWatch watch(promised_cores(plan));
  const Followed trained = train(plan, into, false, &watch);
  watch.look(true);
  if (trained.signal != 0) {
    outcome_.signal = trained.signal;
    database_->forget(outcome_.experiment, plan.key);
    remove_folder(into);
    return std::nullopt;
  }
  const double seconds = since(began_) - trained.stopped_seconds;
  passed_ += seconds;
  std::optional<RunMeasured> measured = settle(plan, into, trained, watch.use());
  const bool worse = measured && before != nullptr && disturbance(measured->values) >= disturbance(before->values);
  if (!measured || worse) {
    if (worse) database_->forget(outcome_.experiment, plan.key);
    if (again) remove_folder(into);
    return worse ? *before : measured;
  }
  database_->done(outcome_.experiment, plan.key, *measured, again ? into : "", seconds);
  clock_->took(plan.key, seconds);
  finished_.insert(plan.key);
  if (again) put_in_place(plan.key, into);
  return measured;
}

/// Makes a run; again if other programs disturbed it, while tries are left.
void Runner::make(const RunPlan& plan) {
  std::optional<RunMeasured> kept = attempt(plan, nullptr);
  const int tries = options_.retries.value_or(experiment_.retries);
  for (int i = 1; i <= tries && kept && is_disturbed(kept->values); ++i) {
    tell(RunnerEvent::Kind::disturbed, plan,
         fmt::format("{}; try {} of {}", disturbed_text(kept->values), i + 1, tries + 1));
    const std::optional<RunMeasured> next = attempt(plan, &*kept);
    if (outcome_.signal != 0) return;
    if (!next) return;
    kept = next;
  }
  if (!kept || outcome_.signal != 0) return;
  ++outcome_.done;
  outcome_.disturbed += is_disturbed(kept->values) ? 1 : 0;
  tell(RunnerEvent::Kind::done, plan, disturbed_text(kept->values), &*kept);
}

/// Returns a signal that came between two runs and asks for the end; 0 if there is none.
int Runner::next_signal() const {
  const int signal = read_signal(signals_.fd());
  if (signal != SIGTSTP) return signal;
  stop_with(nullptr);
  return 0;
}

RunnerOutcome Runner::run() {
  check_rights();
  prepare();
  choose();
  claim_nodes();
  began_ = Steady::now();
  remove_folder(folder_ + "/warm-up");
  for (const Group& group : experiment_.groups) {
    bool warm = false;
    for (const RunPlan& plan : group.runs) {
      if (left_.empty() || left_.front() != &plan) continue;
      if (!warm) warm_up(group, plan);
      warm = true;
      if (outcome_.signal == 0) outcome_.signal = next_signal();
      if (outcome_.signal == 0) make(plan);
      if (outcome_.signal != 0) return outcome_;
      left_.erase(left_.begin());
    }
  }
  return outcome_;
}

}  // namespace

std::string experiment_folder(const std::string& lab_dir, const Experiment& experiment) {
  return lab_dir + "/" + experiment.name + (experiment.scale.empty() ? "" : "-" + experiment.scale);
}

std::vector<std::string> run_words(const RunPlan& plan, const std::string& run_dir, const std::string& data,
                                   bool warm_up) {
  if (plan.is_guest()) return guest_words(plan, run_dir, data);
  std::vector<std::string> words;
  if (!plan.cluster.hosts.empty()) {
    words = {"launch", "--remove"};  // no process would resume it there
    if (!plan.cluster.ssh.empty()) words.push_back("--ssh=" + plan.cluster.ssh);
    if (!plan.cluster.program.empty()) words.push_back("--program=" + plan.cluster.program);
    words.insert(words.end(), {plan.cluster.hosts, "--"});
  }
  words.insert(words.end(), {"train", value_of(plan.settings, "model")});
  for (const auto& [name, value] : plan.settings) {
    if (name == "model" || (warm_up && (name == "steps" || name == "seconds"))) continue;
    if (name.starts_with("options.")) {
      words.push_back(fmt::format("--options={}={}", name.substr(8), value));
    } else if (!value.empty()) {
      words.push_back(fmt::format("--{}={}", name, value));
    }
  }
  if (!data.empty()) words.push_back("--data=" + data);
  if (!plan.cluster.emulate.empty()) words.push_back("--emulate=" + plan.cluster.emulate);
  if (!plan.cluster.faults.empty() && !warm_up) words.push_back("--faults=" + plan.cluster.faults);
  if (warm_up) words.insert(words.end(), {"--steps=50", "--seconds=2"});
  words.push_back("--run-dir=" + run_dir);
  return words;
}

RunnerOutcome run_experiment(const Experiment& experiment, const RunnerOptions& options,
                             const RunnerCallback& callback) {
  return Runner(experiment, options, callback).run();
}

}  // namespace lockstep::lab
