// lockstep plan: what clusters would give.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/host.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "command.h"
#include "command_line.h"
#include "launch/ssh_launch.h"
#include "lockstep/error.h"
#include "plan/output.h"
#include "plan/plan.h"
#include "plan_arguments.h"
#include "plan_display.h"
#include "profile/measure.h"
#include "records/fit.h"
#include "run_choice.h"
#include "settings/configuration.h"
#include "settings/machine.h"
#include "terminal/output.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

bool is_run(const PlanArguments& arguments) {
  std::error_code ignored;
  return fs::exists(arguments.subject + "/config.yaml", ignored) ||
         fs::exists(arguments.runs_dir + "/" + arguments.subject + "/config.yaml", ignored);
}

std::string text_of_file(const std::string& path) {
  constexpr uint64_t kLargest = uint64_t{64} << 20;
  const std::vector<uint8_t> bytes = base::read_file(path, kLargest);
  return {bytes.begin(), bytes.end()};
}

plan::Basis basis_of_run(const PlanArguments& arguments) {
  const records::RunRecord run = choose_run(arguments.subject, arguments.runs_dir);
  const records::Fit fit = records::fit(run);
  if (!fit.there()) throw UsageError(fmt::format("plan: {} is no basis for a plan: {}", run.name, fit.missing));
  plan::Basis basis = plan::basis_of(run, fit);
  if (arguments.profile.empty()) return basis;
  const plan::Profile profile = plan::parse_profile(text_of_file(arguments.profile), arguments.profile);
  const plan::ModelProfile* model = profile.model(basis.model);
  if (model == nullptr) {
    throw UsageError(fmt::format("plan: {} has no model '{}'; `lockstep profile {}` measures it", arguments.profile,
                                 basis.model, launch::shell_word(arguments.subject)));
  }
  plan::add_growth(*model, basis);
  return basis;
}

/// Uses a profile file if one is named or there, and otherwise measures the model now.
plan::Basis basis_of_model(const PlanArguments& arguments, const plan::Choices& choices,
                           std::span<const nn::ModelDef> models) {
  const settings::Configuration configuration(models);
  const nn::ModelDef& model = configuration.model(arguments.subject);
  const int threads = static_cast<int>(base::available_cores());
  std::error_code ignored;
  const std::string file = arguments.profile.empty() ? plan::kProfileFile : arguments.profile;
  plan::Profile profile;
  std::string note;
  if (!arguments.profile.empty() || fs::exists(file, ignored)) {
    profile = plan::parse_profile(text_of_file(file), file);
    note = plan::note_of_other_machine(profile, file, {base::host_name(), settings::active_isa(), threads});
    // What is measured now does not go with what another machine measured.
    if (arguments.profile.empty() && !note.empty() && profile.model(model.name) == nullptr) {
      profile = {};
      note.clear();
    }
  }
  if (profile.costs.message == 0 || profile.host.empty()) {
    profile.cores = threads;
    profile::measure_machine(profile, 2);
  }
  const plan::ModelProfile* known = profile.model(model.name);
  if (known == nullptr) {
    if (!arguments.profile.empty()) {
      throw UsageError(
          fmt::format("plan: {} has no model '{}'; `lockstep profile {}` measures it", file, model.name, model.name));
    }
    std::vector<int64_t> batches{1, 8, model.defaults.batch};
    for (const double batch : choices.batches) batches.push_back(static_cast<int64_t>(batch));
    std::sort(batches.begin(), batches.end());
    batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
    profile.models.push_back(
        profile::measure_model({.model = &model, .batches = batches, .threads = {threads}, .seconds = 4}));
    known = &profile.models.back();
  }
  plan::Basis basis = plan::basis_of(profile, *known, threads);
  if (!note.empty()) basis.notes.push_back(std::move(note));
  basis.dataset = model.defaults.dataset;
  basis.batch = static_cast<double>(model.defaults.batch);
  basis.epochs = static_cast<double>(model.defaults.epochs);
  if (model.defaults.dataset == "mnist") basis.epoch_examples = 60'000;
  return basis;
}

/// Adds recorded runs of the same model and data that reached the goal.
void add_recorded_runs(const std::string& runs_dir, const plan::Basis& basis, plan::Goal& goal) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_dir, ignored)) {
    if (!fs::exists(entry.path() / "config.yaml", ignored)) continue;
    const records::RunRecord run = records::read_run(entry.path().string());
    if (run.model() == basis.model && run.dataset() == basis.dataset) plan::add_run(run, goal);
  }
}

void write_text(const std::string& path, const std::string& text, const char* what) {
  base::write_whole_file(path, text);
  terminal::print_note(terminal::Terminal::detect(), "note", fmt::format("{} is in {}", what, path));
}

int run_plan(const PlanArguments& arguments, std::span<const nn::ModelDef> models) {
  plan::Choices choices = choices_of(arguments);
  plan::check(choices);
  const plan::Basis basis = is_run(arguments) ? basis_of_run(arguments) : basis_of_model(arguments, choices, models);
  if (choices.goal) add_recorded_runs(arguments.runs_dir, basis, *choices.goal);
  const plan::Plan plan = plan::make_plan(basis, choices);
  if (arguments.json) {
    terminal::write_out(plan::to_json(plan));
  } else {
    terminal::write_out(plan_text(terminal::Terminal::detect(), plan, terminal::Terminal::width()));
  }
  if (!arguments.out.empty()) write_text(arguments.out, plan::html(plan), "the page");
  if (!arguments.yaml.empty())
    write_text(arguments.yaml, plan::experiment_yaml(plan, base::available_cores()), "the experiment");
  if (!arguments.trace.empty()) {
    write_text(arguments.trace, plan::trace_json(plan.rows[plan.fastest.value_or(plan.rows.size() - 1)]),
               plan.fastest ? "the trace of the fastest choice" : "the trace of the last choice, as none fits");
  }
  return 0;
}

}  // namespace

void add_plan(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("plan", "Predict what a cluster would give: speed, cost, and what limits it");
  const auto arguments = std::make_shared<PlanArguments>();
  app.add_option("RUN|MODEL", arguments->subject, "A recorded run, or a model, which is measured now").required();
  app.add_option("--nodes", arguments->nodes, "Numbers of nodes, servers included [1,2,4,8]").type_name("N,N");
  app.add_option("--rate", arguments->rate, "Rates of their links, such as 1gbit,10gbit [the run's, or no limit]")
      .type_name("RATE,RATE");
  app.add_option("--delay", arguments->delay, "Delays of their links, one way, such as 0.1ms [the run's, or none]")
      .type_name("TIME,TIME");
  app.add_option("--strategy", arguments->strategy, "How gradients are exchanged [ps,allreduce]")
      .type_name("ps,allreduce");
  app.add_flag("--sync", arguments->sync, "Parameter servers: synchronous updates [the default]");
  app.add_flag("--async", arguments->async, "Parameter servers: asynchronous updates; with --sync both");
  app.add_option("--batch", arguments->batch, "Batches of a worker [the run's or model's]").type_name("N,N");
  app.add_option("--ps", arguments->ps, "Numbers of parameter servers, each on a node of its own [1]").type_name("N,N");
  app.add_number("--backups", arguments->backups, "Sync: gradients of each update that are not waited for [0]");
  app.add_option(
         "--node", arguments->node,
         "What a node has: cores=8,memory=16GB,speed=1.2; of a single one: node2.cores=4; machine=2 if a machine of 2 "
         "cores emulates them all [as here]")
      .type_name("NODE");
  app.add_option("--cost", arguments->cost, "Price of a node's hour: adds costs").type_name("X/h");
  app.add_option("--epochs", arguments->epochs, "Epochs that time and cost are for [the run's or model's]")
      .type_name("N");
  app.add_option("--until", arguments->until,
                 "Time and cost to a loss or accuracy, from recorded runs of several global batches")
      .type_name("accuracy=X|loss=X");
  app.add_option("--profile", arguments->profile,
                 "Profile of this machine [lockstep-profile.json, if it is there]; for a run: how computing grows with "
                 "the batch [as its evaluations show]")
      .type_name("FILE");
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_option("--out", arguments->out, "Also write a page with table and charts").type_name("FILE.html");
  app.add_option("--trace", arguments->trace, "Also write a trace of predicted steps for Perfetto").type_name("FILE");
  app.add_option("--yaml", arguments->yaml, "Also write the experiment that checks the plan").type_name("FILE");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "Examples:\n"
      "  lockstep plan lenet-1 --nodes 1,2,4,8 --rate 1gbit,10gbit   from a recorded run\n"
      "  lockstep plan alexnet --nodes 2,4,8,16 --node cores=8 --cost 0.5/h --out plan.html");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_plan(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
