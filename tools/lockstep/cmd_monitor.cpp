// lockstep monitor: runs any program and records what it and this machine use.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "command_line.h"
#include "display/monitor_table.h"
#include "launch/supervisor.h"
#include "lockstep/error.h"
#include "observe/monitor/resource_monitor.h"
#include "process/caught_signals.h"
#include "process/child_process.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

constexpr const char* kMonitorExamples =
    "Examples:\n"
    "  lockstep monitor -- python3 train.py --epochs 3\n"
    "  lockstep monitor --every 0.1 --csv usage.csv -- make -j8";

struct MonitorArguments {
  std::string every = "0.5";
  std::string csv;
  bool quiet = false;
  std::vector<std::string> words;
};

double parse_every(const std::string& text) {
  size_t used = 0;
  double seconds = 0;
  try {
    seconds = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  constexpr double kLeast = 0.01;
  constexpr double kMost = 3600;
  if (used == 0 || used != text.size() || !(seconds >= kLeast && seconds <= kMost)) {
    throw UsageError(fmt::format("--every: '{}' is not a number of seconds from {:g} to {:g}", text, kLeast, kMost));
  }
  return seconds;
}

/// Returns the words after `--`, as typed.
std::vector<std::string> command_words(char** argv) {
  while (*argv != nullptr && std::strcmp(*argv, "--") != 0) ++argv;
  std::vector<std::string> words;
  if (*argv != nullptr) {
    while (*++argv != nullptr) words.emplace_back(*argv);
  }
  if (words.empty()) throw UsageError("monitor: give the command to run after --: `lockstep monitor -- COMMAND`");
  return words;
}

std::string csv_file(const std::string& given, const std::string& program) {
  if (!given.empty()) {
    std::error_code ignored;
    if (!std::filesystem::exists(given, ignored)) return given;
    throw UsageError(fmt::format("--csv: '{}' already exists; give the name of a new file", given));
  }
  const std::string name = std::filesystem::path(program).filename().string();
  for (int number = 1;; ++number) {
    const std::string path = fmt::format("monitor-{}-{}.csv", name, number);
    if (!std::filesystem::exists(path)) return path;
  }
}

/// Passes a signal to the program if it was sent to this process alone; a key of the terminal signals both.
void pass_on(int signals, const process::Child& child) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_code != SI_KERNEL) child.signal(static_cast<int>(info.ssi_signo));
  }
}

void wait_for_end(const process::Child& child, int signals) {
  for (;;) {
    std::vector<pollfd> fds{{child.end_fd(), POLLIN, 0}, {signals, POLLIN, 0}};
    poll(fds.data(), fds.size(), -1);
    if (fds[1].revents != 0) pass_on(signals, child);
    if (fds[0].revents != 0) return;
  }
}

int run_monitor(const MonitorArguments& arguments, char** argv) {
  const std::vector<std::string> words = command_words(argv);
  observe::MonitorOptions options;
  options.every = std::chrono::duration<double>(parse_every(arguments.every));
  options.csv_file = csv_file(arguments.csv, words.front());
  options.descendants = true;
  options.warn = [](const std::string& text) { terminal::print_note(terminal::Terminal::detect(), "warning", text); };
  const process::CaughtSignals signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2});
  process::Command command;
  command.argv = words;
  command.own_output = false;
  command.foreground = true;
  process::Child child(command);
  options.pid = child.pid();
  observe::ResourceMonitor monitor(options);
  wait_for_end(child, signals.fd());
  monitor.stop();  // before the process is reaped: its usage can still be read
  const std::optional<process::Ending> ending = child.reap();
  if (arguments.quiet) return ending ? ending->code() : 1;
  const double seconds = monitor.latest().seconds;
  std::error_code ignored;
  const bool kept = std::filesystem::exists(options.csv_file, ignored);
  // Standard output belongs to the program.
  const terminal::Terminal terminal = isatty(STDERR_FILENO) != 0 ? terminal::Terminal::detect() : terminal::Terminal{};
  std::fputs(display::monitor_report(monitor.summary(), words.front(), seconds, kept ? options.csv_file : "", terminal)
                 .c_str(),
             stderr);
  return ending ? ending->code() : 1;
}

}  // namespace

void add_monitor(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("monitor", "Run any program and record what it and this machine use");
  const auto arguments = std::make_shared<MonitorArguments>();
  app.add_option("COMMAND", arguments->words, "Program and its arguments, after --").required();
  app.add_option("--every", arguments->every, "Seconds between samples [0.5]").type_name("X");
  app.add_option("--csv", arguments->csv, "New file to write [monitor-PROGRAM-N.csv]").type_name("FILE");
  app.add_flag("--quiet", arguments->quiet, "Print no table at the end");
  app.footer(kMonitorExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, argv = invocation.argv] { return run_monitor(*arguments, argv); };
  });
}

}  // namespace lockstep::tools
