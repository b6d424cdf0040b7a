#include "launch/emulated_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>

#include "base/own_program.h"
#include "launch/emulated_nodes.h"
#include "launch/fault_maker.h"
#include "launch/local_cluster.h"
#include "launch/supervisor.h"
#include "lockstep/error.h"
#include "process/caught_signals.h"
#include "process/child_process.h"
#include "run/run_directory.h"
#include "terminal/text.h"

namespace lockstep::launch {
namespace {

constexpr int kNodeLookMilliseconds = 50;

/// Returns the run's folder. A new one is made here, empty, and passed to the program.
std::string find_folder(const settings::Configuration& configuration, const settings::Settings& settings) {
  if (!settings.resume.empty()) return run::find_run(settings.resume, settings.runs_dir);
  if (!settings.run_dir.empty()) return settings.run_dir;
  const std::string name = settings.name.empty() ? configuration.model(settings.model).name : settings.name;
  return run::RunDirectory::reserve(settings.runs_dir, name);
}

process::Command make_command(const settings::Settings& settings, const Launcher& launcher, const std::string& folder,
                              const EmulatedNodes& nodes) {
  process::Command command;
  command.program = base::own_program();
  for (char** word = launcher.argv; *word != nullptr; ++word) command.argv.emplace_back(*word);
  if (settings.resume.empty() && settings.run_dir.empty()) command.argv.push_back("--run-dir=" + folder);
  if (settings.threads == 0) {
    const int threads = nodes.threads(0, static_cast<size_t>(settings.replicas));
    command.argv.push_back(fmt::format("--threads={}", threads));
  }
  if (settings.wait_policy == settings::IdleThreads::automatic)
    command.argv.emplace_back("--wait-policy=block");  // spinning would use up the quota
  command.own_output = false;
  nodes.put_on_node(command, 0);
  return command;
}

/// Passes signals on; the program on the node decides what to do.
void pass_on_signals(int signals, const process::Child& child) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == sizeof info) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number != SIGTSTP) {
      child.signal(number);
      continue;
    }
    child.signal(SIGSTOP);
    raise(SIGSTOP);
    child.signal(SIGCONT);
  }
}

/// True if a training's settings are in the folder.
bool has_run(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/config.yaml", ignored);
}

/// `others`: the folder belongs to another run, and the program will refuse it; nothing is written there.
process::Ending watch(process::Child& child, int signals, EmulatedNodes& nodes, FaultMaker& faults,
                      const std::string& folder, bool others, const Launcher& launcher) {
  bool kept = false;
  std::optional<process::Ending> ending;
  faults.begin();
  while (!(ending = child.reap())) {
    std::array<pollfd, 2> fds{{{child.end_fd(), POLLIN, 0}, {signals, POLLIN, 0}}};
    (void)poll(fds.data(), fds.size(), kept && faults.empty() ? -1 : kNodeLookMilliseconds);
    pass_on_signals(signals, child);
    if (others) continue;
    // The folder must be empty until the training has begun.
    if (!kept && has_run(folder)) {
      kept = true;
      nodes.write(folder, false);
    }
    if (!kept) continue;
    launcher.events->on_faults(faults.make_due(folder + "/faults.jsonl"));
  }
  if (kept && has_run(folder)) nodes.write(folder, true);  // a failed start removes its folder
  return *ending;
}

}  // namespace

int run_on_emulated_node(const settings::Configuration& configuration, const settings::Settings& settings,
                         const Launcher& launcher) {
  const std::vector<emulate::Fault> wanted = emulate::parse_faults(settings.faults);
  check_faults(wanted, {}, 1);
  find_data(configuration, settings, launcher.fetch_progress);  // the node's network has no way out
  const process::CaughtSignals signals(
      {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGUSR1});  // declared before the nodes, so it outlives them
  EmulatedNodes nodes(settings.emulate, {{"process"}});
  FaultMaker faults(wanted, &nodes.cluster());
  const std::string folder = find_folder(configuration, settings);
  const bool reserved = settings.resume.empty() && settings.run_dir.empty();
  const std::shared_ptr<void> discarding(nullptr, [&](void* /*none*/) {
    if (reserved) (void)run::RunDirectory::discard_if_unused(folder);
  });
  const bool others = settings.resume.empty() && has_run(folder);
  process::Child child(make_command(settings, launcher, folder, nodes));
  const process::Ending ending = watch(child, signals.fd(), nodes, faults, folder, others, launcher);
  if (ending.signalled && ending.number == SIGKILL) {
    const double memory = nodes.cluster().spec(0).memory_bytes;
    const std::string limit =
        memory > 0 ? fmt::format("; its memory is {}", terminal::bytes_text(static_cast<uint64_t>(memory))) : "";
    throw Error(fmt::format("the training on node1 was {}{}", ending.text(), limit));
  }
  return ending.code();
}

}  // namespace lockstep::launch
