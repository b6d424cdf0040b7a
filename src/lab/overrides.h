// Replaces settings of all runs of an experiment file by the caller's. Free functions; any thread.
#pragma once

#include "lab/experiment.h"
#include "lab/reader.h"

namespace lockstep::lab {

/// Returns the changed file. Throws UsageError for unknown settings, values that are not allowed, and settings that the
/// file varies.
YamlNode with_settings(const Reader& reader, const YamlNode& file, const Values& settings);

}  // namespace lockstep::lab
