#include "man_pages.h"

#include <fmt/format.h>

#include <span>
#include <sstream>

namespace lockstep::tools {
namespace {

struct Row {
  const char* what;
  const char* meaning;
};

constexpr Row kExitCodes[] = {
    {"0", "Success; also for a resumed run that had already ended."},
    {"1", "Failure: a file, the disk, the network, the training itself."},
    {"2", "Wrong usage: an unknown command, flag, key, model or value."},
    {"3", "A run breaks a rule of compare --fail-if."},
    {"129, 130, 143", "Ended by a closed terminal, Ctrl-C or SIGTERM, with a checkpoint."},
};

constexpr Row kEnvironment[] = {
    {"LOCKSTEP_DATA", "Folder to look for data sets in, after --data."},
    {"LOCKSTEP_MNIST_MIRROR", "Addresses to fetch MNIST from instead of the public mirrors, separated by commas."},
    {"LOCKSTEP_MAX_ISA", "The best instruction set to use: sse4, avx2 or avx512."},
    {"LOCKSTEP_PORT", "First port of the ranks of a Slurm or MPI job."},
    {"TF_CONFIG", "The cluster and the role of this process."},
    {"XDG_CACHE_HOME", "Folder of the cache, ~/.cache by default: fetched data is kept in lockstep in it."},
    {"https_proxy", "Proxy for fetching."},
    {"NO_COLOR", "Set to anything: no colours."},
    {"OMP_WAIT_POLICY", "How idle threads wait; --wait-policy wins over it."},
};

constexpr Row kFiles[] = {
    {"runs/NAME-N/", "A run: config.yaml, summary.json, logs, checkpoints. --runs-dir names another folder."},
    {"lab/", "Experiments: a database, runs and reports. --lab-dir names another folder."},
};

/// Escapes text for roff; a line must not begin as a request does.
std::string roff(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\'') {
      result += "\\(aq";
    } else if (c == '`') {
      result += "\\(ga";
    } else if (c == '^' || c == '~') {
      result += c == '^' ? "\\(ha" : "\\(ti";
    } else {
      result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string upper_case(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

/// "lockstep-data-get".
std::string page_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : page_name(*app.get_parent()) + "-" + app.get_name();
}

/// "lockstep data get".
std::string command_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : command_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string synopsis(const CLI::App& app) {
  std::string text = bold(command_name(app));
  for (const CLI::Option* option : arguments_of(app)) {
    const std::string name = italic(option->get_name(true)) + (option->get_expected_max() > 1 ? " ..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  const std::string command = italic("COMMAND");
  if (!shown_commands(app).empty()) text += arguments_of(app).empty() ? " " + command : " [" + command + "]";
  return text + " [" + italic("flags") + "]\n";
}

std::string flag_names(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames()) text += (text.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "" : ", ") + bold("--" + name);
  return option.get_items_expected_max() == 0 ? text : text + " " + italic(option.get_type_name());
}

std::string man_entry(const std::string& term, const std::string& description) {
  return ".TP\n" + term + "\n" + roff(description) + "\n";
}

std::string arguments_and_flags(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : arguments_of(app)) {
    text += man_entry(italic(option->get_name(true)), option->get_description());
  }
  for (const std::string& group : app.get_groups()) {
    std::string flags;
    for (const CLI::Option* option : app.get_options()) {
      if (option->nonpositional() && option->get_group() == group) {
        flags += man_entry(flag_names(*option), option->get_description());
      }
    }
    if (flags.empty()) continue;
    if (group != "Options") text += ".SS " + roff(group) + "\n";
    text += flags;
  }
  return text;
}

/// The text below a command's help: lines with leading blanks stay as they are, others are filled; "Examples:" begins a
/// part of its own, with this request and title.
std::string footer_text(const std::string& footer, const std::string& examples) {
  std::istringstream lines(footer);
  std::string text;
  bool verbatim = false;
  bool gap = false;  ///< a paragraph has ended
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with("  ");
    if (verbatim && !indented && !line.empty()) text += ".RE\n.fi\n";
    if (line.empty()) {
      gap = true;
      continue;
    }
    const bool heading = line == "Examples:" || line == "Example:";
    if (!heading && gap && (!verbatim || !indented)) text += ".PP\n";
    if (indented && !verbatim) text += ".nf\n.RS 4\n";
    text += heading ? examples : roff(indented ? line.substr(2) : line) + "\n";
    verbatim = indented;
    gap = false;
  }
  return text + (verbatim ? ".RE\n.fi\n" : "");
}

std::string man_table(const char* title, std::span<const Row> table) {
  std::string text = fmt::format(".SH {}\n", title);
  for (const Row& row : table) text += man_entry(bold(row.what), row.meaning);
  return text;
}

std::string page_head(const CLI::App& app, const std::string& version) {
  return fmt::format(".TH {} 1 \"\" {} \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}",
                     roff(upper_case(page_name(app))), "\"lockstep " + roff(version) + "\"", roff(page_name(app)),
                     roff(app.get_description()), synopsis(app));
}

/// A command below a command, such as `lab run`, is a part of its page.
std::string command_part(const CLI::App& app) {
  return ".SS " + bold(command_name(app)) + "\n" + roff(app.get_description()) + ".\n.PP\n" + synopsis(app) +
         arguments_and_flags(app);
}

std::string command_page(const CLI::App& app, const std::string& version) {
  std::string text = page_head(app, version) + ".SH OPTIONS\n" + arguments_and_flags(app);
  const auto commands = shown_commands(app);
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* command : commands) text += command_part(*command);
  if (!app.get_footer().empty()) {
    const bool examples_only = app.get_footer().starts_with("Example");
    text += (examples_only ? "" : ".SH NOTES\n") + footer_text(app.get_footer(), ".SH EXAMPLES\n");
  }
  return text + ".SH SEE ALSO\n" + bold(app.get_parent()->get_name()) + "(1)\n";
}

std::string program_page(const CLI::App& program, const std::string& version) {
  std::string text = page_head(program, version) + ".SH OPTIONS\n" + arguments_and_flags(program) + ".SH COMMANDS\n";
  std::string also;
  for (const CLI::App* command : shown_commands(program)) {
    text += man_entry(bold(page_name(*command)) + "(1)", command->get_description() + ".");
    also += (also.empty() ? "" : ",\n") + bold(page_name(*command)) + "(1)";
  }
  text += footer_text(program.get_footer(), ".SH EXAMPLES\n");
  text += man_table("ENVIRONMENT", kEnvironment) + man_table("FILES", kFiles) + man_table("EXIT STATUS", kExitCodes);
  return text + ".SH SEE ALSO\n" + also + "\n";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& program, const std::string& version) {
  std::vector<std::pair<std::string, std::string>> pages;
  pages.emplace_back(page_name(program) + ".1", program_page(program, version));
  for (const CLI::App* command : shown_commands(program)) {
    pages.emplace_back(page_name(*command) + ".1", command_page(*command, version));
  }
  return pages;
}

}  // namespace lockstep::tools
