#include "display/progress.h"

#include <algorithm>
#include <vector>

#include "display/bar_line.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::display {

Progress::Progress(const terminal::Terminal& terminal, const std::string& split, std::chrono::milliseconds redraw_every)
    : terminal_(terminal), split_(split.substr(0, 5)), ticker_(redraw_every) {}

void Progress::on_start(const train::StartEvent& event) {
  start_ = event;
  drawn_at_ = event.clock == nullptr ? 0 : event.clock->seconds_here();
  drawn_aside_ = event.first_aside_seconds;
  ticker_.restart();
}

std::string Progress::epoch_text(int64_t epoch) const {
  if (start_.steps_per_epoch == 0 || start_.total_steps == 0) return std::to_string(epoch);
  const uint64_t epochs = (start_.total_steps + start_.steps_per_epoch - 1) / start_.steps_per_epoch;
  return fmt::format("{}/{}", epoch, epochs);
}

/// Returns the finished part of the training, or of the epoch if the training's end is not known.
double Progress::fraction(const train::StepEvent& event) const {
  if (start_.total_steps > 0) return static_cast<double>(event.step) / static_cast<double>(start_.total_steps);
  if (start_.limit_seconds > 0 && event.clock != nullptr) return event.clock->seconds() / start_.limit_seconds;
  if (start_.steps_per_epoch == 0) return 0;
  return static_cast<double>((event.step - 1) % start_.steps_per_epoch + 1) /
         static_cast<double>(start_.steps_per_epoch);
}

std::string Progress::time_left(const train::StepEvent& event) const {
  if (event.clock == nullptr) return "";
  std::vector<double> ends;
  const auto steps_here = static_cast<double>(event.step - start_.first_step);
  if (start_.total_steps > event.step && steps_here > 0) {
    const double per_step = event.clock->seconds_here() / steps_here;
    ends.push_back(per_step * static_cast<double>(start_.total_steps - event.step));
  }
  if (start_.limit_seconds > 0) ends.push_back(std::max(0.0, start_.limit_seconds - event.clock->seconds()));
  if (ends.empty()) return "";
  return terminal::duration_text(*std::min_element(ends.begin(), ends.end())) + " left";
}

void Progress::draw(const train::StepEvent& event) {
  const double now = event.clock == nullptr ? 0 : event.clock->seconds_here();
  const double passed = now - drawn_at_ - (event.aside_seconds - drawn_aside_);
  if (passed > 0) {
    const double rate = static_cast<double>(since_drawn_.examples) / passed;
    rate_ = rate_ == 0 ? rate : 0.7 * rate_ + 0.3 * rate;
  }
  if (terminal_.interactive) {
    draw_bar(event);
  } else {
    print_line(event);
  }
  drawn_at_ = now;
  drawn_aside_ = event.aside_seconds;
  since_drawn_ = {};
}

void Progress::draw_bar(const train::StepEvent& event) {
  std::vector<std::string> parts{
      fmt::format("epoch {}", epoch_text(event.epoch)),
      fmt::format("step {}", terminal::grouped(event.step)),
      fmt::format("loss {}", terminal::loss_text(since_drawn_.loss())),
  };
  if (start_.has_accuracy) parts.push_back(fmt::format("acc {}", terminal::percent(since_drawn_.accuracy(), 1)));
  parts.push_back(fmt::format("{} examples/s", terminal::rate_text(rate_)));
  if (const std::string left = time_left(event); !left.empty()) parts.push_back(left);
  if (const std::string where = largest_phases(phases_.take()); !where.empty()) parts.push_back(where);
  terminal::print("\r{}\x1b[K", bar_line(terminal_, fraction(event), parts, terminal::Terminal::width()));
  terminal::flush_out();
  bar_visible_ = true;
}

void Progress::print_line(const train::StepEvent& event) {
  print_header();
  const std::string left = time_left(event);
  const std::string accuracy =
      start_.has_accuracy ? fmt::format(", accuracy {}", terminal::percent(since_drawn_.accuracy(), 1)) : "";
  terminal::print("epoch {}, step {}: loss {}{}, {} examples/s{}{}\n", epoch_text(event.epoch), event.step,
                  terminal::loss_text(since_drawn_.loss()), accuracy, terminal::rate_text(rate_),
                  left.empty() ? "" : ", ", left);
  terminal::flush_out();
}

void Progress::clear_bar() {
  if (bar_visible_) terminal::write_out("\r\x1b[K");
  bar_visible_ = false;
}

void Progress::print_header() {
  if (header_printed_) return;
  const std::string train_acc = start_.has_accuracy ? fmt::format("  {:>9}", "train acc") : "";
  const std::string split_acc = start_.has_accuracy ? fmt::format("  {:>9}", split_ + " acc") : "";
  const std::string header = fmt::format("{:>7}  {:>9}  {:>10}{}  {:>10}{}  {:>9}", "epoch", "step", "train loss",
                                         train_acc, split_ + " loss", split_acc, "time");
  terminal::print("{}\n", terminal_.bold(header));
  header_printed_ = true;
}

void Progress::on_eval(const train::EvalEvent& event) {
  clear_bar();
  print_header();
  const bool trained = since_eval_.examples > 0;
  const auto green = [&](const std::string& text) { return event.best ? terminal_.green(text) : text; };
  const std::string train_loss = trained ? terminal::loss_text(since_eval_.loss()) : "";
  const std::string loss = fmt::format("{:>10}", terminal::loss_text(event.loss));
  if (start_.has_accuracy) {
    terminal::print("{:>7}  {:>9}  {:>10}  {:>9}  {}  {}  {:>9}\n", epoch_text(event.epoch),
                    terminal::grouped(event.step), train_loss, trained ? terminal::percent(since_eval_.accuracy()) : "",
                    loss, green(fmt::format("{:>9}", terminal::percent(event.accuracy))),
                    terminal::duration_text(event.seconds));
  } else {
    terminal::print("{:>7}  {:>9}  {:>10}  {}  {:>9}\n", epoch_text(event.epoch), terminal::grouped(event.step),
                    train_loss, green(loss), terminal::duration_text(event.seconds));
  }
  terminal::flush_out();
  since_eval_ = {};
}

void Progress::on_end(const train::Outcome& /*outcome*/) {
  clear_bar();
  terminal::flush_out();
}

}  // namespace lockstep::display
