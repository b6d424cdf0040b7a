// Merging the traces of a run's roles onto one clock. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep::observe {

/// name of a role's trace in its folder, and of the whole run's trace in the run's folder
constexpr const char* kTraceFile = "trace.json";
/// The chief's own trace, because its folder is the run's.
constexpr const char* kChiefTraceFile = "trace-chief.json";

struct MergedTrace {
  std::string path;                   ///< empty: no role has left a trace
  size_t roles = 0;                   ///< number of roles in the trace
  std::vector<std::string> problems;  ///< one line for each missing part and the reason
};

/// Makes RUN/trace.json of the roles' traces. A damaged one is read up to the damage; one left by an earlier start of
/// the run is ignored. Throws IoError if it cannot be written. Writes nothing if no role has left a trace.
MergedTrace merge_traces(const std::string& run_folder);

/// Removes the traces of a run's roles, and their merged trace, before the roles are restarted. Files that cannot be
/// removed stay.
void remove_traces(const std::string& run_folder);

}  // namespace lockstep::observe
