// Settings for all runs, which the caller of an experiment wants otherwise than its file says. Free functions; any
// thread.
#pragma once

#include "lab/experiment.h"
#include "lab/reader.h"

namespace lockstep::lab {

/// The file with them. Throws UsageError for what is no setting, a value it cannot have, and settings that the file
/// varies.
YamlNode with_settings(const Reader& reader, const YamlNode& file, const Values& settings);

}  // namespace lockstep::lab
