// lockstep train: flags from the settings table, a session, a display.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/host.h"
#include "base/wait_policy.h"
#include "checkpoint/checkpoint_store.h"
#include "command.h"
#include "command_line.h"
#include "display/fetch_display.h"
#include "display/launch_display.h"
#include "display/progress.h"
#include "display/train_messages.h"
#include "launch/emulated_process.h"
#include "launch/launch_settings.h"
#include "launch/local_cluster.h"
#include "launch/open_files.h"
#include "launch/role_failure.h"
#include "lockstep/error.h"
#include "role.h"
#include "role/session.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "settings/machine.h"
#include "signals.h"
#include "terminal/output.h"
#include "train_arguments.h"

namespace lockstep::tools {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  lockstep train lenet                                      20 epochs on MNIST\n"
    "  lockstep train lenet --dataset fashion-mnist --epochs 5\n"
    "  lockstep train lr --batch 100 --lr 0.5 --stop-accuracy 0.92\n"
    "  lockstep train lenet --options pool=avg,activation=tanh   the model's own options\n"
    "  lockstep train my-model.yaml --dataset mnist              a model of your own: docs/models.md\n"
    "  lockstep train --config study.yaml --seed 7               settings from a file; flags win\n"
    "  lockstep train lenet --workers 3 --ps 1 --async           three workers and a server: docs/launching.md\n"
    "  lockstep train lenet --workers 3 --strategy allreduce     without a server: docs/allreduce.md\n"
    "  lockstep train lenet --workers 2 --emulate cores=0.5      on nodes of half a core each: docs/emulation.md\n"
    "  lockstep train --resume runs/lenet-1                      resume after Ctrl-C, with the same bits\n"
    "  lockstep train --resume runs/lenet-1 --epochs 30          train a finished run longer";

bool has_ranks() { return cluster::find_ranks(cluster::process_environment()).has_value(); }

/// Returns the settings before anything is made; for a resumed run, its own settings with the changes.
settings::Settings resolve_early(settings::Configuration configuration) {
  if (configuration.given("resume")) {
    const std::string runs = configuration.given_text("runs-dir");
    const std::string run = run::find_run(configuration.given_text("resume"), runs.empty() ? "runs" : runs);
    configuration.resume_from(run + "/config.yaml");
    if (!configuration.given("task") && !has_ranks()) launch::apply_launch_yaml(configuration, run);
  }
  settings::Settings settings = configuration.resolve();
  // Scheduled faults are not repeated after a resume.
  if (configuration.given("resume") && !configuration.given("faults")) settings.faults.clear();
  return settings;
}

/// Returns the number of parameter servers among ranks: the requested one; otherwise none, and all ranks train by
/// all-reduce.
int64_t servers_of_ranks(const settings::Settings& settings, const settings::Configuration& configuration) {
  const bool given = configuration.given("ps");
  if (given && settings.strategy == settings::Strategy::all_reduce && !configuration.given("resume")) {
    throw UsageError(fmt::format("--ps {} applies only to --strategy ps, but --strategy is allreduce", settings.ps));
  }
  return settings.strategy == settings::Strategy::parameter_servers ||
                 (given && settings.strategy == settings::Strategy::automatic)
             ? settings.ps
             : 0;
}

/// Returns the cluster that this process is a member of. A process told to launch a cluster is not a member, whatever
/// TF_CONFIG says.
std::optional<cluster::FoundCluster> find_role(const settings::Settings& settings,
                                               const settings::Configuration& configuration) {
  const bool launcher = (configuration.given("workers") || configuration.given("layout")) && !has_ranks();
  if (launcher && settings.task.empty() && settings.cluster.empty()) return std::nullopt;
  cluster::ClusterRequest request;
  request.cluster = settings.cluster;
  request.task = settings.task;
  // Stored settings of a resumed run say nothing about the role of this process.
  if (configuration.given("layout")) request.layout = settings.layout;
  if (configuration.given("workers")) request.workers = settings.workers;
  request.ps = servers_of_ranks(settings, configuration);
  request.evaluator = settings.evaluator;
  return cluster::find_cluster(request, cluster::process_environment());
}

/// Trains; a failure of the disk or another part of the system says what is saved and how to go on.
train::Outcome run_session(role::Session& session) {
  try {
    return session.run();
  } catch (const IoError& error) {
    launch::RoleFailure failure = launch::failure_of(error);
    failure.output = session.run_dir();
    failure.saved = checkpoint::newest_step(failure.output);
    throw launch::RunError(failure);
  }
}

int run_here(const settings::Configuration& configuration, const settings::Settings& early,
             const Invocation& invocation) {
  base::ensure_wait_policy(settings::wait_policy(early), early.wait_policy != settings::IdleThreads::automatic,
                           invocation.argv);

  const terminal::Terminal terminal = terminal::Terminal::detect();
  const bool quiet = early.quiet;
  display::Progress progress(terminal, settings::value_text(early, "eval-split"));
  role::SessionOptions options;
  if (!quiet) options.hooks.push_back(&progress);
  options.interrupt = interrupt_flag();
  options.fetch_progress = display::fetch_display(terminal, quiet);
  options.log = [&terminal](std::string_view level, const std::string& text) {
    terminal::print_note(terminal, level, text);
  };
  role::Session session(configuration, options);
  catch_interrupts();
  const bool finished = session.finished();
  if (!quiet && !finished) display::print_opening(terminal, session.settings(), session.start_event());

  const train::Outcome outcome = run_session(session);
  if (quiet) {
    display::print_result_line(session.settings(), outcome);
  } else {
    display::print_closing(terminal, session.settings(), outcome, invocation.program);
  }
  return outcome.reason == train::StopReason::interrupted && !outcome.already_finished ? interrupt_exit_code() : 0;
}

/// Returns whether replicas in one process use the cluster setting as well.
bool is_of_replicas(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{"replicas", "strategy", "collective",  "bucket-mb",
                                                    "autotune", "top-k",    "wire",        "reduce",
                                                    "shard",    "patience", "global-batch"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void check_replicas(const settings::Settings& settings) {
  const auto refuse = [&](std::string_view name) {
    throw UsageError(
        fmt::format("{}: {} is not allowed with replicas in one process", name, settings::value_text(settings, name)));
  };
  if (settings.strategy == settings::Strategy::parameter_servers) refuse("strategy");
  if (settings.collective != settings::Engine::automatic && settings.collective != settings::Engine::in_process) {
    refuse("collective");
  }
  if (settings.top_k > 0 && settings.wire != settings::WireElement::f32) {
    throw UsageError(
        fmt::format("top-k: cannot be combined with wire {}; choose one", settings::value_text(settings, "wire")));
  }
}

/// Refuses cluster settings for a single process, which has no use for them: they are a mistake.
void refuse_cluster_settings(const settings::Configuration& configuration, const settings::Settings& settings) {
  const bool replicas = settings.replicas > 1;
  if (replicas) check_replicas(settings);
  if (configuration.given("resume")) return;
  const settings::Settings defaults;
  for (const settings::SettingDef& def : settings::settings_table()) {
    const bool differs = settings::value_text(settings, def) != settings::value_text(defaults, def);
    if (def.group != "Cluster" || !differs || def.name == "report" || def.name == "restarts") continue;
    if (replicas && is_of_replicas(def.name)) continue;
    if (def.name == "emulate" || (def.name == "faults" && !settings.emulate.empty())) continue;
    if (def.name == "insecure" && !settings.metrics.empty()) continue;
    throw UsageError(fmt::format("--{} {} applies only to clusters; add --workers N, --layout or --cluster FILE",
                                 def.name, settings::value_text(settings, def)));
  }
}

/// Says where a model from elsewhere is from, and what it may have lost there.
void introduce_onnx(const settings::Configuration& configuration, const settings::Settings& settings) {
  if (settings.quiet || configuration.given("resume") || !settings.model.ends_with(".onnx")) return;
  terminal::print("{}: {}\n", settings.model, configuration.model(settings.model).description);
}

int run_train(const TrainArguments& arguments, const Invocation& invocation) {
  settings::Configuration configuration = make_configuration(arguments, invocation.models);
  const settings::Settings settings = resolve_early(configuration);
  // A process is a role even if the settings shared by all roles name `workers`.
  if (const auto found = find_role(settings, configuration)) {
    if (configuration.given("emulate")) {
      throw UsageError("--emulate makes its own cluster; it is not allowed for a role of another cluster");
    }
    // Stored with the run, so that ranks that resume it get the same roles.
    if (settings.strategy == settings::Strategy::automatic)
      configuration.set("strategy", found->spec.ps.empty() ? "allreduce" : "ps");
    return run_role(configuration, settings, *found, invocation);
  }
  introduce_onnx(configuration, settings);
  display::LaunchDisplay display(terminal::Terminal::detect(), settings);
  const launch::Launcher launcher{invocation.argv, &display,
                                  display::fetch_display(terminal::Terminal::detect(), settings.quiet), display.tick()};
  if (settings.workers > 0 || !settings.layout.empty()) {
    const launch::ClusterEnd end = launch::run_local_cluster(configuration, settings, launcher);
    display.close(end, invocation.program);
    return end.code;
  }
  refuse_cluster_settings(configuration, settings);
  if (!settings.emulate.empty() && !base::own_node())
    return launch::run_on_emulated_node(configuration, settings, launcher);
  launch::check_open_files_alone();
  return run_here(configuration, settings, invocation);
}

}  // namespace

void add_train(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("train", "Train a model, or resume a run");
  const auto arguments = std::make_shared<TrainArguments>();
  add_train_arguments(app, arguments);
  app.footer(kTrainExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_train(*arguments, invocation); };
  });
}

}  // namespace lockstep::tools
