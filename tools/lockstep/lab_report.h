// The report of an experiment as a file.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::tools {

/// Writes the page of what the lab has of the experiment now, whole, and gives the path.
std::string write_report(const std::string& lab_dir, int64_t experiment, const std::string& path);

}  // namespace lockstep::tools
