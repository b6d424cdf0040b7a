// A scale of an experiment laid over the file: maps key by key, lists and texts replaced; groups and entries of the
// report are found by name, and `off` leaves one out. Free functions; any thread.
#pragma once

#include "lab/reader.h"

namespace lockstep::lab {

/// The file as it is at that scale, without `scales`.
YamlNode at_scale(const Reader& reader, const YamlNode& file, const YamlNode& scale);
/// The file without `scales`.
YamlNode without_scales(const YamlNode& file);

}  // namespace lockstep::lab
