// Checks whether `lockstep train` (or `launch`) would accept a planned run: its settings together, its model, its
// cluster and this machine. Internal to the room; any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "emulate/cluster.h"
#include "lab/expansion.h"
#include "lockstep/nn.h"
#include "settings/settings.h"

namespace lockstep::lab {

/// Returns all settings of a run, resolved. Throws UsageError.
settings::Settings resolved(const RunPlan& plan, std::span<const nn::ModelDef> models);
/// Returns whether a run on hosts takes the setting from its cluster file instead.
bool is_place(std::string_view setting);
/// Returns the machines of a run on an emulated cluster, at least 1. Throws UsageError for an invalid layout.
size_t nodes_of(const settings::Settings& settings);
/// Returns the nodes of the emulated cluster with the most cores among these runs, with the largest memory of any; none
/// if no run is emulated.
std::vector<emulate::NodeSpec> largest_cluster(const std::vector<const RunPlan*>& plans,
                                               std::span<const nn::ModelDef> models);
/// Throws UsageError at the run's place. `machine`: also checks this machine and the files that the run names.
void check_run(const Reader& reader, const Variation& variation, std::span<const nn::ModelDef> models, bool machine);

}  // namespace lockstep::lab
