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

  /// Training of all workers, from their statuses since the last evaluation shown.
  struct Trained {
    double examples = 0;
    double loss_sum = 0;
    double correct = 0;  ///< not a number for models without accuracy

    void add(const Report& status);
    [[nodiscard]] double loss() const { return examples > 0 ? loss_sum / examples : kUnknown; }
    [[nodiscard]] double accuracy() const { return examples > 0 ? correct / examples : kUnknown; }
  };

  /// Handles an event of a process that started all roles.
  void on_group_event(const launch::RoleEvent& event);
  void on_line(Row& row, const std::string& line);
  void on_status(Row& row, const Report& report);
  /// Says once from which step the cluster trains on; a chief that is restarted reports it again.
  void on_resumed(const Report& report);
  void on_eval(const Row& row, const Report& report);
  void say(const std::string& who, const std::string& text, bool bad);
  void draw_when_due();
  void draw();
  void clear();
  void print_line();
  [[nodiscard]] Overall overall() const;
  [[nodiscard]] std::string time_left(const Overall& whole);
  [[nodiscard]] std::string overall_line(const Overall& whole, size_t width);
  [[nodiscard]] std::vector<std::string> role_lines(size_t width, size_t most) const;
  [[nodiscard]] Row* find(const cluster::Task& task);
  [[nodiscard]] double seconds() const;
  /// Returns the training time of an evaluation. An evaluator does not know it and counts from its own start.
  [[nodiscard]] double training_seconds(const Row& row, const Report& evaluation) const;

  terminal::Terminal terminal_;
  std::vector<Row> rows_;
  cluster::Task chief_ = {cluster::Role::worker, 0};
  std::string split_;
  bool quiet_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point drawn_ = {};
  double first_fraction_ = kUnknown;  ///< first known progress and its time, to estimate the time left
  double first_seconds_ = 0;
  double first_steps_ = kUnknown;  ///< the total then
  size_t lines_drawn_ = 0;
  bool header_printed_ = false;
  bool resume_told_ = false;
  Trained since_eval_;
  double chief_ahead_ = 0;  ///< the chief's training time less the time here
};

}  // namespace lockstep::display
