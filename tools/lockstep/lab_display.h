// Shows a running experiment: a line per finished run and, below it on a terminal, a bar with the current run and the
// time left. Elsewhere it prints plain lines.
#pragma once

#include "lab/runner.h"
#include "terminal/terminal.h"
#include "terminal/ticker.h"

namespace lockstep::tools {

class LabDisplay {
 public:
  /// `runs` is the number of chosen runs.
  LabDisplay(const lab::Experiment& experiment, size_t runs, const terminal::Terminal& terminal, bool quiet);

  void show(const lab::RunnerEvent& event);
  /// Removes the bar.
  void end();

 private:
  void draw(const lab::RunnerEvent& event);
  void line(const lab::RunnerEvent& event);

  terminal::Terminal terminal_;
  bool quiet_;
  bool bar_ = false;
};

}  // namespace lockstep::tools
