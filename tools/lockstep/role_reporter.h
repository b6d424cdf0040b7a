// Reports of a role: JSON lines for a launcher (--report json), or text for a role started by hand. The reporter hooks
// into the training and is also its log; it writes at most two status lines per second. `log` may be called by any
// thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "cluster/spec.h"
#include "display/status_figures.h"
#include "display/step_means.h"
#include "launch/role_failure.h"
#include "lockstep/train_events.h"
#include "ps/server.h"
#include "settings/settings.h"
#include "terminal/ticker.h"

namespace lockstep::tools {

class RoleReporter final : public train::Hooks {
 public:
  RoleReporter(const cluster::Task& task, const settings::Settings& settings);

  void on_start(const train::StartEvent& event) override;
  void on_step(const train::StepEvent& event) override;
  void on_eval(const train::EvalEvent& event) override;
  void on_end(const train::Outcome& outcome) override;

  void log(std::string_view level, const std::string& text);
  void server_status(const ps::Server::Progress& progress);
  void state(const std::string& state);
  /// Writes a line to the launcher as it is.
  void tell(const std::string& line) { write(line + "\n"); }
  /// Reports the failure to the launcher; for a role started by hand, standard error already has the line.
  void failure(launch::RoleFailure failure);

 private:
  void write(const std::string& line);
  void resumed(uint64_t step);
  /// Returns null for models without accuracy.
  [[nodiscard]] nlohmann::ordered_json train_accuracy(const display::StepMeans& means) const;

  std::string role_;
  bool json_;
  bool quiet_;
  bool resumes_;  ///< a run, and its first step is not reported yet
  int64_t epochs_;
  std::mutex mutex_;
  train::StartEvent start_;
  terminal::Ticker ticker_;
  display::StatusSteps since_status_;
  display::StepMeans since_eval_;  ///< since the last evaluation here, or the start of the epoch
  int64_t epoch_ = 0;              ///< epoch of the latest step
};

}  // namespace lockstep::tools
