// lockstep profile: measures this machine for plans.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/parallel.h"
#include "command.h"
#include "command_line.h"
#include "launch/ssh_launch.h"
#include "plan/profile.h"
#include "plan_arguments.h"
#include "profile/measure.h"
#include "records/format.h"
#include "records/run_record.h"
#include "run_choice.h"
#include "settings/configuration.h"
#include "terminal/output.h"
#include "terminal/table.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunsDir = "runs";

struct ProfileArguments {
  std::vector<std::string> models;
  std::string batch = "1,8,32,128";
  std::string threads;
  std::string out = plan::kProfileFile;
  int64_t seconds = 20;
};

std::vector<int> threads_of(const ProfileArguments& arguments) {
  const auto cores = static_cast<int>(base::available_cores());
  if (arguments.threads.empty()) return cores > 1 ? std::vector<int>{1, cores} : std::vector<int>{1};
  std::vector<int> threads;
  for (const int64_t number : whole_numbers("--threads", arguments.threads, 1, 16 * int64_t{cores})) {
    threads.push_back(static_cast<int>(number));
  }
  return threads;
}

/// Returns what to measure for a model, or for the model of a recorded run: with its options, for data of its size.
profile::ComputeRequest request_of(const std::string& subject, const settings::Configuration& configuration) {
  std::error_code ignored;
  const std::string named = std::string(kRunsDir) + "/" + subject;
  const bool recorded = fs::exists(subject + "/config.yaml", ignored) || fs::exists(named + "/config.yaml", ignored);
  if (!recorded) return {.model = &configuration.model(subject)};
  const records::RunRecord run = choose_run(subject, kRunsDir);
  profile::ComputeRequest request{.model = &configuration.model(run.model())};
  for (const auto& [key, value] : run.settings) {
    constexpr std::string_view kOption = "options.";
    if (key.starts_with(kOption)) request.options[key.substr(kOption.size())] = value;
  }
  const double side = run.number_setting("image_size");
  if (side > 0 && side < 1e5) {
    const auto pixels = static_cast<int64_t>(side);
    request.image = Shape{request.model->image[0], pixels, pixels};
  }
  const double classes = run.number_setting("classes");
  if (classes > 0 && classes < 1e9) request.classes = static_cast<int64_t>(classes);
  return request;
}

std::string profile_text(const terminal::Terminal& terminal, const plan::Profile& profile) {
  constexpr auto kRight = terminal::Table::Align::right;
  std::string text = fmt::format(
      "{}: {} core{}, memory {}, loopback {}\na message costs {} of a core at each end, a megabyte {}; waking up takes "
      "{}\n\n",
      profile.host, profile.cores, profile.cores == 1 ? "" : "s", records::speed_text(profile.memory_rate),
      records::speed_text(profile.link_rate), records::time_text(profile.costs.message),
      records::time_text(profile.costs.byte * 1e6), records::time_text(profile.costs.wake));
  terminal::Table table({{"model"},
                         {"batch", kRight},
                         {"threads", kRight},
                         {"forward", kRight},
                         {"backward", kRight},
                         {"optimizer", kRight},
                         {"examples/s", kRight}});
  for (const plan::ModelProfile& model : profile.models) {
    for (const plan::ComputePoint& point : model.points) {
      const double step = point.forward + point.backward + point.optimizer;
      table.add({model.model, fmt::format("{}", point.batch), fmt::format("{}", point.threads),
                 records::time_text(point.forward), records::time_text(point.backward),
                 records::time_text(point.optimizer),
                 records::count_text(static_cast<double>(point.batch) / std::max(step, 1e-12))});
    }
  }
  return text + table.text(terminal);
}

int run_profile(const ProfileArguments& arguments, std::span<const nn::ModelDef> models) {
  const settings::Configuration configuration(models);
  const std::vector<std::string> names =
      arguments.models.empty() ? std::vector<std::string>{"lr", "lenet"} : arguments.models;
  std::vector<profile::ComputeRequest> requests;
  for (const std::string& name : names) requests.push_back(request_of(name, configuration));
  const std::vector<int64_t> batches = whole_numbers("--batch", arguments.batch, 1, 1'000'000);
  const std::vector<int> threads = threads_of(arguments);
  const double seconds = static_cast<double>(arguments.seconds) / static_cast<double>(requests.size() + 1);
  plan::Profile profile;
  profile.cores = static_cast<int>(base::available_cores());
  profile::measure_machine(profile, std::min(seconds, 5.0));
  for (profile::ComputeRequest& request : requests) {
    request.batches = batches;
    request.threads = threads;
    request.seconds = seconds;
    profile.models.push_back(profile::measure_model(request));
  }
  base::write_whole_file(arguments.out, plan::to_json(profile));
  const terminal::Terminal terminal = terminal::Terminal::detect();
  terminal::write_out(profile_text(terminal, profile));
  terminal::print(
      "\nwritten to {}; `lockstep plan {}{}` reads it\n", arguments.out, launch::shell_word(names.front()),
      requests.front().model->name == names.front() ? "" : " --profile " + launch::shell_word(arguments.out));
  return 0;
}

}  // namespace

void add_profile(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("profile", "Measure this machine for plans: computing, memory, messages");
  const auto arguments = std::make_shared<ProfileArguments>();
  app.add_option("MODEL|RUN", arguments->models,
                 "Models to measure, or runs: their model, with its options, for data of that size [lr lenet]");
  app.add_option("--batch", arguments->batch, "Batches [1,8,32,128]").type_name("N,N");
  app.add_option("--threads", arguments->threads, "Numbers of threads [1 and one per core]").type_name("N,N");
  app.add_number("--seconds", arguments->seconds, "Seconds to measure, about [20]", 1);
  app.add_option("--out", arguments->out, "File to write [lockstep-profile.json]").type_name("FILE");
  app.footer(
      "Examples:\n"
      "  lockstep profile\n"
      "  lockstep profile alexnet --batch 8,32 --threads 1,2,4 --out here.json\n"
      "  lockstep profile lenet-1 --batch 16,32,64   the model of a recorded run, for `lockstep plan lenet-1 "
      "--profile`");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_profile(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
