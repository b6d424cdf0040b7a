// Writes the report of an experiment to a file.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::tools {

/// Writes the page with the experiment's present results, replacing it as a whole, and returns its path.
std::string write_report(const std::string& lab_dir, int64_t experiment, const std::string& path);

}  // namespace lockstep::tools
