// The nodes of a run's roles, and whether the roles are alive, from their records. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lockstep::dash {

/// Returns the nodes of an emulated cluster, otherwise those of cluster.yaml. Roles not named there are on the host in
/// their summary, or on this machine.
std::vector<records::NodeRecord> nodes_of(const records::RunRecord& run);

/// Returns "alive", "silent" (its monitor has not written for a while), "starting", "ended", "stopped" (before the
/// plan's end) or "lost" (the run broke off).
std::string role_state(const records::RunRecord& run, const records::RoleRecord& role, double now);

/// Describes a run that is training, as JSON for /api/nodes.
std::string nodes_json(const std::string& id, const records::RunRecord& run, double now);

}  // namespace lockstep::dash
