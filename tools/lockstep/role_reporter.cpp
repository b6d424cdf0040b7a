#include "role_reporter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::chrono::milliseconds kJsonInterval{500};
constexpr std::chrono::milliseconds kTextInterval{10000};

ordered_json finite_number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

std::string line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

RoleReporter::RoleReporter(const cluster::Task& task, const settings::Settings& settings)
    : role_(task.str()),
      json_(settings.report == settings::ReportForm::json),
      quiet_(settings.quiet),
      resumes_(!settings.resume.empty()),
      epochs_(settings.epochs),
      ticker_(json_ ? kJsonInterval : kTextInterval) {}

void RoleReporter::write(const std::string& text) {
  const std::lock_guard lock(mutex_);
  terminal::write_out(text);
  terminal::flush_out();
}

void RoleReporter::log(std::string_view level, const std::string& text) {
  if (json_) return write(line({{"event", "log"}, {"role", role_}, {"level", level}, {"text", text}}));
  if (!quiet_ || level != "info") write(fmt::format("{}: {}\n", role_, text));
}

void RoleReporter::state(const std::string& state) {
  if (json_) return write(line({{"event", "status"}, {"role", role_}, {"state", state}}));
  if (!quiet_) write(fmt::format("{}: {}\n", role_, state));
}

void RoleReporter::failure(launch::RoleFailure failure) {
  if (!json_) return;
  failure.role = role_;
  write(launch::to_json(failure) + "\n");
}

void RoleReporter::server_status(const ps::Server::Progress& progress) {
  if (!json_) return;
  ordered_json status{{"event", "status"}, {"role", role_}, {"state", progress.state}};
  if (progress.initialised) status["step"] = progress.version;
  write(line(status));
}

ordered_json RoleReporter::train_accuracy(const display::StepMeans& means) const {
  return start_.has_accuracy ? finite_number(means.accuracy()) : ordered_json(nullptr);
}

void RoleReporter::on_start(const train::StartEvent& event) {
  start_ = event;
  since_status_.start(event.clock->seconds_here());
  since_eval_ = {};
  state("training");
}

void RoleReporter::resumed(uint64_t step) {
  if (step == 0) return;
  if (json_) return write(line({{"event", "resumed"}, {"role", role_}, {"step", step}}));
  if (!quiet_) write(fmt::format("{}: resuming after step {}\n", role_, terminal::grouped(step)));
}

void RoleReporter::on_step(const train::StepEvent& event) {
  // The group knows the step, and the first update tells it.
  if (std::exchange(resumes_, false)) resumed(event.step - 1 - std::min(event.staleness, event.step - 1));
  since_status_.add(event);
  if (event.epoch != std::exchange(epoch_, event.epoch)) since_eval_ = {};
  since_eval_.add(event);
  if (!ticker_.due() || (quiet_ && !json_)) return;
  const display::StatusFigures figures = since_status_.take(event.clock->seconds_here());
  if (!json_) {
    return write(fmt::format("{}: step {}, epoch {}, loss {}, {:.0f} examples/s, waiting {:.0f} % ({})\n", role_,
                             terminal::grouped(event.step), event.epoch, terminal::loss_text(figures.means.loss()),
                             figures.examples_per_s, 100 * figures.wait_share,
                             display::largest_phases(figures.phases)));
  }
  ordered_json shares;
  for (size_t i = 0; i < figures.phases.size(); ++i) {
    shares[std::string(name(static_cast<train::Phase>(i)))] = figures.phases[i];
  }
  write(line({{"event", "status"},
              {"role", role_},
              {"state", "training"},
              {"step", event.step},
              {"steps", event.total_steps},
              {"epoch", event.epoch},
              {"epochs", epochs_},
              {"seconds", finite_number(event.clock->seconds())},
              {"examples_per_s", finite_number(figures.examples_per_s)},
              {"examples", figures.means.examples},
              {"loss", finite_number(figures.means.loss())},
              {"accuracy", train_accuracy(figures.means)},
              {"staleness", finite_number(figures.staleness)},
              {"wait_share", finite_number(figures.wait_share)},
              {"phases", shares}}));
}

void RoleReporter::on_eval(const train::EvalEvent& event) {
  const display::StepMeans trained = std::exchange(since_eval_, {});
  if (json_) {
    return write(line({{"event", "eval"},
                       {"role", role_},
                       {"step", event.step},
                       {"epoch", event.epoch},
                       {"loss", finite_number(event.loss)},
                       {"accuracy", finite_number(event.accuracy)},
                       {"train_loss", finite_number(trained.loss())},
                       {"train_accuracy", train_accuracy(trained)},
                       {"seconds", finite_number(event.seconds)},
                       {"best", event.best}}));
  }
  if (quiet_) return;
  const std::string accuracy =
      std::isnan(event.accuracy) ? std::string() : fmt::format(", accuracy {:.2f} %", 100 * event.accuracy);
  write(fmt::format("{}: step {}: evaluated loss {}{}\n", role_, terminal::grouped(event.step),
                    terminal::loss_text(event.loss), accuracy));
}

void RoleReporter::on_end(const train::Outcome& outcome) {
  if (!json_) return;
  ordered_json end{{"event", "end"},
                   {"role", role_},
                   {"run_dir", outcome.run_dir},
                   {"reason", text(outcome.reason)},
                   {"steps", outcome.steps},
                   {"epochs", outcome.epochs},
                   {"examples", outcome.examples},
                   {"seconds", finite_number(outcome.seconds)}};
  if (outcome.last_eval) {
    end["loss"] = finite_number(outcome.last_eval->loss);
    end["accuracy"] = finite_number(outcome.last_eval->accuracy);
  }
  write(line(end));
}

}  // namespace lockstep::tools
