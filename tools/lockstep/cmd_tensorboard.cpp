// lockstep tensorboard: starts an installed TensorBoard on runs.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "command.h"
#include "command_line.h"
#include "lockstep/error.h"
#include "observe/tensorboard/event_file.h"
#include "records/run_record.h"
#include "run/run_directory.h"
#include "terminal/output.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

struct TensorboardArguments {
  std::string run;
  std::string runs_dir = "runs";
  std::string host;
  int64_t port = 6006;
};

std::optional<std::string> in_path(const std::string& program) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + program;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

/// Returns the command that starts TensorBoard here: a program, or a module of Python.
std::vector<std::string> find_tensorboard() {
  if (const auto program = in_path("tensorboard")) return {*program};
  const std::string look = "python3 -c 'import importlib.util as u; exit(u.find_spec(\"tensorboard\") is None)'";
  const auto python = in_path("python3");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread yet
  const bool module = python && std::system((look + " 2> /dev/null").c_str()) == 0;
  if (module) return {*python, "-m", "tensorboard.main"};
  throw Error(
      "TensorBoard is not installed; to install it: python3 -m venv ~/tensorboard && ~/tensorboard/bin/pip install "
      "tensorboard 'setuptools<81' && export PATH=$PATH:~/tensorboard/bin");
}

/// Returns the folder of a run, of several runs, or of all runs.
std::string folder_of(const TensorboardArguments& arguments) {
  std::error_code ignored;
  if (arguments.run.empty()) {
    if (!fs::is_directory(arguments.runs_dir, ignored)) {
      throw UsageError(fmt::format("no runs: there is no folder {}", arguments.runs_dir));
    }
    return arguments.runs_dir;
  }
  if (fs::is_directory(arguments.run, ignored)) return arguments.run;
  return run::find_run(arguments.run, arguments.runs_dir);
}

/// Returns the folder of a run's event files; with --summary-dir, a folder of the run's name there.
std::string events_of(const std::string& folder) {
  std::error_code ignored;
  if (observe::has_event_files(folder) || !fs::exists(folder + "/config.yaml", ignored)) return folder;
  const records::RunRecord run = records::read_run(folder);
  const std::string elsewhere = run.setting("summary_dir");
  if (elsewhere.empty()) return folder;
  fs::path place = fs::absolute(folder).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  const std::string events = (elsewhere / place.filename()).string();
  if (observe::has_event_files(events)) return events;
  throw UsageError(fmt::format("neither {} nor its summary-dir {} has event files", folder, events));
}

[[noreturn]] void replace_by(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  terminal::finish_output();
  std::signal(SIGPIPE, SIG_DFL);  // this program ignores it; TensorBoard need not
  std::signal(SIGXFSZ, SIG_DFL);
  ::execv(argv[0], argv.data());
  throw IoError(fmt::format("cannot run {}: {}", command[0], std::generic_category().message(errno)));
}

int run_tensorboard(const TensorboardArguments& arguments) {
  constexpr int64_t kLastPort = 65535;
  if (arguments.port > kLastPort) {
    throw UsageError(fmt::format("--port {}: 0 to {} are allowed (0: any free port)", arguments.port, kLastPort));
  }
  const std::string folder = events_of(folder_of(arguments));
  if (!observe::has_event_files(folder)) {
    throw UsageError(fmt::format("{} has no event files; runs write them unless --summary-every is never", folder));
  }
  std::vector<std::string> command = find_tensorboard();
  for (const std::string& word :
       {std::string("--logdir"), folder, std::string("--port"), std::to_string(arguments.port)}) {
    command.push_back(word);
  }
  if (!arguments.host.empty()) command.insert(command.end(), {"--host", arguments.host});
  replace_by(command);
}

}  // namespace

void add_tensorboard(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("tensorboard", "Show runs in TensorBoard, if it is installed");
  const auto arguments = std::make_shared<TensorboardArguments>();
  app.add_option("RUN", arguments->run, "A run's folder or name, or a folder of runs [all runs]");
  app.add_number("--port", arguments->port, "Port to listen on; 0: any free one [6006]");
  app.add_option("--host", arguments->host, "Address to listen on [this machine only]").type_name("HOST");
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.footer(
      "Examples:\n"
      "  lockstep tensorboard                   all runs side by side\n"
      "  lockstep tensorboard lenet-1           one run with its roles\n"
      "  lockstep tensorboard lenet-1 --port 0");
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return run_tensorboard(*arguments); }; });
}

}  // namespace lockstep::tools
