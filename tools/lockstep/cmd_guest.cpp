// lockstep guest: runs any program as the roles of a cluster, on emulated nodes, on hosts or on this machine.
#include <csignal>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/yaml_tree.h"
#include "command.h"
#include "command_line.h"
#include "emulate/quantities.h"
#include "emulate/rights.h"
#include "guest/guest_run.h"
#include "lockstep/error.h"
#include "process/caught_signals.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

constexpr const char* kGuestExamples =
    "Examples:\n"
    "  lockstep guest --workers 2 --run-dir runs/ddp --figure 'accuracy=output:accuracy ([0-9.]+)' -- python3 ddp.py\n"
    "  sudo lockstep guest --layout PS-W-W --emulate cores=0.5 --run-dir runs/tf -- python3 ps.py --steps 100";

struct GuestArguments {
  int64_t workers = 0;
  int64_t ps = 0;
  bool evaluator = false;
  std::string layout;
  std::string emulate;
  std::string faults;
  std::string hosts;
  std::string ssh = "ssh";
  std::string program;
  std::string run_dir;
  std::string deadline = "1h";
  std::string monitor_every = "0.5";
  std::vector<std::string> figures;
  std::vector<std::string> settings;
  std::vector<std::string> logs;
  std::vector<std::string> words;
};

/// Returns the words after `--`, as typed.
std::vector<std::string> guest_words(char** argv) {
  while (*argv != nullptr && std::strcmp(*argv, "--") != 0) ++argv;
  std::vector<std::string> words;
  if (*argv != nullptr) {
    while (*++argv != nullptr) words.emplace_back(*argv);
  }
  return words;
}

void set_hosts(const GuestArguments& arguments, const std::string& program, guest::GuestOptions& options) {
  if (arguments.hosts.empty()) {
    if (!arguments.program.empty()) throw UsageError("guest: --program applies only to --hosts");
    return;
  }
  const bool placed = arguments.workers > 0 || arguments.ps > 0 || arguments.evaluator || !arguments.layout.empty();
  if (placed || !arguments.emulate.empty()) {
    throw UsageError(
        "--hosts: the cluster file already assigns the roles to hosts; leave out --workers, --ps, "
        "--evaluator, --layout and --emulate");
  }
  options.hosts.file = arguments.hosts;
  options.hosts.program = arguments.program.empty() ? program : arguments.program;
  std::istringstream words(arguments.ssh);
  options.hosts.ssh.assign(std::istream_iterator<std::string>(words), {});
  if (options.hosts.ssh.empty()) throw UsageError("--ssh: '' is not a command");
}

guest::GuestOptions guest_options(const GuestArguments& arguments, const std::string& program, char** argv) {
  guest::GuestOptions options;
  options.command = guest_words(argv);
  if (options.command.empty() == arguments.logs.empty()) {
    throw UsageError(
        "guest: give the program after --: `lockstep guest --run-dir DIR -- PROGRAM`, or --log in its place");
  }
  for (const std::string& text : arguments.logs) options.logs.push_back(guest::parse_log(text));
  options.run_dir = arguments.run_dir;
  set_hosts(arguments, program, options);
  options.cluster.workers = static_cast<int>(arguments.workers);
  options.cluster.ps = static_cast<int>(arguments.ps);
  options.cluster.evaluator = arguments.evaluator;
  options.cluster.layout = arguments.layout;
  options.emulate = arguments.emulate;
  options.faults = arguments.faults;
  options.deadline = guest::parse_deadline(arguments.deadline, "--deadline");
  options.monitor_every = arguments.monitor_every;
  for (const std::string& text : arguments.figures) options.figures.push_back(guest::parse_source(text));
  for (const std::string& text : arguments.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || !guest::is_name(std::string_view(text).substr(0, equals))) {
      throw UsageError(
          fmt::format("--setting: '{}' is not allowed; it takes NAME=VALUE, with letters, digits, '-', '_' and '.' in "
                      "the name",
                      base::shown(text)));
    }
    options.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  if ((arguments.ps > 0 || arguments.evaluator) && arguments.workers == 0 && arguments.layout.empty()) {
    throw UsageError("guest: --ps and --evaluator apply only to clusters; add --workers N or --layout");
  }
  return options;
}

int run_guest_command(const GuestArguments& arguments, const std::string& program, char** argv) {
  constexpr int64_t kMost = 1000;
  if (arguments.workers > kMost || arguments.ps > kMost) {
    throw UsageError(fmt::format("--workers and --ps take at most {}", kMost));
  }
  guest::GuestOptions options = guest_options(arguments, program, argv);
  if (!options.logs.empty()) {
    guest::import_logs(options);
    return 0;
  }
  if (!arguments.emulate.empty()) {
    if (const std::string why = emulate::why_no_emulation(); !why.empty()) throw UsageError("--emulate: " + why);
  }
  const process::CaughtSignals signals({SIGINT, SIGTERM, SIGHUP, SIGTSTP});
  options.signals = signals.fd();
  options.note = [](const std::string& text) { terminal::print_note(terminal::Terminal::detect(), "note", text); };
  const guest::GuestOutcome outcome = guest::run_guest(options);
  return outcome.signal == 0 ? 0 : 128 + outcome.signal;
}

/// Collects the values of an option that may be given several times, one each.
std::function<void(const std::vector<std::string>&)> into(std::vector<std::string>& values) {
  return [&values](const std::vector<std::string>& given) { values.insert(values.end(), given.begin(), given.end()); };
}

}  // namespace

void add_guest(const Command& program, Invocation& invocation) {
  const Command app =
      program.add_command("guest", "Run any program as the roles of a cluster, and record its figures and its use");
  const auto arguments = std::make_shared<GuestArguments>();
  app.add_option("PROGRAM", arguments->words, "Program and its arguments, after --");
  app.add_number("--workers", arguments->workers, "Workers [0: one process without a cluster]");
  app.add_number("--ps", arguments->ps, "Parameter servers [0]");
  app.add_flag("--evaluator", arguments->evaluator, "Also start an evaluator");
  app.add_option("--layout", arguments->layout, "Roles of each node, such as PS-W-W").type_name("TEXT");
  app.add_option("--emulate", arguments->emulate, "Emulate each node, e.g. cores=0.5,rate=1gbit (needs root)")
      .type_name("TEXT");
  app.add_option("--faults", arguments->faults,
                 "Faults on schedule, e.g. \"at 5s stop worker:1 for 2s; at 9s cut node2 for 10s\"; without --hosts")
      .type_name("TEXT");
  app.add_option("--hosts", arguments->hosts, "Cluster file whose hosts run the roles, over ssh").type_name("FILE");
  app.add_option("--ssh", arguments->ssh, "The ssh command, with its options [ssh]").type_name("COMMAND");
  app.add_option("--program", arguments->program, "Name or path of lockstep on the hosts [this program's name]")
      .type_name("PATH");
  app.add_option("--run-dir", arguments->run_dir, "New folder for what is recorded").type_name("DIR").required();
  app.add_option("--figure", into(arguments->figures),
                 "FIGURE=SOURCE; SOURCE is output:EXPRESSION, csv:FILE#COLUMN, events:FOLDER#TAG or "
                 "epoch-events:FOLDER#TAG; several times")
      .type_name("TEXT");
  app.add_option("--setting", into(arguments->settings),
                 "NAME=VALUE, which replaces {NAME} in the program's words; several times")
      .type_name("TEXT");
  app.add_option(
         "--log", into(arguments->logs),
         "ROLE=FILE or ROLE=FILE@SECONDS: in place of a program, the use of a role as dstat or collectl logged it")
      .type_name("TEXT");
  app.add_option("--deadline", arguments->deadline, "End the program after this time [1h]").type_name("TIME");
  app.add_option("--monitor-every", arguments->monitor_every, "Seconds between samples [0.5]").type_name("X");
  app.footer(kGuestExamples);
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, program = invocation.program, argv = invocation.argv] {
      return run_guest_command(*arguments, program, argv);
    };
  });
}

}  // namespace lockstep::tools
