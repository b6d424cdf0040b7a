// One display for all roles of a cluster. On a terminal it is a block redrawn in place, with an overall bar and a line
// per role; evaluations and messages scroll above it. Elsewhere it prints a plain line every ten seconds and at each
// evaluation. For one thread.
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
  /// `split` names the data of the evaluations. A quiet display prints only failures and warnings, on standard error.
  ClusterDisplay(const terminal::Terminal& terminal, std::vector<cluster::Task> tasks, const std::string& split,
                 bool quiet);

  void on_event(const launch::RoleEvent& event);
  /// Prints a line for each scheduled fault.
  void faults(const std::vector<std::string>& lines);
  /// Removes the block, before the closing is printed.
  void finish();

  /// Returns how often a role was restarted, as far as known here.
  [[nodiscard]] int restarts(const std::string& role) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Row {
    cluster::Task task;
    Report status = {};
    std::string state = "starting";
    int restarts = 0;
  };
  /// Progress of the whole run.
  struct Overall {
    double step = kUnknown;
    double steps = kUnknown;
    double epoch = kUnknown;
    double epochs = kUnknown;
    double loss = kUnknown;
    double rate = 0;
    double fraction = kUnknown;
  };

  /// Handles an event of a process that started all roles.
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
  double first_fraction_ = kUnknown;  ///< first known progress and its time, to estimate the time left
  double first_seconds_ = 0;
  size_t lines_drawn_ = 0;
  bool header_printed_ = false;
  bool loss_is_new_ = false;  ///< a loss arrived after the last evaluation
};

}  // namespace lockstep::display
