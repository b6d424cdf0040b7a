#include "run_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "records/format.h"
#include "run/run_directory.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

std::string cluster_text(const records::RunRecord& run) {
  if (run.workers() <= 1 && run.servers() == 0) return "one process";
  if (run.in_process()) return terminal::counted(run.workers(), "replica") + " in one process";
  std::string text = terminal::counted(run.workers(), "worker");
  if (run.servers() > 0) text += " and " + terminal::counted(run.servers(), "server");
  const std::string strategy = run.all_reduce() ? "all-reduce" : "ps";
  const std::string engine = run.summary().text("communication.engine");
  const std::string mode = run.summary().text("mode").empty() ? run.setting("mode") : run.summary().text("mode");
  return fmt::format("{} ({}{}{})", text, strategy, engine.empty() ? "" : " with " + engine,
                     run.all_reduce() || mode.empty() ? "" : ", " + mode);
}

/// "2026-11-16T00:30:17Z" -> "2026-11-16 00:30:17".
std::string date_text(std::string text) {
  text = terminal::replaced(std::move(text), "T", " ");
  if (text.ends_with('Z')) text.pop_back();
  return text;
}

std::string ending(const terminal::Terminal& terminal, const records::RunRecord& run) {
  const std::string step = records::known(run.steps()) ? "step " + records::count_text(run.steps()) : "no step";
  if (run.state == records::RunState::running) return terminal.green("still training, at " + step);
  if (run.state == records::RunState::broken) {
    return terminal.red("killed after " + step + ": it left no summary" + (run.went_on ? " since it was resumed" : ""));
  }
  const std::string reason = run.summary().text("stop_reason");
  const std::string error = run.summary().text("error");
  if (run.failed()) {
    return terminal.red(fmt::format("ended at {} by {}{}", step, reason, error.empty() ? "" : ": " + error));
  }
  return fmt::format("ended at {} ({})", step, reason.empty() ? "reason unknown" : reason);
}

}  // namespace

records::RunRecord choose_run(const std::string& run, const std::string& runs_dir) {
  return records::read_run(run.empty() ? records::newest_run(runs_dir) : run::find_run(run, runs_dir));
}

std::string what_run(const records::RunRecord& run) {
  const bool cluster = run.workers() > 1;
  const std::string batch = run.setting("batch");
  return fmt::format("{} on {}, {}{}", run.model().empty() ? "?" : run.model(),
                     run.dataset().empty() ? "?" : run.dataset(), cluster_text(run),
                     batch.empty() ? "" : fmt::format(", batch {}{}", batch, cluster ? " each" : ""));
}

std::string wrapped_text(const std::string& text, size_t width, std::string_view indent) {
  std::string result;
  for (const std::string& line : terminal::wrapped(text, std::clamp<size_t>(width, 60, 120) - indent.size())) {
    result.append(indent).append(line).append("\n");
  }
  return result;
}

std::string title_line(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width) {
  return wrapped_text(terminal.bold(run.name) + "  " + what_run(run), width);
}

std::string run_headline(const terminal::Terminal& terminal, const records::RunRecord& run, size_t width) {
  std::string result = title_line(terminal, run, width);
  const std::string started = run.summary().text("started");
  const std::string host = run.chief().host;
  std::string second;
  if (!started.empty()) second += "started " + date_text(started) + " UTC, ";
  if (!host.empty()) second += "on " + host + ", ";
  if (records::known(run.seconds())) second += "trained " + terminal::duration_text(run.seconds()) + ", ";
  return result + wrapped_text(second + ending(terminal, run), width);
}

std::string warning_lines(const terminal::Terminal& terminal, const records::RunRecord& run) {
  std::string result;
  for (const std::string& warning : run.warnings) {
    result += fmt::format("{} {}\n", terminal.red("cannot read everything:"), records::printable(warning));
  }
  return result;
}

}  // namespace lockstep::tools
