// lockstep launch: starts the roles of a cluster file over ssh. Also the hidden command that runs on the other hosts.
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "command.h"
#include "command_line.h"
#include "display/launch_display.h"
#include "emulate/faults.h"
#include "launch/cluster_run.h"
#include "launch/collect.h"
#include "launch/fault_maker.h"
#include "launch/hand_out.h"
#include "launch/launch_settings.h"
#include "launch/open_files.h"
#include "launch/ssh_launch.h"
#include "launch/under_launcher.h"
#include "lockstep/error.h"
#include "role/who_decides.h"
#include "run/run_directory.h"
#include "terminal/output.h"
#include "terminal/text.h"
#include "train_arguments.h"

namespace lockstep::tools {
namespace {

constexpr const char* kLaunchExamples =
    "Examples:\n"
    "  lockstep launch cluster.yaml -- train lenet --async\n"
    "  lockstep launch --program /opt/lockstep/bin/lockstep cluster.yaml -- train lr --insecure\n"
    "  lockstep launch cluster.yaml -- train --resume runs/lenet-1\n"
    "\n"
    "`lockstep train --help` lists the settings that most people need, `lockstep train --help-all` all of them.";

struct LaunchArguments {
  std::string file;
  std::string ssh = "ssh";
  std::string program;
  bool remove = false;
  std::vector<std::string> words;
};

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Parses the words after `--` as `train` would.
TrainArguments parse_train(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "train") {
    throw UsageError("launch: give the command for the hosts after --: train MODEL and its settings");
  }
  const auto arguments = std::make_shared<TrainArguments>();
  CommandLine line("lockstep train", "Train a model, or resume a run");
  add_train_arguments(line.root(), arguments);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  if (line.parse(static_cast<int>(argv.size()), argv.data())) throw UsageError("launch: --help goes before the --");
  return *arguments;
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}", device());
}

/// Returns the name of the run's folder on the hosts: runs of the same name from other launchers get other folders.
std::string remote_folder(const std::string& run_dir, bool resume) {
  const std::string path = run_dir + "/launch-id";
  if (resume) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw UsageError(fmt::format("run {} was not started by launch; `lockstep train --resume` resumes it", run_dir));
    }
    const std::vector<uint8_t> bytes = base::read_file(path, 1000);
    const std::string text(bytes.begin(), bytes.end());
    return text.substr(0, text.find('\n'));
  }
  const std::string name = std::filesystem::path(run_dir).filename().string();
  const std::string folder = fmt::format("runs/{}-{}", name, random_id());
  base::write_whole_file(path, folder + "\n");
  return folder;
}

settings::Settings resolve(settings::Configuration configuration, const std::string& resumed) {
  if (!resumed.empty()) configuration.resume_from(resumed + "/config.yaml");
  return configuration.resolve();
}

/// Returns the scheduled faults; a resumed run does not repeat earlier ones.
std::vector<emulate::Fault> wanted_faults(const settings::Configuration& configuration, const cluster::Spec& spec) {
  std::vector<std::string> roles;
  for (const cluster::Task& task : spec.tasks()) roles.push_back(task.str());
  std::vector<emulate::Fault> faults = emulate::parse_faults(configuration.given_text("faults"));
  launch::check_faults(faults, roles, 0);
  return faults;
}

/// Returns the end of a run that has nothing left to train. `remove`: its folders on the hosts are collected and
/// removed.
launch::ClusterEnd end_of_finished(const launch::SshJob& job, const std::string& run_dir, bool remove) {
  const std::string missing = remove ? launch::collect(job, run_dir, true) : "";
  return {.run_dir = run_dir,
          .uncollected = missing.empty() ? "" : "cannot collect the run's files: " + missing,
          .already_finished = true};
}

int run_launch(const LaunchArguments& arguments, const Invocation& invocation) {
  const settings::Configuration configuration = make_configuration(parse_train(arguments.words), invocation.models);
  for (const char* name : {"workers", "layout", "cluster", "task", "cpu-quota", "emulate"}) {
    if (!configuration.given(name)) continue;
    throw UsageError(fmt::format("--{}: the cluster file already assigns the roles to hosts; leave it out", name));
  }
  launch::SshJob job;
  job.cluster = cluster::load_cluster_file(arguments.file);
  launch::check_open_files_of_job(job.cluster.spec, false);
  job.ssh = split(arguments.ssh);
  if (job.ssh.empty()) throw UsageError("--ssh: '' is not a command");
  job.program = arguments.program.empty() ? invocation.program : arguments.program;
  job.words = launch::role_words(configuration);
  job.resume = configuration.given("resume");
  for (const char* name : {"threads", "wait-policy"}) {
    if (configuration.given(name)) job.words.push_back(fmt::format("--{}={}", name, configuration.given_text(name)));
  }

  const std::string runs = configuration.given_text("runs-dir").empty() ? "runs" : configuration.given_text("runs-dir");
  const std::string resumed = job.resume ? run::find_run(configuration.given_text("resume"), runs) : "";
  const settings::Settings settings = resolve(configuration, resumed);
  launch::ScheduledFaults faults(wanted_faults(configuration, job.cluster.spec), job.cluster.spec.tasks().size(),
                                 nullptr);
  run::RunDirectory directory = job.resume
                                    ? run::RunDirectory::open(resumed, runs)
                                    : run::RunDirectory::create_for(settings, configuration.model(settings.model).name);
  job.run_dir = remote_folder(directory.path(), job.resume);
  display::LaunchDisplay display(terminal::Terminal::detect(), settings);
  if (job.resume && launch::has_finished(settings, directory)) {
    display.close(end_of_finished(job, directory.path(), arguments.remove), invocation.program);
    return 0;
  }
  if (!job.resume) base::write_whole_file(directory.config_file(), to_yaml(settings));
  if (!settings.quiet) {
    terminal::print("{} on {}: {} on {}\nrun folder: {}\n\n", settings.model, settings.dataset,
                    terminal::counted(job.cluster.spec.tasks().size(), "role"),
                    terminal::counted(job.cluster.nodes.size(), "host"), directory.path());
    terminal::flush_out();
  }

  if (job.resume) launch::hand_out(job, directory.path());
  launch::ClusterRun run;
  run.settings = &settings;
  run.run_dir = directory.path();
  run.tasks = job.cluster.spec.tasks();
  job.registers = role::launcher_decides(settings, job.cluster.spec);
  run.roles = launch::ssh_roles(job);
  if (job.registers) run.registered = &job.cluster.spec;
  run.also = [&](const launch::RoleEvent& event) { faults.on_event(event); };
  run.signals = [&](launch::SignalRole signal) { faults.signal_by(std::move(signal)); };
  if (!faults.empty()) run.faults = [&] { return faults.make_due(directory.path() + "/faults.jsonl"); };
  run.discard = [&] { return directory.discard_if_unused(); };
  run.collect = [&] {
    std::string missing = launch::collect(job, directory.path(), arguments.remove);
    if (!missing.empty()) directory.keep();  // its `launch-id` names the folders on the hosts
    return missing;
  };
  display.start(run.tasks);
  run.events = &display;
  run.tick = display.tick();
  const launch::ClusterEnd end = launch::run_cluster(run);
  display.close(end, invocation.program);
  return end.code;
}

void add_under_launcher(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("under-launcher", "Run a command for a launcher on another host");
  app.hide();
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto options = std::make_shared<launch::UnderLauncherOptions>();
  app.add_option("COMMAND", *words, "").required();
  app.add_flag("--reap", options->reap, "");
  app.callback([words, options, &invocation] {
    invocation.run = [words, options] { return launch::run_under_launcher(*words, *options); };
  });
}

}  // namespace

void add_launch(const Command& program, Invocation& invocation) {
  add_under_launcher(program, invocation);
  const Command app = program.add_command("launch", "Train on the hosts of a cluster file, over ssh");
  const auto arguments = std::make_shared<LaunchArguments>();
  app.add_option("FILE", arguments->file, "Cluster file with the hosts and their roles (docs/cluster-spec.md)")
      .required();
  app.add_option("COMMAND", arguments->words, "Command after --: train MODEL and its settings").required();
  app.add_option("--ssh", arguments->ssh, "The ssh command, with its options [ssh]").type_name("COMMAND");
  app.add_option("--program", arguments->program, "Name or path of the program on the hosts [this program's name]")
      .type_name("PATH");
  app.add_flag("--remove", arguments->remove, "Remove the run's folders on the hosts once their files are collected");
  app.footer(kLaunchExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_launch(*arguments, invocation); };
  });
}

}  // namespace lockstep::tools
