// Makes the runs of an experiment, one after the other, each a process of this program, measures them and writes down
// what came of them. What is finished is not made again; what was interrupted, killed or failed is. Everything happens
// in `run`, in the calling thread, which must live as long as the program (cluster/process.h). Make it before other
// threads exist.
#pragma once

#include <functional>
#include <map>
#include <memory>
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
  std::vector<std::string> keys;  ///< of the runs to make
  bool again = false;             ///< also those that are finished
  std::string command;            ///< how to run it again
  Environment environment;
  std::span<const nn::ModelDef> models = {};  ///< borrowed
};

struct RunnerEvent {
  enum class Kind : uint8_t {
    warming,  ///< a short training before the group's first
    started,
    tick,  ///< some time has passed
    done,
    failed,  ///< text: why
    note     ///< text: what else there is to say
  };
  Kind kind = Kind::tick;
  const RunPlan* plan = nullptr;
  size_t number = 0;   ///< of those to make, from 1
  size_t count = 0;    ///< to make
  double seconds = 0;  ///< that this run has taken
  double left = 0;     ///< about what all that is left takes
  double share = 0;    ///< about how much of everything is done, 0 to 1
  std::string text = {};
  const RunMeasured* measured = nullptr;  ///< of one that is done
};

struct RunnerOutcome {
  size_t done = 0;
  size_t failed = 0;
  size_t before = 0;  ///< that were finished already
  int signal = 0;     ///< that interrupted; 0: none
  int64_t experiment = 0;
  std::string folder;
};

using RunnerCallback = std::function<void(const RunnerEvent& event)>;

/// Throws UsageError where another lab has the experiment, IoError and DataError for the lab's own files.
RunnerOutcome run_experiment(const Experiment& experiment, const RunnerOptions& options,
                             const RunnerCallback& callback);

/// LAB/study-3-quick.
std::string experiment_folder(const std::string& lab_dir, const Experiment& experiment);
/// The arguments of the program for a run, beginning with the command.
std::vector<std::string> run_words(const RunPlan& plan, const std::string& run_dir, const std::string& data,
                                   bool warm_up);

/// About how long runs take: the estimator's guess, corrected by those that were made.
class Clock {
 public:
  /// `results`: of earlier runs of the experiment.
  Clock(std::span<const nn::ModelDef> models, const Experiment& experiment, const std::vector<RunResult>& results);

  [[nodiscard]] double seconds(const std::string& key) const;
  void took(const std::string& key, double seconds);

 private:
  std::map<std::string, double> guesses_;
  std::map<std::string, double> known_;  ///< runs that were made: how long they took
  double guessed_ = 0;                   ///< of all that were made
  double taken_ = 0;
};

}  // namespace lockstep::lab
