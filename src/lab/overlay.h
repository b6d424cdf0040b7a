// Lays a scale of an experiment over the file: maps key by key, while lists and texts are replaced. Groups and entries
// of the report are matched by name, and `off` leaves one out. Free functions; any thread.
#pragma once

#include "lab/reader.h"

namespace lockstep::lab {

/// Returns the file at that scale, without `scales`.
YamlNode at_scale(const Reader& reader, const YamlNode& file, const YamlNode& scale);
/// Returns the file without `scales`.
YamlNode without_scales(const YamlNode& file);

}  // namespace lockstep::lab
