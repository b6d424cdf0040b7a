// Makes the runs of an experiment, one after the other, each in a process of this program; measures them and stores the
// outcome. Finished runs are not made again; interrupted, killed and failed ones are. A run that other programs
// disturbed (noise.h) is made again at once, a few times. Everything happens in `run`, in
// the calling thread, which must live as long as the program (cluster/process.h). Make it before other threads exist.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/database.h"
#include "lab/experiment.h"
#include "lockstep/nn.h"

namespace lockstep::lab {

struct RunnerOptions {
  std::string lab_dir = "lab";
  std::string data;               ///< --data of all runs; empty: none
  std::string program;            ///< argv[0] of the processes
  std::vector<std::string> keys;  ///< keys of the runs to make
  bool again = false;             ///< also make finished runs again
  std::optional<int> retries;     ///< further tries of a disturbed run; empty: as the file says
  std::string command;            ///< command that runs it again
  Environment environment;
  std::span<const nn::ModelDef> models = {};  ///< borrowed
};

struct RunnerEvent {
  enum class Kind : uint8_t {
    warming,  ///< a short training before the group's first
    started,
    tick,       ///< time has passed
    disturbed,  ///< it will be made again; text: by what
    done,       ///< text: what disturbed it; empty: nothing
    failed,     ///< text: the reason
    note        ///< text: a note
  };
  Kind kind = Kind::tick;
  const RunPlan* plan = nullptr;
  size_t number = 0;   ///< number of the run among those to make, from 1
  size_t count = 0;    ///< number of runs to make
  double seconds = 0;  ///< seconds this run has taken
  double left = 0;     ///< estimated seconds for everything left
  double share = 0;    ///< estimated share of everything that is done, 0 to 1
  std::string text = {};
  const RunMeasured* measured = nullptr;  ///< values of a finished run
};

struct RunnerOutcome {
  size_t done = 0;
  size_t failed = 0;
  size_t disturbed = 0;  ///< of `done`, those that something else disturbed at every try
  size_t before = 0;     ///< runs finished earlier
  int signal = 0;        ///< signal that interrupted the lab; 0: none
  int64_t experiment = 0;
  std::string folder;
};

using RunnerCallback = std::function<void(const RunnerEvent& event)>;

/// Throws UsageError if another lab runs the experiment, IoError and DataError for the lab's own files.
RunnerOutcome run_experiment(const Experiment& experiment, const RunnerOptions& options,
                             const RunnerCallback& callback);

/// Returns LAB/study-3-quick.
std::string experiment_folder(const std::string& lab_dir, const Experiment& experiment);
/// Returns the program's arguments for a run, starting with the command.
std::vector<std::string> run_words(const RunPlan& plan, const std::string& run_dir, const std::string& data,
                                   bool warm_up);

/// Estimates how long runs take: the estimator's guess, corrected by finished runs.
class Clock {
 public:
  /// `results` are earlier runs of the experiment.
  Clock(std::span<const nn::ModelDef> models, const Experiment& experiment, const std::vector<RunResult>& results);

  [[nodiscard]] double seconds(const std::string& key) const;
  void took(const std::string& key, double seconds);

 private:
  std::map<std::string, double> guesses_;
  std::map<std::string, double> known_;  ///< seconds of finished runs, by key
  double guessed_ = 0;                   ///< guessed seconds of all finished runs
  double taken_ = 0;
};

}  // namespace lockstep::lab
