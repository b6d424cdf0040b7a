// The curves of runs: loss and accuracy of training and evaluation, over steps, seconds or epochs.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "terminal/chart.h"

namespace lockstep::display {

enum class Over { steps, seconds, epochs };

/// Returns the training and evaluation curves of one run.
std::string run_curves(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width);

/// Returns the curves of several runs, overlaid: training loss, and accuracy (or loss) at evaluations.
std::string overlaid_curves(const terminal::Terminal& terminal, const std::vector<records::RunRecord>& runs, Over over,
                            size_t width);

}  // namespace lockstep::display
