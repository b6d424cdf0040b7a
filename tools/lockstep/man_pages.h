// Manual pages, made from the command line and its help. Only command_line.cpp and man_pages.cpp need this.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::tools {

/// Returns file names and texts in roff: lockstep.1, and a page such as lockstep-train.1 for each command.
std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& program, const std::string& version);

}  // namespace lockstep::tools
