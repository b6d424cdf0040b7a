#include "lab/runner.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/file.h"
#include "cluster/process.h"
#include "cluster/supervisor.h"
#include "lab/estimate.h"
#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;
using cluster::Stream;

constexpr int kTickMilliseconds = 200;
constexpr double kGraceSeconds = 40;  ///< a launcher gives its roles 30
constexpr const char* kProgram = "/proc/self/exe";

double since(Steady::time_point then) { return std::chrono::duration<double>(Steady::now() - then).count(); }

/// Roles of a launcher that was killed may still write for a moment.
void remove_folder(const std::string& path) {
  std::error_code error;
  for (int attempt = 0; attempt < 20; ++attempt) {
    fs::remove_all(path, error);
    if (!error) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw IoError(fmt::format("cannot remove {}: {}", path, error.message()));
}

/// "lockstep: why" -> "why".
std::string reason_of(const std::string& line) {
  const size_t colon = line.find(": ");
  const bool prefixed = colon != std::string::npos && line.find(' ') == colon + 1;
  return prefixed ? line.substr(colon + 2) : line;
}

struct Trained {
  std::optional<cluster::Ending> ending;
  std::string last_error;
  int signal = 0;  ///< that the lab was asked to end with
};

class Runner {
 public:
  Runner(const Experiment& experiment, const RunnerOptions& options, const RunnerCallback& callback)
      : experiment_(experiment),
        options_(options),
        callback_(callback),
        folder_(experiment_folder(options.lab_dir, experiment)) {}

  RunnerOutcome run();

 private:
  void prepare();
  void choose();
  void make(const RunPlan& plan);
  void warm_up(const Group& group, const RunPlan& plan);
  Trained train(const RunPlan& plan, const std::string& run_dir, bool warm);
  void settle(const RunPlan& plan, const std::string& run_dir, const Trained& trained, double seconds);
  int read_signal() const;
  void tell(RunnerEvent::Kind kind, const RunPlan& plan, const std::string& text = "",
            const RunMeasured* measured = nullptr) const;
  [[nodiscard]] std::string run_dir(const RunPlan& plan) const { return folder_ + "/runs/" + plan.key; }

  const Experiment& experiment_;
  const RunnerOptions& options_;
  const RunnerCallback& callback_;
  std::string folder_;
  cluster::CaughtSignals signals_;
  std::optional<base::LockFile> lock_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Clock> clock_;
  std::vector<const RunPlan*> left_;  ///< the one under way first
  Steady::time_point began_;          ///< the one under way
  double passed_ = 0;                 ///< seconds of those that ended here
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
  // Who looks whether a lab is here holds it for an instant.
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
  outcome_.experiment = database_->plan(experiment_, folder_, options_.environment, options_.command);
  base::write_whole_file(folder_ + "/experiment.yaml", experiment_.text);
}

void Runner::choose() {
  const Results results = database_->results(outcome_.experiment);
  clock_ = std::make_unique<Clock>(options_.models, experiment_, results.runs);
  const auto wanted = [&](const std::string& key) {
    return std::find(options_.keys.begin(), options_.keys.end(), key) != options_.keys.end();
  };
  std::map<std::string, RunState> states;
  for (const RunResult& run : results.runs) states[run.plan.key] = run.state;
  for (const Group& group : experiment_.groups) {
    for (const RunPlan& plan : group.runs) {
      if (!wanted(plan.key)) continue;
      if (states[plan.key] == RunState::done && !options_.again) {
        ++outcome_.before;
      } else {
        left_.push_back(&plan);
      }
    }
  }
  count_ = left_.size();
  const bool emulates =
      std::any_of(left_.begin(), left_.end(), [](const RunPlan* p) { return !p->cluster.emulate.empty(); });
  if (emulates && ::geteuid() != 0) {
    throw UsageError(fmt::format("{} runs on emulated nodes, which needs root: start it with sudo", experiment_.name));
  }
}

int Runner::read_signal() const {
  pollfd ready{signals_.fd(), POLLIN, 0};
  if (::poll(&ready, 1, 0) != 1) return 0;
  signalfd_siginfo info{};
  return ::read(signals_.fd(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Trained Runner::train(const RunPlan& plan, const std::string& run_dir, bool warm) {
  std::ofstream log;
  if (!warm) log.open(folder_ + "/logs/" + plan.key + ".log", std::ios::trunc);
  cluster::Command command;
  command.program = kProgram;
  command.argv = {options_.program};
  for (const std::string& word : run_words(plan, run_dir, options_.data, warm)) command.argv.push_back(word);
  command.environment = {{"TF_CONFIG", ""}};
  Trained trained;
  const auto out = [&](const std::string& line) { log << line << '\n'; };
  const auto err = [&](const std::string& line) {
    log << line << '\n';
    if (!line.empty()) trained.last_error = line;
  };
  cluster::Child child(command);
  Steady::time_point asked;
  while (!(trained.ending = child.reap())) {
    std::vector<pollfd> fds{{child.end_fd(), POLLIN, 0},
                            {signals_.fd(), POLLIN, 0},
                            {child.fd(Stream::out), POLLIN, 0},
                            {child.fd(Stream::err), POLLIN, 0}};
    ::poll(fds.data(), fds.size(), kTickMilliseconds);
    child.read(Stream::out, out);
    child.read(Stream::err, err);
    if (const int signal = read_signal(); signal != 0) {
      child.signal(trained.signal == 0 ? SIGINT : SIGKILL);  // who asks twice does not want to wait
      if (trained.signal == 0) asked = Steady::now();
      trained.signal = signal;
    }
    if (trained.signal != 0 && since(asked) > kGraceSeconds) child.signal(SIGKILL);
    tell(warm ? RunnerEvent::Kind::warming : RunnerEvent::Kind::tick, plan);
  }
  child.read_rest(Stream::out, out);
  child.read_rest(Stream::err, err);
  return trained;
}

void Runner::warm_up(const Group& group, const RunPlan& plan) {
  const std::string folder = folder_ + "/warm-up";
  for (int i = 0; i < group.warm_up && outcome_.signal == 0; ++i) {
    began_ = Steady::now();
    tell(RunnerEvent::Kind::warming, plan);
    remove_folder(folder);
    outcome_.signal = train(plan, folder, true).signal;
    remove_folder(folder);
  }
}

/// What came of a training goes to the database.
void Runner::settle(const RunPlan& plan, const std::string& run_dir, const Trained& trained, double seconds) {
  std::string reason;
  RunMeasured measured;
  if (!trained.ending->ok()) {
    reason = trained.last_error.empty() ? trained.ending->text() : reason_of(trained.last_error);
  } else {
    try {
      const records::RunRecord record = records::read_run(run_dir);
      measured = measure(record);
      if (record.state != records::RunState::ended || !measured.values.contains("steps")) reason = "it left no summary";
    } catch (const Error& error) {
      reason = fmt::format("its folder cannot be read: {}", error.what());
    }
  }
  if (reason.empty()) {
    database_->done(outcome_.experiment, plan.key, measured);
    clock_->took(plan.key, seconds);
    ++outcome_.done;
    tell(RunnerEvent::Kind::done, plan, "", &measured);
  } else {
    database_->failed(outcome_.experiment, plan.key, reason);
    ++outcome_.failed;
    tell(RunnerEvent::Kind::failed, plan, reason);
  }
}

void Runner::make(const RunPlan& plan) {
  const std::string folder = run_dir(plan);
  remove_folder(folder);
  database_->started(outcome_.experiment, plan.key, folder);
  began_ = Steady::now();
  tell(RunnerEvent::Kind::started, plan);
  const Trained trained = train(plan, folder, false);
  if (trained.signal != 0) {
    outcome_.signal = trained.signal;
    database_->forget(outcome_.experiment, plan.key);
    remove_folder(folder);
    return;
  }
  const double seconds = since(began_);
  settle(plan, folder, trained, seconds);
  passed_ += seconds;
}

RunnerOutcome Runner::run() {
  prepare();
  choose();
  began_ = Steady::now();
  remove_folder(folder_ + "/warm-up");
  for (const Group& group : experiment_.groups) {
    bool warm = false;
    for (const RunPlan& plan : group.runs) {
      if (left_.empty() || left_.front() != &plan) continue;
      if (!warm) warm_up(group, plan);
      warm = true;
      if (outcome_.signal == 0) outcome_.signal = read_signal();
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
  std::vector<std::string> words;
  if (!plan.cluster.hosts.empty()) words = {"launch", plan.cluster.hosts, "--"};
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

Clock::Clock(std::span<const nn::ModelDef> models, const Experiment& experiment,
             const std::vector<RunResult>& results) {
  Estimator estimator(models);
  for (const Group& group : experiment.groups) {
    for (const RunPlan& plan : group.runs) guesses_[plan.key] = estimator.seconds(plan);
  }
  for (const RunResult& run : results) {
    if (run.state == RunState::done && run.ended > run.started) took(run.plan.key, run.ended - run.started);
  }
}

double Clock::seconds(const std::string& key) const {
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  // A repeat takes as long as the first.
  const auto place = known_.lower_bound(key.substr(0, key.rfind("-r")) + "-r");
  if (place != known_.end() && place->first.substr(0, place->first.rfind("-r")) == key.substr(0, key.rfind("-r"))) {
    return place->second;
  }
  const auto guess = guesses_.find(key);
  return guess == guesses_.end() ? 0 : guess->second * (guessed_ > 0 ? taken_ / guessed_ : 1);
}

void Clock::took(const std::string& key, double seconds) {
  known_[key] = seconds;
  guessed_ += guesses_[key];
  taken_ += seconds;
}

RunnerOutcome run_experiment(const Experiment& experiment, const RunnerOptions& options,
                             const RunnerCallback& callback) {
  return Runner(experiment, options, callback).run();
}

}  // namespace lockstep::lab
