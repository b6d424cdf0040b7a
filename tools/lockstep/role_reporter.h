// Reports of a role: JSON lines for a launcher (--report json), or text for a role started by hand. The reporter hooks
// into the training and is also its log; it writes at most two status lines per second. `log` may be called by any
// thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "cluster/spec.h"
#include "display/phase_shares.h"
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
  /// Reports the failure to the launcher; for a role started by hand, standard error already has the line.
  void failure(launch::RoleFailure failure);

 private:
  void write(const std::string& line);

  std::string role_;
  bool json_;
  bool quiet_;
  int64_t epochs_;
  std::mutex mutex_;
  train::StartEvent start_;
  terminal::Ticker ticker_;
  double told_at_ = 0;
  uint64_t told_examples_ = 0;
  double waited_ = 0;
  display::PhaseShares phases_;
  double staleness_ = 0;
  uint64_t steps_ = 0;
  uint64_t own_examples_ = 0;
  uint64_t server_version_ = 0;
};

}  // namespace lockstep::tools
