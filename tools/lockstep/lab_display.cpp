#include "lab_display.h"

#include <algorithm>

#include "lab_commands.h"
#include "lab_results.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using lab::RunnerEvent;

size_t digits(size_t number) { return std::to_string(number).size(); }

}  // namespace

LabDisplay::LabDisplay(const lab::Experiment& experiment, size_t runs, const terminal::Terminal& terminal, bool quiet)
    : terminal_(terminal), quiet_(quiet) {
  if (quiet_) return;
  terminal::print("{}{}: {}\n", terminal_.bold(experiment.title),
                  experiment.scale.empty() ? "" : " (" + experiment.scale + ")", terminal::counted(runs, "run"));
  terminal::flush_out();
}

void LabDisplay::end() {
  if (bar_) terminal::write_out("\r\x1b[K");
  bar_ = false;
  terminal::flush_out();
}

void LabDisplay::draw(const lab::RunnerEvent& event) {
  const size_t width = terminal::Terminal::width();
  const std::string bar = terminal_.bar(std::clamp(event.share, 0.0, 1.0), std::min<size_t>(20, width / 5));
  std::string text = fmt::format("{}  run {} of {}  {}{}  {}", bar, event.number, event.count,
                                 event.kind == RunnerEvent::Kind::warming ? "warming up " : "", event.plan->key,
                                 terminal::duration_text(event.seconds));
  if (event.left > 0) text += fmt::format("  about {} left", terminal::duration_text(event.left));
  terminal::print("\r{}\x1b[K", terminal::clipped(text, width - 1));
  terminal::flush_out();
  bar_ = true;
}

void LabDisplay::line(const lab::RunnerEvent& event) {
  end();
  const std::string number =
      fmt::format("[{}/{}]", terminal::padded_left(std::to_string(event.number), digits(event.count)), event.count);
  if (event.kind == RunnerEvent::Kind::disturbed) {
    terminal::print("{} {}  {}: {}\n", number, event.plan->key, terminal_.cyan("disturbed"), event.text);
  } else if (event.kind == RunnerEvent::Kind::failed) {
    terminal::print("{} {}  {}: {}\n", number, event.plan->key, terminal_.red("failed"), event.text);
  } else {
    terminal::print("{} {}  {}  {}{}\n", number, event.plan->key, result_text(event.measured->values),
                    terminal::duration_text(event.seconds), event.text.empty() ? "" : ", disturbed: " + event.text);
  }
  terminal::flush_out();
}

void LabDisplay::show(const lab::RunnerEvent& event) {
  if (quiet_) return;
  if (event.kind == RunnerEvent::Kind::note) {
    end();
    terminal::print_note(terminal_, "warning", event.text);
  } else if (event.kind == RunnerEvent::Kind::done || event.kind == RunnerEvent::Kind::failed ||
             event.kind == RunnerEvent::Kind::disturbed) {
    line(event);
  } else if (terminal_.interactive) {
    draw(event);
  } else if (event.kind == RunnerEvent::Kind::started) {
    terminal::print("run {} of {}: {}, {}, about {} left for all\n", event.number, event.count, event.plan->key,
                    length_text(*event.plan), terminal::duration_text(event.left));
    terminal::flush_out();
  }
}

}  // namespace lockstep::tools
