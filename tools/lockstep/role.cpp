#include "role.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "authority/launcher_lines.h"
#include "base/wait_policy.h"
#include "checkpoint/checkpoint_store.h"
#include "display/fetch_display.h"
#include "display/train_messages.h"
#include "last_words.h"
#include "launch/local_launch.h"
#include "launch/mpi_launch.h"
#include "launch/open_files.h"
#include "launch/supervisor.h"
#include "lockstep/error.h"
#include "role/roles.h"
#include "role/session.h"
#include "role_reporter.h"
#include "settings/machine.h"
#include "signals.h"
#include "terminal/output.h"
#include "terminal/terminal.h"
#include "train/trainer.h"

namespace lockstep::tools {
namespace {

int train_as_member(const settings::Configuration& configuration, const settings::Settings& settings,
                    const role::ClusterProcess& group, RoleReporter& reporter) {
  role::SessionOptions options;
  options.process = &group;
  options.hooks.push_back(&reporter);
  options.interrupt = interrupt_flag();
  if (settings.report != settings::ReportForm::json)
    options.fetch_progress = display::fetch_display(terminal::Terminal::detect(), settings.quiet);
  role::Session session(configuration, options);
  // A restart would not help, and the launcher learns that.
  train::Outcome outcome;
  try {
    outcome = session.run();
  } catch (const NonFiniteError& error) {
    if (settings.report != settings::ReportForm::json) throw;
    reporter.failure(launch::failure_of(error));
    std::fprintf(stderr, "%s\n", error.what());
    return launch::kHopelessCode;
  }
  if (outcome.reason == train::StopReason::not_finite) {
    throw Error("training ended because the loss of a worker became infinite or not a number");
  }
  if (settings.report != settings::ReportForm::json) display::print_result_line(session.settings(), outcome);
  if (outcome.reason != train::StopReason::interrupted) return 0;
  // Another member's interrupt ended the training early here, too.
  const int code = interrupt_exit_code();
  return code != 0 ? code : 128 + SIGINT;
}

cluster::Engine wanted_engine(const settings::Settings& settings) {
  switch (settings.collective) {
    case settings::Engine::automatic:
      return cluster::Engine::automatic;
    case settings::Engine::in_process:
      return cluster::Engine::in_process;
    case settings::Engine::mpi:
      return cluster::Engine::mpi;
    case settings::Engine::gloo:
      return cluster::Engine::gloo;
  }
  return cluster::Engine::automatic;
}

int live(const settings::Configuration& configuration, const settings::Settings& settings,
         const role::ClusterProcess& group, RoleReporter& reporter) {
  switch (group.task.role) {
    case cluster::Role::chief:
    case cluster::Role::worker:
      return train_as_member(configuration, settings, group, reporter);
    case cluster::Role::ps: {
      role::RoleOptions options{group, interrupt_flag(), {}, {}, {}};
      options.on_progress = [&reporter](const ps::Server::Progress& progress) { reporter.server_status(progress); };
      role::run_server(configuration, options);
      break;
    }
    case cluster::Role::evaluator: {
      role::RoleOptions options{group, interrupt_flag(), {}, {}, {&reporter}};
      reporter.state("following");
      role::run_evaluator(configuration, options);
      break;
    }
  }
  reporter.state("done");
  return 0;
}

}  // namespace

int run_role(const settings::Configuration& configuration, const settings::Settings& settings,
             const cluster::FoundCluster& found, const Invocation& invocation) {
  base::ensure_wait_policy(settings::wait_policy(settings), settings.wait_policy != settings::IdleThreads::automatic,
                           invocation.argv);
  catch_interrupts();
  RoleReporter reporter(found.task, settings);
  role::ClusterProcess group{found.spec, found.task, [&reporter](std::string_view level, const std::string& text) {
                               reporter.log(level, text);
                             }};
  if (found.spec.ps.empty()) {
    group.mpi =
        cluster::choose_engine(wanted_engine(settings), found, cluster::process_environment()) == cluster::Engine::mpi;
  }
  const char* const answers = std::getenv(authority::kLauncherVariable);
  if (answers != nullptr && std::string_view(answers) == authority::kLauncherAnswers) {
    group.tell_launcher = [&reporter](const std::string& line) { reporter.tell(line); };
  }
  if (const char* launched = std::getenv(launch::kLaunchedVariable); launched != nullptr) {
    group.launched = std::strtod(launched, nullptr);
  }
  if (settings.report != settings::ReportForm::json) {
    group.resume_command = [&](const std::string& run) {
      return launch::resume_command(cluster::process_environment(), invocation.program, run,
                                    settings.insecure ? "--insecure" : "");
    };
  }
  if (settings.report == settings::ReportForm::json) report_last_words(found.task.str());
  try {
    launch::check_open_files_of(found.spec, found.task);
    return live(configuration, settings, group, reporter);
  } catch (const std::exception& error) {
    launch::RoleFailure failure = launch::failure_of(error);
    failure.saved = checkpoint::newest_step(settings.resume.empty() ? settings.run_dir : settings.resume);
    reporter.failure(failure);
    throw;
  }
}

}  // namespace lockstep::tools
