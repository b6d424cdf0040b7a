// Where the roles of a run are and whether they are alive, from what they record. Free functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/run_record.h"

namespace lockstep::dash {

struct NodePlan {
  std::string node;
  std::string address;
  double cores = records::kUnknown;
  double memory_bytes = records::kUnknown;  ///< its limit
  std::vector<std::string> roles;
};

/// An emulated cluster's nodes.json, cluster.yaml otherwise; those whose roles are not named there are on this machine.
std::vector<NodePlan> nodes_of(const records::RunRecord& run);

struct FaultLine {
  double seconds = 0;
  std::string fault;
};
/// Of faults.jsonl; what is damaged there is left out.
std::vector<FaultLine> faults_of(const records::RunRecord& run);

/// "alive", "silent" (its monitor has not written for a while), "starting", "ended" or "lost" (the run broke off).
std::string role_state(const records::RunRecord& run, const records::RoleRecord& role, double now);

/// A run that is training, as /api/nodes gives it: JSON.
std::string nodes_json(const std::string& id, const records::RunRecord& run, double now);

}  // namespace lockstep::dash
