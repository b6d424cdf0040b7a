// One display for all roles of a cluster. On a terminal: a block that is redrawn in place, an overall bar and a line
// per role, with evaluations and what is to be said scrolling above it. Elsewhere: a plain line every ten seconds and
// at evaluations. For one thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "display/role_report.h"
#include "launch/supervisor.h"
#include "terminal/terminal.h"

namespace lockstep::display {

class ClusterDisplay {
 public:
  /// `split` is what evaluations are on; a quiet display says only what went wrong, on standard error.
  ClusterDisplay(const terminal::Terminal& terminal, std::vector<cluster::Task> tasks, const std::string& split,
                 bool quiet);

  void on_event(const launch::RoleEvent& event);
  /// A line for each fault that was made on purpose.
  void faults(const std::vector<std::string>& lines);
  /// Removes the block: what follows is the closing.
  void finish();

  /// How often a role was started again, as far as is known here.
  [[nodiscard]] int restarts(const std::string& role) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Row {
    cluster::Task task;
    Report status = {};
    std::string state = "starting";
    int restarts = 0;
  };
  /// Of the whole.
  struct Overall {
    double step = kUnknown;
    double steps = kUnknown;
    double epoch = kUnknown;
    double epochs = kUnknown;
    double loss = kUnknown;
    double rate = 0;
    double fraction = kUnknown;
  };

  /// Of a process that has started all roles.
  void on_group_event(const launch::RoleEvent& event);
  void on_line(Row& row, const std::string& line);
  void on_eval(const Report& report);
  void say(const std::string& who, const std::string& text, bool bad);
  void draw_when_due();
  void draw();
  void clear();
  void print_line();
  [[nodiscard]] Overall overall() const;
  [[nodiscard]] std::string time_left(double fraction);
  [[nodiscard]] std::string overall_line(const Overall& whole, size_t width);
  [[nodiscard]] std::vector<std::string> role_lines(size_t width, size_t most) const;
  [[nodiscard]] Row* find(const cluster::Task& task);
  [[nodiscard]] double seconds() const;

  terminal::Terminal terminal_;
  std::vector<Row> rows_;
  cluster::Task chief_ = {cluster::Role::worker, 0};
  std::string split_;
  bool quiet_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point drawn_ = {};
  double first_fraction_ = kUnknown;  ///< and when it was seen, to tell the time left
  double first_seconds_ = 0;
  size_t lines_drawn_ = 0;
  bool header_printed_ = false;
  bool loss_is_new_ = false;  ///< somebody has told one since the last evaluation
};

}  // namespace lockstep::display
