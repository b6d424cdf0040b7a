// Lays out the line of a bar: the finished part, then as many words as fit. Free functions without state; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "terminal/terminal.h"

namespace lockstep::display {

/// Returns a line of at most `width` columns: a bar, the percentage, and the parts from the first to the last that
/// fits; empty parts are skipped. A bar that fits goes before the third part and those after it. NaN as the finished
/// fraction: no bar.
std::string bar_line(const terminal::Terminal& terminal, double fraction, const std::vector<std::string>& parts,
                     size_t width);

}  // namespace lockstep::display
