// The numbers that the rules of why.cpp look at. Only this room uses it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"
#include "records/why.h"

namespace lockstep::records {

/// Where the time of a worker went, or of all together; seconds.
struct Pace {
  std::string role;
  std::string host;
  double steps = 0;     ///< that its phases are of: after a resume, those of the last session
  double examples = 0;  ///< of these steps
  double seconds = 0;   ///< all the following
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
  double rest = 0;

  [[nodiscard]] double compute() const { return forward + backward + optimizer; }
  [[nodiscard]] double exchange() const { return push + pull + transfer; }
  [[nodiscard]] double aside() const { return evaluation + checkpoint; }
  /// What it does itself in a step, until the others have what they wait for.
  [[nodiscard]] double own_per_step() const { return per_step(data + compute() + push + rest); }
  [[nodiscard]] double per_step(double part) const { return steps > 0 ? part / steps : 0; }
  [[nodiscard]] double share(double part) const { return seconds > 0 ? part / seconds : 0; }
  [[nodiscard]] double step_seconds() const { return per_step(seconds - aside()); }
};

struct RunFacts {
  std::vector<Pace> workers;  ///< those that recorded phases of steps
  Pace all;                   ///< their sums
};

RunFacts facts_of(const RunRecord& run);

/// Did it record its time, but no step of its own? Others had trained everything before it came.
bool came_too_late(const RoleRecord& role);

/// The one whose own time for a step is well above the median of the others'.
struct SlowOne {
  std::string role;
  double factor = 1;
  double own = 0;     ///< seconds a step
  double others = 0;  ///< the median of theirs
  bool data = false;  ///< it waits for data, rather than computing long
};
/// Does every step wait for all workers?
bool in_step(const RunRecord& run);

/// From phases, or from what the chief's summary says of workers; an empty role: nobody.
SlowOne slow_one(const RunRecord& run, const RunFacts& facts);

/// A reason, with how much of the time it explains.
struct Finding {
  std::string cause;
  double weight = 0;
  std::string headline;
  std::string sentence;
  std::vector<Evidence> evidence = {};
  std::vector<std::string> suggestions = {};
};

/// Where the time of the training threads went (why_causes.cpp).
std::vector<Finding> time_findings(const RunRecord& run, const RunFacts& facts);
/// What the machines were short of (why_machine.cpp).
std::vector<Finding> machine_findings(const RunRecord& run, const RunFacts& facts);
/// Workers that died, lost gradients, ended badly: remarks rather than reasons.
std::vector<std::string> remarks(const RunRecord& run);

Evidence share_evidence(std::string what, double share);
Evidence time_evidence(std::string what, double seconds);

/// Fewer samples of the monitor say nothing.
constexpr double kEnoughSamples = 3;

}  // namespace lockstep::records
