#include "role.h"

#include <csignal>
#include <cstdio>
#include <optional>

#include "base/wait_policy.h"
#include "closing.h"
#include "cluster/mpi_launch.h"
#include "cluster/open_files.h"
#include "cluster/supervisor.h"
#include "fetch_display.h"
#include "last_words.h"
#include "lockstep/error.h"
#include "output.h"
#include "role_reporter.h"
#include "signals.h"
#include "terminal.h"
#include "train/checkpoint_store.h"
#include "train/machine.h"
#include "train/roles.h"
#include "train/session.h"
#include "train/trainer.h"

namespace lockstep::tools {
namespace {

int train_as_member(const train::Configuration& configuration, const train::Settings& settings,
                    const train::ClusterProcess& group, RoleReporter& reporter) {
  train::SessionOptions options;
  options.group = &group;
  options.hooks.push_back(&reporter);
  options.interrupt = interrupt_flag();
  if (settings.report != "json") options.fetch_progress = fetch_display(Terminal::detect(), settings.quiet);
  train::Session session(configuration, options);
  // Starting it again would not help, and the launcher is told so.
  train::Outcome outcome;
  try {
    outcome = session.run();
  } catch (const train::NonFiniteError& error) {
    if (settings.report != "json") throw;
    std::fprintf(stderr, "%s\n", error.what());
    return cluster::kHopelessCode;
  }
  if (outcome.reason == train::StopReason::not_finite) {
    throw Error("training ended because the loss of a worker became infinite or not a number");
  }
  if (settings.report != "json") print_result_line(session.settings(), outcome);
  if (outcome.reason != train::StopReason::interrupted) return 0;
  // Another member's interrupt ended all: training has not come to its end here either.
  const int code = interrupt_exit_code();
  return code != 0 ? code : 128 + SIGINT;
}

/// The step of the newest checkpoint in the run's folder, as far as this role can see it.
std::optional<uint64_t> newest_checkpoint(const train::Settings& settings) {
  const std::string& run = settings.resume.empty() ? settings.run_dir : settings.resume;
  try {
    const auto files = train::CheckpointStore(run + "/checkpoints").list();
    if (!files.empty()) return files.back().step;
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): a folder that cannot be read shows none
  }
  return std::nullopt;
}

int live(const train::Configuration& configuration, const train::Settings& settings, const train::ClusterProcess& group,
         RoleReporter& reporter) {
  switch (group.task.role) {
    case cluster::Role::chief:
    case cluster::Role::worker:
      return train_as_member(configuration, settings, group, reporter);
    case cluster::Role::ps: {
      train::RoleOptions options{group, interrupt_flag(), {}, {}, {}};
      options.on_progress = [&reporter](const ps::Server::Progress& progress) { reporter.server_status(progress); };
      train::run_server(configuration, options);
      break;
    }
    case cluster::Role::evaluator: {
      train::RoleOptions options{group, interrupt_flag(), {}, {}, {&reporter}};
      reporter.state("following");
      train::run_evaluator(configuration, options);
      break;
    }
  }
  reporter.state("done");
  return 0;
}

}  // namespace

int run_role(const train::Configuration& configuration, const train::Settings& settings,
             const cluster::FoundCluster& found, const Invocation& invocation) {
  base::ensure_wait_policy(train::wait_policy(settings), settings.wait_policy != "auto", invocation.argv);
  catch_interrupts();
  RoleReporter reporter(found.task, settings);
  train::ClusterProcess group{found.spec, found.task, [&reporter](std::string_view level, const std::string& text) {
                                reporter.log(level, text);
                              }};
  if (found.spec.ps.empty()) {
    group.mpi = cluster::choose_engine(settings.collective, found, cluster::process_environment()) == "mpi";
  }
  if (settings.report != "json") {
    group.resume_command = [&](const std::string& run) {
      return cluster::resume_command(cluster::process_environment(), invocation.program, run,
                                     settings.insecure ? "--insecure" : "");
    };
  }
  if (settings.report == "json") report_last_words(found.task.str());
  try {
    cluster::check_open_files_of(found.spec, found.task);
    return live(configuration, settings, group, reporter);
  } catch (const std::exception& error) {
    cluster::RoleFailure failure = cluster::failure_of(error);
    failure.saved = newest_checkpoint(settings);
    reporter.failure(failure);
    throw;
  }
}

}  // namespace lockstep::tools
