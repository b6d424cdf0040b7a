// Measures the finished runs of an experiment again from their folders, so that fields that were added or changed
// since then have their figures without new runs. Reads the folders, writes the lab's database; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::lab {

struct MeasuredAgain {
  size_t runs = 0;
  size_t kept = 0;  ///< runs that keep their figures: of other programs, or with a folder that is gone or unreadable
};

/// Measures finished runs again from their folders. Figures of the machine stay, as no folder has them. Throws
/// UsageError if a lab runs the experiment.
MeasuredAgain measure_again(const std::string& lab_dir, int64_t experiment);

}  // namespace lockstep::lab
