// lockstep dash: a web page over runs and experiments.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "base/address.h"
#include "base/limits.h"
#include "command.h"
#include "command_line.h"
#include "dash/dash.h"
#include "launch/supervisor.h"
#include "lockstep/error.h"
#include "process/caught_signals.h"
#include "terminal/output.h"

namespace lockstep::tools {
namespace {

constexpr int64_t kLargestPort = 65535;
constexpr uint64_t kOpenFiles = 32;  ///< for some pages at once, each with files of runs

struct DashArguments {
  std::string runs_dir = "runs";
  std::string lab_dir = "lab";
  std::string host = "127.0.0.1";
  std::string token;
  int64_t port = 6007;
};

int run_dash(const DashArguments& arguments) {
  if (arguments.port > kLargestPort) {
    throw UsageError(fmt::format("--port: {} is not a port from 0 to {}", arguments.port, kLargestPort));
  }
  for (const std::string& folder : {arguments.runs_dir, arguments.lab_dir}) {
    std::error_code ignored;
    if (std::filesystem::exists(folder, ignored) && !std::filesystem::is_directory(folder, ignored)) {
      throw UsageError(fmt::format("{} is a file; a folder is needed", folder));
    }
  }
  base::check_open_files(kOpenFiles, "the dashboard");
  const process::CaughtSignals signals({SIGINT, SIGTERM, SIGHUP});
  dash::Options options;
  options.runs_dir = arguments.runs_dir;
  options.lab_dir = arguments.lab_dir;
  options.host = arguments.host;
  options.port = static_cast<int>(arguments.port);
  options.token = arguments.token;
  options.stop = signals.fd();
  if (options.token.empty() && !base::is_loopback(options.host)) options.token = dash::make_token();
  dash::serve(options, [&](const std::string& url) {
    terminal::print("runs in {}, experiments in {}\n{}\nCtrl-C ends it\n", options.runs_dir, options.lab_dir, url);
    terminal::flush_out();
  });
  signalfd_siginfo taken{};  // taken out of the queue, or the signal would end the process once it is unblocked
  while (::read(signals.fd(), &taken, sizeof taken) == sizeof taken) {
  }
  return 0;
}

}  // namespace

void add_dash(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("dash", "Serve a web page over runs and experiments, live while they train");
  const auto arguments = std::make_shared<DashArguments>();
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_option("--lab-dir", arguments->lab_dir, "Folder of the lab's experiments [lab]").type_name("DIR");
  app.add_option("--host", arguments->host, "Address to listen on; any other than loopback needs a token [127.0.0.1]")
      .type_name("HOST");
  app.add_number("--port", arguments->port, "Port to listen on; 0: any free one [6007]");
  app.add_option("--token", arguments->token,
                 "Token that requests must carry [none on loopback, otherwise a new one, which is printed]")
      .type_name("TEXT");
  app.footer(
      "Examples:\n"
      "  lockstep dash                     then open http://127.0.0.1:6007/\n"
      "  lockstep dash --port 0            on any free port\n"
      "  lockstep dash --host 0.0.0.0      for others, with a token in the address that is printed");
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return run_dash(*arguments); }; });
}

}  // namespace lockstep::tools
