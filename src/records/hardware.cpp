#include "records/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::records {
namespace {

struct Place {
  double threads = 0;  ///< of its workers; unknown if one of them is
  double cores = kUnknown;
};

double worker_threads(const RunRecord& run, const RoleRecord& role) {
  const double own = role.summary.number("threads");
  const double threads = known(own) ? own : run.threads();
  const double replicas = run.in_process() ? static_cast<double>(run.workers()) : 1;
  const double quota = run.number_setting("cpu_quota");
  return quota > 0 ? std::min(threads * replicas, quota) : threads * replicas;
}

/// Returns the emulated node of a role, or nullptr.
const NodeRecord* node_of(const RunRecord& run, const std::string& role) {
  const auto found = std::find_if(run.nodes.begin(), run.nodes.end(), [&](const NodeRecord& node) {
    return std::find(node.roles.begin(), node.roles.end(), role) != node.roles.end();
  });
  if (found != run.nodes.end()) return &*found;
  return run.nodes.size() == 1 ? &run.nodes.front() : nullptr;
}

std::map<std::string, Place> places_of(const RunRecord& run) {
  std::map<std::string, Place> places;
  for (const RoleRecord& role : run.roles) {
    if (!role.trains()) continue;
    const NodeRecord* node = node_of(run, role.role);
    Place& place = places[node == nullptr ? role.host : node->name];
    place.threads += worker_threads(run, role);
    place.cores = node == nullptr ? std::fmax(place.cores, role.summary.number("resources.cores")) : node->cores;
  }
  return places;
}

}  // namespace

Hardware hardware_of(const RunRecord& run) {
  const std::map<std::string, Place> places = places_of(run);
  Hardware result{0, static_cast<double>(places.size()), !run.nodes.empty() || places.size() > 1, kUnknown};
  bool alike = true;
  for (const auto& [name, place] : places) {
    result.cores += known(place.cores) ? std::min(place.threads, place.cores) : place.threads;
    alike = alike && place.cores == places.begin()->second.cores;
  }
  if (alike && !places.empty()) result.node_cores = places.begin()->second.cores;
  return result;
}

Efficiency efficiency_of(const RunRecord& run, const RunRecord& baseline) {
  const Hardware now = hardware_of(run);
  const Hardware before = hardware_of(baseline);
  Efficiency result;
  const bool alike = now.node_cores == before.node_cores || (!known(now.node_cores) && !known(before.node_cores));
  const bool nodes = (now.spread || before.spread) && alike;
  if (nodes) {
    result = {kUnknown, "node", now.nodes, before.nodes};
  } else if (now.cores > 0 && before.cores > 0) {
    result = {kUnknown, "core", now.cores, before.cores};
  } else {
    result = {kUnknown, "worker", static_cast<double>(run.workers()), static_cast<double>(baseline.workers())};
  }
  result.value = run.examples_per_second() / baseline.examples_per_second() * result.before / result.now;
  return result;
}

std::string units_text(const Efficiency& efficiency) {
  return fmt::format("{:.3g} {}{} against {:.3g}", efficiency.now, efficiency.unit, efficiency.now == 1 ? "" : "s",
                     efficiency.before);
}

}  // namespace lockstep::records
