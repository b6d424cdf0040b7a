// The traces of all roles of a run as one, on one clock. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep::observe {

constexpr const char* kTraceFile = "trace.json";  ///< of a role in its folder, and of the whole run in the run's
/// The chief's own, whose folder is the run's.
constexpr const char* kChiefTraceFile = "trace-chief.json";

struct MergedTrace {
  std::string path;                   ///< empty: no role has left a trace
  size_t roles = 0;                   ///< that are in it
  std::vector<std::string> problems;  ///< a line each: what is missing and why
};

/// Makes RUN/trace.json of the roles' traces; one that is damaged is taken as far as it can be read, one that an
/// earlier start of the run has left behind is not. Throws IoError where it cannot be written. Nothing is written where
/// no role has left a trace.
MergedTrace merge_traces(const std::string& run_folder);

/// Before the roles of a run are started again: all that it would be made of, and what was. What cannot be removed
/// stays.
void remove_traces(const std::string& run_folder);

}  // namespace lockstep::observe
