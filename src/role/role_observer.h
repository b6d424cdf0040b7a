// Observers of the roles that do not train: a parameter server and the evaluator. They observe as Observation does;
// each also leaves a summary.json in its folder, however the role ends.
#pragma once

#include <atomic>
#include <limits>

#include "lockstep/train_events.h"
#include "ps/server.h"
#include "run/observation.h"
#include "run/server_phases.h"

namespace lockstep::role {

class ServerObserver {
 public:
  /// Borrows the server.
  ServerObserver(const settings::Settings& settings, run::ObservedRole role, const ps::Server& server);
  ~ServerObserver();
  ServerObserver(const ServerObserver&) = delete;
  ServerObserver& operator=(const ServerObserver&) = delete;

  /// Takes the server's progress; called now and then.
  void look(const ps::Server::Progress& progress);

 private:
  [[nodiscard]] std::vector<observe::Metric> figures() const;
  [[nodiscard]] run::ServerTotals totals(const ps::Server::Progress& progress,
                                         const std::vector<base::DurationRecord>& stages) const;

  const ps::Server& server_;
  train::RunClock clock_;
  run::Observation observation_;
  run::ServerPhases phases_;
};

class EvaluatorObserver {
 public:
  EvaluatorObserver(const settings::Settings& settings, run::ObservedRole role);
  ~EvaluatorObserver();
  EvaluatorObserver(const EvaluatorObserver&) = delete;
  EvaluatorObserver& operator=(const EvaluatorObserver&) = delete;

  void on_eval(const train::EvalEvent& event);

 private:
  [[nodiscard]] std::vector<observe::Metric> figures() const;

  train::RunClock clock_;
  std::atomic<uint64_t> evaluations_ = 0;
  std::atomic<uint64_t> step_ = 0;
  std::atomic<double> loss_ = std::numeric_limits<double>::quiet_NaN();
  std::atomic<double> accuracy_ = std::numeric_limits<double>::quiet_NaN();
  run::Observation observation_;  ///< last member, because its threads use those above
};

}  // namespace lockstep::role
