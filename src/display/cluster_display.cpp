#include "display/cluster_display.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "display/bar_line.h"
#include "display/phase_shares.h"
#include "records/statistics.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::display {
namespace {

using launch::RoleEvent;
using records::known;
using Kind = RoleEvent::Kind;

std::string count_text(double value) {
  return known(value) && value >= 0 ? terminal::grouped(static_cast<uint64_t>(value)) : "";
}

void take_larger(double& value, double other) {
  if (known(other) && !(value >= other)) value = other;
}

/// Returns "3/10". A total already passed is left out: a smaller group makes more steps of an epoch.
std::string of_text(double value, double all) {
  return known(all) && all > 0 && value <= all ? count_text(value) + "/" + count_text(all) : count_text(value);
}

}  // namespace

ClusterDisplay::ClusterDisplay(const terminal::Terminal& terminal, std::vector<cluster::Task> tasks,
                               const std::string& split, bool quiet)
    : terminal_(terminal), split_(split.substr(0, 5)), quiet_(quiet), drawn_(Clock::now()) {
  for (const cluster::Task& task : tasks) {
    rows_.push_back({task});
    if (task.role == cluster::Role::chief) chief_ = task;
  }
}

double ClusterDisplay::seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

ClusterDisplay::Row* ClusterDisplay::find(const cluster::Task& task) {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.task == task; });
  return found == rows_.end() ? nullptr : &*found;
}

int ClusterDisplay::restarts(const std::string& role) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.task.str() == role; });
  return found == rows_.end() ? 0 : found->restarts;
}

void ClusterDisplay::on_group_event(const RoleEvent& event) {
  if (event.kind == Kind::out_line) {
    const std::optional<Report> report = parse_report(event.text);
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const Row& row) { return report && row.task.str() == report->role; });
    if (found != rows_.end()) return on_line(*found, event.text);
    if (!event.text.empty()) say(event.group + ":", event.text, false);
    return;
  }
  const bool ended = event.kind == Kind::died || event.kind == Kind::ended;
  const bool begins = event.kind == Kind::started || event.kind == Kind::restarted;
  for (Row& row : rows_) {
    row.restarts = event.restarts;
    if (begins) row.state = "starting";
    if (ended) row.state = event.kind == Kind::died ? "died" : "done";
    if (ended) row.status.examples_per_s = kUnknown;
  }
  if (event.kind == Kind::died) say(event.group, "died: " + event.text, true);
  if (event.kind == Kind::err_line) say(event.group + ":", event.text, true);
  if (event.kind == Kind::message) say(event.group, event.text, true);
}

void ClusterDisplay::on_event(const RoleEvent& event) {
  if (!event.group.empty()) {
    on_group_event(event);
    return draw_when_due();
  }
  Row* row = event.kind == Kind::tick ? nullptr : find(event.task);
  if (row != nullptr) {
    row->restarts = event.restarts;
    switch (event.kind) {
      case Kind::started:
      case Kind::restarted:
        row->state = "starting";
        break;
      case Kind::out_line:
        on_line(*row, event.text);
        break;
      case Kind::err_line:
        say(row->task.str() + ":", event.text, true);
        break;
      case Kind::died:
        row->state = "died";
        row->status.examples_per_s = kUnknown;
        say(row->task.str(), "died: " + event.text, true);
        break;
      case Kind::ended:
        row->state = "done";
        row->status.examples_per_s = kUnknown;
        break;
      default:
        say(row->task.str(), event.text, true);
    }
  }
  draw_when_due();
}

void ClusterDisplay::on_line(Row& row, const std::string& line) {
  const std::optional<Report> report = parse_report(line);
  if (!report) {
    if (!line.empty()) say(row.task.str() + ":", line, false);
    return;
  }
  if (report->event == Report::Event::status) {
    on_status(row, *report);
  } else if (report->event == Report::Event::log) {
    say(row.task.str() + ":", report->text, report->level == "error" || report->level == "warning");
  } else if (report->event == Report::Event::eval) {
    // The final evaluations of other workers are in the closing table.
    if (row.task == chief_ || row.task.role == cluster::Role::evaluator) on_eval(row, *report);
  } else if (report->event == Report::Event::resumed) {
    if (row.task == chief_) on_resumed(*report);
  } else if (report->event == Report::Event::end) {
    row.state = "done";
    take_larger(row.status.step, report->step);
  }
}

void ClusterDisplay::on_status(Row& row, const Report& report) {
  row.status = report;
  row.state = report.state.empty() ? "running" : report.state;
  if (row.task.trains()) since_eval_.add(report);
  if (row.task == chief_ && known(report.seconds)) chief_ahead_ = report.seconds - seconds();
}

void ClusterDisplay::on_resumed(const Report& report) {
  if (quiet_ || std::exchange(resume_told_, true)) return;
  clear();
  terminal::print("resuming after step {}\n", count_text(report.step));
  if (terminal_.interactive) draw();
  terminal::flush_out();
}

void ClusterDisplay::Trained::add(const Report& status) {
  if (!known(status.loss)) return;
  const double count = known(status.examples) ? status.examples : 1;
  examples += count;
  loss_sum += count * status.loss;
  correct += count * status.accuracy;
}

double ClusterDisplay::training_seconds(const Row& row, const Report& evaluation) const {
  const bool knows = row.task.role != cluster::Role::evaluator && known(evaluation.seconds);
  return knows ? evaluation.seconds : std::max(seconds() + chief_ahead_, 0.0);
}

void ClusterDisplay::faults(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) say("fault:", line, false);
}

void ClusterDisplay::say(const std::string& who, const std::string& text, bool bad) {
  if (quiet_) {
    if (bad) std::fprintf(stderr, "%s %s\n", who.c_str(), text.c_str());
    return;
  }
  clear();
  terminal::print("{} {}\n", bad ? terminal_.red(who) : terminal_.dim(who), text);
  if (terminal_.interactive) draw();
  terminal::flush_out();
}

void ClusterDisplay::on_eval(const Row& row, const Report& report) {
  const Trained trained = std::exchange(since_eval_, {});
  if (quiet_) return;
  clear();
  const bool accuracy = known(report.accuracy);
  const auto accuracy_cell = [&](const std::string& text) { return accuracy ? fmt::format("  {:>9}", text) : ""; };
  if (!header_printed_) {
    const std::string titles =
        fmt::format("{:>7}  {:>9}  {:>10}{}  {:>10}{}  {:>9}", "epoch", "step", "train loss",
                    accuracy_cell("train acc"), split_ + " loss", accuracy_cell(split_ + " acc"), "time");
    terminal::print("{}\n", terminal_.bold(titles));
    header_printed_ = true;
  }
  const auto loss = [](double value) { return known(value) ? terminal::loss_text(value) : std::string(); };
  const auto percent = [](double value) { return known(value) ? terminal::percent(value) : std::string(); };
  // A sum over all updates is exact; statuses are all there is where another process evaluates.
  const bool exact = known(report.train_loss);
  const std::string shown = accuracy_cell(percent(report.accuracy));
  terminal::print("{:>7}  {:>9}  {:>10}{}  {:>10}{}  {:>9}\n",
                  report.epoch > 0 ? of_text(report.epoch, overall().epochs) : "", count_text(report.step),
                  loss(exact ? report.train_loss : trained.loss()),
                  accuracy_cell(percent(exact ? report.train_accuracy : trained.accuracy())), loss(report.loss),
                  report.best ? terminal_.green(shown) : shown, terminal::duration_text(training_seconds(row, report)));
  if (terminal_.interactive) draw();
  terminal::flush_out();
}

ClusterDisplay::Overall ClusterDisplay::overall() const {
  Overall whole;
  double loss_sum = 0;
  int losses = 0;
  double latest = kUnknown;  // step of those that tell the total; servers do not
  for (const Row& row : rows_) {
    const Report& status = row.status;
    // Who has made the latest step knows the total; a worker that was lost knows that of a larger group.
    if (known(status.steps) && !(status.step < latest)) {
      whole.steps = status.steps;
      latest = status.step;
    }
    take_larger(whole.step, status.step);
    take_larger(whole.epoch, status.epoch);
    take_larger(whole.epochs, status.epochs);
    if (!row.task.trains()) continue;
    if (known(status.examples_per_s)) whole.rate += status.examples_per_s;
    if (!known(status.loss)) continue;
    loss_sum += status.loss;
    ++losses;
  }
  if (losses > 0) whole.loss = loss_sum / losses;
  if (known(whole.step) && whole.steps > 0 && whole.step <= whole.steps) {
    whole.fraction = whole.step / whole.steps;
  } else if (known(whole.epoch) && whole.epochs > 0) {
    whole.fraction = (whole.epoch - 1) / whole.epochs;
  }
  return whole;
}

std::string ClusterDisplay::time_left(const Overall& whole) {
  const double fraction = whole.fraction;
  if (!known(fraction)) return "";
  // Another total comes with another group, which has a pace of its own.
  if (!known(first_fraction_) || (known(whole.steps) && whole.steps != first_steps_)) {
    first_fraction_ = fraction;
    first_seconds_ = seconds();
    first_steps_ = whole.steps;
  }
  const double done = fraction - first_fraction_;
  if (done <= 0 || fraction >= 1) return "";
  return terminal::duration_text((seconds() - first_seconds_) * (1 - fraction) / done) + " left";
}

std::string ClusterDisplay::overall_line(const Overall& whole, size_t width) {
  return bar_line(terminal_, whole.fraction,
                  {known(whole.epoch) ? "epoch " + of_text(whole.epoch, whole.epochs) : "",
                   known(whole.step) ? "step " + of_text(whole.step, whole.steps) : "starting",
                   known(whole.loss) ? "loss " + terminal::loss_text(whole.loss) : "",
                   whole.rate > 0 ? terminal::rate_text(whole.rate) + " examples/s" : "", time_left(whole)},
                  width);
}

std::vector<std::string> ClusterDisplay::role_lines(size_t width, size_t most) const {
  terminal::Table table({{"role"},
                         {"", terminal::Table::Align::left},
                         {"step", terminal::Table::Align::right},
                         {"examples/s", terminal::Table::Align::right},
                         {"staleness", terminal::Table::Align::right},
                         {"waits", terminal::Table::Align::right},
                         {"restarts", terminal::Table::Align::right},
                         {"time goes to", terminal::Table::Align::left}});
  const size_t shown = std::min(rows_.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    const Row& row = rows_[i];
    const Report& s = row.status;
    table.add({row.task.str(), row.state.substr(0, 16), count_text(s.step),
               known(s.examples_per_s) ? terminal::rate_text(s.examples_per_s) : "",
               known(s.staleness) ? fmt::format("{:.1f}", s.staleness) : "",
               known(s.wait_share) ? terminal::percent(s.wait_share, 0) : "",
               row.restarts > 0 ? std::to_string(row.restarts) : "", largest_phases(s.phases)});
  }
  std::vector<std::string> lines;
  const std::string text = table.text(terminal_);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(
        terminal::clipped(text.substr(begin, end - begin), width - 1));  // a line that wraps would break the redrawing
    begin = end + 1;
  }
  if (shown < rows_.size()) lines.push_back(fmt::format("... and {} more", rows_.size() - shown));
  return lines;
}

void ClusterDisplay::draw_when_due() {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < terminal_.redraw_every()) return;
  if (terminal_.interactive) {
    draw();
  } else {
    print_line();
  }
  terminal::flush_out();
}

void ClusterDisplay::draw() {
  drawn_ = Clock::now();
  const size_t width = terminal::Terminal::width();
  const size_t height = terminal::Terminal::height();
  std::vector<std::string> lines = role_lines(width, height > 8 ? height - 6 : 2);
  lines.insert(lines.begin(), overall_line(overall(), width));
  std::string text = lines_drawn_ > 1 ? fmt::format("\r\x1b[{}A", lines_drawn_ - 1) : "\r";
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n") + lines[i] + "\x1b[K";
  terminal::write_out(text + "\x1b[J");
  lines_drawn_ = lines.size();
}

void ClusterDisplay::clear() {
  if (lines_drawn_ > 1) terminal::print("\x1b[{}A", lines_drawn_ - 1);
  if (lines_drawn_ > 0) terminal::write_out("\r\x1b[J");
  lines_drawn_ = 0;
}

void ClusterDisplay::print_line() {
  drawn_ = Clock::now();
  const Overall whole = overall();
  const auto up = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.state != "died"; });
  const std::string left = time_left(whole);
  terminal::print("{}step {}: loss {}, {} examples/s, {} of {} roles up{}{}\n",
                  known(whole.epoch) ? fmt::format("epoch {}, ", of_text(whole.epoch, whole.epochs)) : "",
                  known(whole.step) ? of_text(whole.step, whole.steps) : "0",
                  known(whole.loss) ? terminal::loss_text(whole.loss) : "?", terminal::rate_text(whole.rate), up,
                  rows_.size(), left.empty() ? "" : ", ", left);
}

void ClusterDisplay::finish() {
  clear();
  terminal::flush_out();
}

}  // namespace lockstep::display
