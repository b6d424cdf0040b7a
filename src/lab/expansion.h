// From the groups of an experiment file to the list of its runs: settings in layers (file, group, grid, case), every
// combination, repeats, keys. Each value is checked where it stands; a run as a whole by check_run (run_check.h).
// Internal to the room; plain values, any thread.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.h"
#include "lab/reader.h"

namespace lockstep::lab {

/// More runs than this are a mistake.
inline constexpr size_t kMostRuns = 10'000;

/// A setting with the place where the file gives it. Options of a model are "options.NAME".
struct GivenSetting {
  std::string name;
  std::string value;  ///< as `lockstep train` would show it
  const YamlNode* at = nullptr;
};
using Layer = std::vector<GivenSetting>;

/// A cluster with the places where the file gives its parts; nullptr: it does not.
struct GivenCluster {
  ClusterPlan plan;
  const YamlNode* emulate = nullptr;
  const YamlNode* faults = nullptr;
  const YamlNode* hosts = nullptr;
};

/// A run before its repeats, with where it comes from.
struct Variation {
  RunPlan plan;
  const YamlNode* at = nullptr;     ///< its case, or its group
  const YamlNode* model = nullptr;  ///< where the model is named
  GivenCluster cluster = {};
};

/// What the file gives for all groups.
struct Common {
  Layer base;
  GivenCluster cluster;
  int repeats = 1;
  int warm_up = 0;
  bool local = false;  ///< no emulated nodes, whatever the file says
};

struct Expansion {
  std::vector<Group> groups;
  std::vector<Variation> variations;  ///< of all groups, for checks of each as a whole
  Names tags;
};

/// Settings of a map; `besides` are keys that are not settings and are passed over.
Layer read_settings(const Reader& reader, const YamlNode& map, const Names& besides = {});
/// Lays `cluster:` of a map over what holds above it.
GivenCluster read_cluster(const Reader& reader, const YamlNode& map, GivenCluster above);
/// The nodes of its cluster file as `layout` has them: "PW-W".
std::string layout_of(const Reader& reader, const GivenCluster& given);
/// On processes of this machine, without the faults that need nodes.
ClusterPlan local_of(const ClusterPlan& cluster);
Common read_common(const Reader& reader, const YamlNode& file, bool local);
/// `file` is at its scale.
Expansion expand(const Reader& reader, const YamlNode& file, const Common& common);

/// The setting's value as it is compared and kept: "0.10" -> "0.1", "yes" -> "true". Throws at the place.
std::string canonical(const Reader& reader, const YamlNode& at, std::string_view name, const std::string& text);

}  // namespace lockstep::lab
