// Expands the groups of an experiment file into the list of its runs: layers of settings (file, group, grid, case), all
// combinations, repeats, keys. Each value is checked at its place in the file; check_run (run_check.h) checks each run
// as a whole. Internal to the room; plain values, any thread.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.h"
#include "lab/reader.h"

namespace lockstep::lab {

/// Largest number of runs; more are taken for a mistake.
inline constexpr size_t kMostRuns = 10'000;

/// A setting and its place in the file. Options of a model are named "options.NAME".
struct GivenSetting {
  std::string name;
  std::string value;  ///< as `lockstep train` shows it
  const YamlNode* at = nullptr;
};
using Layer = std::vector<GivenSetting>;

/// A cluster with the places of its parts in the file; nullptr: not given.
struct GivenCluster {
  ClusterPlan plan;
  const YamlNode* emulate = nullptr;
  const YamlNode* faults = nullptr;
  const YamlNode* hosts = nullptr;
};

/// A foreign program with the places of its parts in the file; nullptr: not given.
struct GivenGuest {
  GuestPlan plan;
  const YamlNode* command = nullptr;
  const YamlNode* figures = nullptr;
  const YamlNode* logs = nullptr;
};

/// A run before its repeats, and its place in the file.
struct Variation {
  RunPlan plan;
  const YamlNode* at = nullptr;     ///< its case, or its group
  const YamlNode* model = nullptr;  ///< place that names the model
  GivenCluster cluster = {};
  GivenGuest guest = {};
};

/// Values that the file gives for all groups.
struct Common {
  Layer base;
  GivenCluster cluster;
  int repeats = 1;
  int warm_up = 0;
  bool local = false;  ///< use no emulated nodes, whatever the file says
};

struct Expansion {
  std::vector<Group> groups;
  std::vector<Variation> variations;  ///< variations of all groups, to check each as a whole
  Names tags;
};

/// Returns a file named beside the experiment if there is none of that name here.
std::string found_beside(const std::string& file, const std::string& text);
/// Reads the settings of a map. Skips the keys in `besides`, which are not settings.
Layer read_settings(const Reader& reader, const YamlNode& map, const Names& besides = {});
/// Lays `cluster:` of a map over the values of the level above.
GivenCluster read_cluster(const Reader& reader, const YamlNode& map, GivenCluster above);
/// Lays `command`, `figures`, `deadline` and `logs` of a map over the values of the level above.
GivenGuest read_guest(const Reader& reader, const YamlNode& map, GivenGuest above);
/// Returns the nodes of the cluster file as a `layout`: "PW-W".
std::string layout_of(const Reader& reader, const GivenCluster& given);
/// Returns the cluster as processes of this machine, without faults that need nodes.
ClusterPlan local_of(const ClusterPlan& cluster);
Common read_common(const Reader& reader, const YamlNode& file, bool local);
/// `file` is already at its scale.
Expansion expand(const Reader& reader, const YamlNode& file, const Common& common);

/// Returns the setting's value in the form in which it is compared and stored: "0.10" -> "0.1", "yes" -> "true". Throws
/// at the place.
std::string canonical(const Reader& reader, const YamlNode& at, std::string_view name, const std::string& text);

}  // namespace lockstep::lab
