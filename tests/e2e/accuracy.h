// Training on real data until an accuracy is reached.
#pragma once

#include "e2e/support.h"

namespace lockstep::testing {

class Accuracy : public ProgramTest {
 protected:
  /// Returns the best test accuracy of a run.
  [[nodiscard]] double best(const Words& arguments, const std::string& run_name) const {
    Process process(program_path(), arguments, options());
    const Ended ended = process.finish(Process::Seconds(3000));
    EXPECT_EQ(ended.code, 0) << ended.err;
    return summary(run_name)["best_accuracy"];
  }
};

}  // namespace lockstep::testing
