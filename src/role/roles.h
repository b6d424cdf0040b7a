// The roles of a cluster that do not train: a parameter server, and the evaluator, which follows the checkpoints. Each
// function is the whole life of such a process. (Workers and the chief are Sessions with a ClusterProcess.)
#pragma once

#include <atomic>
#include <functional>

#include "data/fetch.h"
#include "lockstep/train_events.h"
#include "ps/server.h"
#include "role/ps_member.h"
#include "settings/configuration.h"

namespace lockstep::role {

struct RoleOptions {
  ClusterProcess process;
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed
  data::FetchCallback fetch_progress = {};
  std::function<void(const ps::Server::Progress&)> on_progress;  ///< for a server; called twice a second
  std::vector<train::Hooks*> hooks;                              ///< for the evaluator; only on_eval is called
};

/// Serves until training has ended. Throws Error if it gave up.
void run_server(settings::Configuration configuration, const RoleOptions& options);

/// Evaluates each checkpoint until training has ended; evals.csv lies in its folder.
void run_evaluator(settings::Configuration configuration, const RoleOptions& options);

}  // namespace lockstep::role
