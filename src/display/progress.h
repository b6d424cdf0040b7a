// Shows a training to a person: a table line per evaluation and, below it on a terminal, a bar redrawn about ten times
// a second. Elsewhere it prints a plain line every ten seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "display/phase_shares.h"
#include "display/step_means.h"
#include "lockstep/train_events.h"
#include "terminal/terminal.h"
#include "terminal/ticker.h"

namespace lockstep::display {

class Progress final : public train::Hooks {
 public:
  /// `split` names the data of the evaluations: "test" or "validation".
  Progress(const terminal::Terminal& terminal, const std::string& split)
      : Progress(terminal, split, terminal.redraw_every()) {}
  /// Shows the progress at another pace.
  Progress(const terminal::Terminal& terminal, const std::string& split, std::chrono::milliseconds redraw_every);

  void on_start(const train::StartEvent& event) override;
  void on_step(const train::StepEvent& event) override {
    since_eval_.add(event);
    since_drawn_.add(event);
    phases_.add(event.phases);
    if (ticker_.due()) draw(event);
  }
  void on_eval(const train::EvalEvent& event) override;
  void on_end(const train::Outcome& outcome) override;

 private:
  void draw(const train::StepEvent& event);
  void draw_bar(const train::StepEvent& event);
  void print_line(const train::StepEvent& event);
  void clear_bar();
  void print_header();
  [[nodiscard]] std::string epoch_text(int64_t epoch) const;
  [[nodiscard]] std::string time_left(const train::StepEvent& event) const;
  [[nodiscard]] double fraction(const train::StepEvent& event) const;

  terminal::Terminal terminal_;
  std::string split_;  ///< name of the split, short enough for titles
  terminal::Ticker ticker_;
  train::StartEvent start_;
  StepMeans since_eval_;
  StepMeans since_drawn_;
  PhaseShares phases_;
  double drawn_at_ = 0;  ///< seconds of this process at the last drawing, and those spent outside training
  double drawn_aside_ = 0;
  double rate_ = 0;  ///< examples per second lately
  bool header_printed_ = false;
  bool bar_visible_ = false;
};

}  // namespace lockstep::display
