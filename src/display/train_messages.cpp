#include "display/train_messages.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>

#include "launch/ssh_launch.h"
#include "process/line_reader.h"
#include "records/format.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::display {
namespace {

using train::Outcome;
using train::StopReason;

std::string why(const Outcome& outcome) {
  switch (outcome.reason) {
    case StopReason::epochs:
      return fmt::format("trained {}", terminal::counted(static_cast<uint64_t>(outcome.epochs), "epoch"));
    case StopReason::steps:
      return fmt::format("trained {}", terminal::counted(outcome.steps, "step"));
    case StopReason::seconds:
      return "the time limit was reached";
    case StopReason::loss:
      return "the loss goal was reached";
    case StopReason::accuracy:
      return "the accuracy goal was reached";
    case StopReason::error:
      return outcome.steps > 0 ? fmt::format("failed after step {}", terminal::grouped(outcome.steps))
                               : "failed before the first step";
    case StopReason::interrupted:
      return outcome.steps > 0 ? fmt::format("interrupted after step {}", terminal::grouped(outcome.steps))
                               : "interrupted before the first step";
    default:
      return text(outcome.reason);
  }
}

void row(const terminal::Terminal& terminal, const std::string& name, const std::string& value) {
  terminal::print("  {}{}\n", terminal.dim(terminal::padded_right(name, 16)), value);
}

void print_evaluation(const terminal::Terminal& terminal, const settings::Settings& settings, const Outcome& outcome) {
  if (!outcome.last_eval) return;
  const auto& best = outcome.best_eval;
  const bool has_accuracy = !std::isnan(outcome.last_eval->accuracy);
  const auto with_best = [&](std::string text, const std::string& best_text) {
    if (!best || best->step == outcome.last_eval->step) return text;
    return text + fmt::format("  (best {} at step {})", best_text, terminal::grouped(best->step));
  };
  const std::string loss = terminal::loss_text(outcome.last_eval->loss);
  if (!has_accuracy) {
    row(terminal, settings::value_text(settings, "eval-split") + " loss",
        with_best(terminal.bold(loss), best ? terminal::loss_text(best->loss) : std::string()));
    return;
  }
  row(terminal, settings::value_text(settings, "eval-split") + " accuracy",
      with_best(terminal.bold(terminal::percent(outcome.last_eval->accuracy)),
                best ? terminal::percent(best->accuracy) : std::string()));
  row(terminal, settings::value_text(settings, "eval-split") + " loss", loss);
}

/// Returns whether the run has a checkpoint that a command could load.
bool has_checkpoint(const std::string& run_dir) {
  std::error_code ignored;
  const std::filesystem::directory_iterator files(run_dir + "/checkpoints", ignored);
  return std::any_of(begin(files), end(files), [](const auto& file) { return file.path().extension() == ".ckpt"; });
}

void print_commands(const terminal::Terminal& terminal, const Outcome& outcome, const std::string& program) {
  if (outcome.run_dir.empty()) return;
  const std::string run = launch::shell_word(outcome.run_dir);
  const bool failed = outcome.reason == StopReason::error;
  if (failed && !has_checkpoint(outcome.run_dir)) return;
  if (failed || outcome.reason == StopReason::interrupted) {
    terminal::print("\nto resume:  {}\n", terminal.bold(program + " train --resume " + run));
    return;
  }
  terminal::print("\nnext:  {} eval {}\n", program, run);
  if (!std::isnan(outcome.train_accuracy)) terminal::print("       {} predict {} --test 4\n", program, run);
}

/// Returns the mean time of a step without evaluations and checkpoints, as `show` and `compare` do.
double seconds_per_step(const Outcome& outcome) {
  return outcome.steps == 0 ? 0 : (outcome.seconds - outcome.aside_seconds) / static_cast<double>(outcome.steps);
}

/// Prints the cost of the exchange, and who kept the others waiting.
void print_communication(const terminal::Terminal& terminal, const Outcome& outcome) {
  const train::CommunicationRecord& record = outcome.communication;
  if (record.engine.empty()) return;
  row(terminal, "exchange",
      fmt::format("{}, {} sent per step in {}, {} of {} behind computing", record.engine,
                  terminal::scaled(record.bytes_per_step, "B"), terminal::counted(record.buckets, "bucket"),
                  terminal::percent(record.overlapped, 0), records::time_text(record.transfer_seconds)));
  if (record.groups > 1) row(terminal, "groups", fmt::format("{}, one after the other", record.groups));
  for (const std::string& line : outcome.stragglers) row(terminal, "slow", line);
}

std::string model_text(const settings::Settings& settings) {
  std::string options;
  for (const auto& [key, value] : settings.options) {
    options += fmt::format("{}{}={}", options.empty() ? " (" : ", ", key, value);
  }
  return settings.model + (options.empty() ? "" : options + ")");
}

}  // namespace

void print_opening(const terminal::Terminal& terminal, const settings::Settings& settings,
                   const train::StartEvent& start) {
  terminal::print("{} on {}: {}, {}\n", terminal.bold(model_text(settings)), terminal.bold(settings.dataset),
                  terminal::counted(start.parameters, "parameter"),
                  terminal::counted(static_cast<uint64_t>(start.train_examples), "training example"));
  const bool replicas = settings.replicas > 1;
  terminal::print("{}, learning rate {}, batch {}{}, {}{}, seed {}\n", settings::value_text(settings, "optimizer"),
                  settings.lr, settings.batch, settings.accumulate > 1 ? fmt::format(" x {}", settings.accumulate) : "",
                  replicas ? fmt::format("{} replicas of ", settings.replicas) : "",
                  terminal::counted(static_cast<uint64_t>(start.threads), "thread"), settings.seed);
  if (!start.data_origin.empty()) terminal::print("data: {}\n", start.data_origin);
  if (!start.run_dir.empty()) terminal::print("run folder: {}\n", start.run_dir);
  if (start.first_step > 0) terminal::print("resuming after step {}\n", terminal::grouped(start.first_step));
  terminal::print("\n");
  terminal::flush_out();
}

void print_closing(const terminal::Terminal& terminal, const settings::Settings& settings, const Outcome& outcome,
                   const std::string& program, const std::string& details) {
  if (outcome.already_finished) {
    terminal::print("{} has already ended: {}. To train longer, raise that limit, e.g. --epochs.\n", outcome.run_dir,
                    why(outcome));
  } else {
    terminal::print("\n{}\n\n", terminal.bold(why(outcome)));
  }
  print_evaluation(terminal, settings, outcome);
  if (outcome.steps > 0) row(terminal, "training loss", terminal::loss_text(outcome.train_loss));
  row(terminal, "time",
      fmt::format("{}, {} examples/s, {} per step", terminal::duration_text(outcome.seconds),
                  terminal::rate_text(outcome.examples_per_second), records::time_text(seconds_per_step(outcome))));
  if (outcome.peak_memory_bytes > 0) {
    row(terminal, "peak memory",
        terminal::bytes_text(outcome.peak_memory_bytes) +
            (outcome.role.empty() ? "" : " in " + process::printable(outcome.role)));
  }
  print_communication(terminal, outcome);
  if (!outcome.run_dir.empty()) row(terminal, "run", outcome.run_dir);
  if (!outcome.pictures.empty()) row(terminal, "pictures", outcome.pictures);
  terminal::write_out(details);
  print_commands(terminal, outcome, program);
}

void print_result_line(const settings::Settings& settings, const Outcome& outcome) {
  std::string result = fmt::format("{} on {}: ", settings.model, settings.dataset);
  if (outcome.last_eval) {
    if (!std::isnan(outcome.last_eval->accuracy)) {
      result += fmt::format("{} accuracy {}, ", settings::value_text(settings, "eval-split"),
                            terminal::percent(outcome.last_eval->accuracy));
    }
    result += fmt::format("{} loss {}, ", settings::value_text(settings, "eval-split"),
                          terminal::loss_text(outcome.last_eval->loss));
  }
  result += fmt::format("{} in {}, {}", terminal::counted(outcome.steps, "step"),
                        terminal::duration_text(outcome.seconds), why(outcome));
  if (!outcome.run_dir.empty()) result += ", " + outcome.run_dir;
  terminal::print("{}\n", result);
}

}  // namespace lockstep::display
