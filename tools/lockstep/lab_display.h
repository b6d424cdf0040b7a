// What a person sees while an experiment runs: a line per finished run and, below it on a terminal, a bar with what is
// under way and the time left; elsewhere plain lines.
#pragma once

#include "lab/runner.h"
#include "terminal/terminal.h"
#include "terminal/ticker.h"

namespace lockstep::tools {

class LabDisplay {
 public:
  /// `runs`: how many were chosen.
  LabDisplay(const lab::Experiment& experiment, size_t runs, const terminal::Terminal& terminal, bool quiet);

  void show(const lab::RunnerEvent& event);
  /// Takes the bar away.
  void end();

 private:
  void draw(const lab::RunnerEvent& event);
  void line(const lab::RunnerEvent& event);

  terminal::Terminal terminal_;
  bool quiet_;
  bool bar_ = false;
};

}  // namespace lockstep::tools
