// Whether `lockstep train` (or `launch`) would take a run as it is planned: its settings together, its model, its
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

/// All settings of a run, resolved. Throws UsageError.
settings::Settings resolved(const RunPlan& plan, std::span<const nn::ModelDef> models);
/// Whether hosts have it from their cluster file instead.
bool is_place(std::string_view setting);
/// Machines of a run on an emulated cluster, at least 1. Throws UsageError for a layout that is none.
size_t nodes_of(const settings::Settings& settings);
/// The nodes of the emulated cluster with most cores among these runs, and with as much memory as any; none where no
/// run has one.
std::vector<emulate::NodeSpec> largest_cluster(const std::vector<const RunPlan*>& plans,
                                               std::span<const nn::ModelDef> models);
/// Throws UsageError at the run's place. `machine`: also what this machine has and which files are there.
void check_run(const Reader& reader, const Variation& variation, std::span<const nn::ModelDef> models, bool machine);

}  // namespace lockstep::lab
