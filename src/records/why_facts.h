// The numbers and words that why.cpp uses. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/fit.h"
#include "records/run_record.h"
#include "records/why.h"

namespace lockstep::records {

/// The time of a worker, or of all workers together, by phase; seconds.
struct Pace {
  std::string role;
  std::string host;
  double steps = 0;     ///< steps that the phases cover; after a resume, those of the last session
  double examples = 0;  ///< examples of these steps
  double seconds = 0;   ///< sum of the times below
  double data = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double push = 0;
  double pull = 0;
  double transfer = 0;
  double others = 0;
  double evaluation = 0;
  double checkpoint = 0;
  double for_others = 0;  ///< waiting while another worker, mostly the chief, evaluated or wrote a checkpoint
  double rest = 0;
  double start = 0;  ///< waiting at the first steps for workers that started later; not a part of `seconds`

  [[nodiscard]] double compute() const { return forward + backward + optimizer; }
  [[nodiscard]] double exchange() const { return push + pull + transfer; }
  [[nodiscard]] double aside() const { return evaluation + checkpoint + for_others; }
  /// Returns the worker's own time per step, until the others have what they wait for.
  [[nodiscard]] double own_per_step() const { return per_step(data + compute() + push + rest); }
  [[nodiscard]] double per_step(double part) const { return steps > 0 ? part / steps : 0; }
  [[nodiscard]] double share(double part) const { return seconds > 0 ? part / seconds : 0; }
  /// Returns a part of the steps as a share of them.
  [[nodiscard]] double share_of_steps(double part) const { return seconds > aside() ? part / (seconds - aside()) : 0; }
  [[nodiscard]] double step_seconds() const { return per_step(seconds - aside()); }
};

struct RunFacts {
  std::vector<Pace> workers;  ///< workers that recorded phases of steps
  Pace all;                   ///< their sums
  /// Time of a step without evaluations and checkpoints: the run's, as `show` and the closing lines say it, where a
  /// step of a worker is a step of the run; otherwise a worker's own.
  double step_seconds = 0;
  std::string step = "step";  ///< what that is the time of: "step", "step of a worker", "step since it was resumed" ...
};

RunFacts facts_of(const RunRecord& run);

/// Returns when a worker began its first step that others did not wait for longer than usual, in seconds of the epoch;
/// NaN: its logs do not say.
double began_steps(const RoleRecord& role, const Pace& pace);
/// Returns the cores that a role used from then on, by its monitor; over the whole run if that has too few samples. A
/// role that waits for others to start uses little.
double cores_used(const RoleRecord& role, double began);

/// Returns whether the role recorded its time but computed no step: the others had finished before it joined.
bool came_too_late(const RoleRecord& role);

/// The straggler: a worker whose own time per step is well above the median of the others'.
struct SlowOne {
  std::string role;
  double factor = 1;
  double own = 0;     ///< seconds per step
  double others = 0;  ///< median of the others' own times
  bool data = false;  ///< it waits for data, rather than computing slowly
};
/// Returns whether every step waits for all workers.
bool in_step(const RunRecord& run);

/// Finds the straggler, from phases or from the chief's figures about workers. An empty role: there is none.
SlowOne slow_one(const RunRecord& run, const RunFacts& facts);

/// A cause with its words. `removable`: not the training's own work; it comes first even if computing takes more time.
struct Finding {
  Cause cause = {};
  bool removable = true;
  double measured = 0;  ///< the part of its cost that was recorded, rather than found by the model
  std::string headline = {};
  std::string mention = {};   ///< headline where another cause comes first; empty: the same
  std::string sentence = {};  ///< more about it; may be empty
  std::vector<Evidence> evidence = {};
  std::vector<std::string> suggestions = {};
};

/// Returns what a step spends time on, by the model (why_causes.cpp).
std::vector<Finding> model_findings(const RunRecord& run, const RunFacts& facts, const Fit& fit);
/// Returns what evaluations and checkpoints cost, beside the steps (why_aside.cpp).
std::vector<Finding> aside_findings(const RunRecord& run, const RunFacts& facts, const Fit& fit);
/// Returns shortages that the model does not know: memory, quotas of processes (why_machine.cpp).
std::vector<Finding> machine_findings(const RunRecord& run, const RunFacts& facts);
/// Returns "1.4 times" for what takes `before` and would take `after`.
std::string gain_text(double before, double after);
/// Returns remarks: workers that died, lost gradients, a bad end.
std::vector<std::string> remarks(const RunRecord& run);

Evidence share_evidence(std::string what, double share);
Evidence time_evidence(std::string what, double seconds);

/// A cause that explains a smaller share of a step is noise.
constexpr double kLeastCost = 0.02;
/// Smallest number of monitor samples that allow a statement.
constexpr double kEnoughSamples = 3;

}  // namespace lockstep::records
