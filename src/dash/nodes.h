// Where the roles of a run are and whether they are alive, from what they record. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lockstep::dash {

/// Of an emulated cluster, of cluster.yaml otherwise; roles that are not named there are where their summary says, or
/// on this machine.
std::vector<records::NodeRecord> nodes_of(const records::RunRecord& run);

/// "alive", "silent" (its monitor has not written for a while), "starting", "ended" or "lost" (the run broke off).
std::string role_state(const records::RunRecord& run, const records::RoleRecord& role, double now);

/// A run that is training, as /api/nodes gives it: JSON.
std::string nodes_json(const std::string& id, const records::RunRecord& run, double now);

}  // namespace lockstep::dash
