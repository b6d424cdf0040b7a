#include "help.h"

#include <fmt/format.h>

#include <vector>

#include "base/suggest.h"
#include "lockstep/error.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

constexpr size_t kNameColumn = 26;
constexpr size_t kWidth = 100;

std::string entry(const std::string& name, const std::string& description) {
  std::string text = "  " + terminal::padded_right(name, kNameColumn);
  if (name.size() > kNameColumn) text += "\n" + std::string(kNameColumn + 2, ' ');
  bool first = true;
  for (const std::string& line : terminal::wrapped(description, kWidth - kNameColumn - 2)) {
    if (!first) text += "\n" + std::string(kNameColumn + 2, ' ');
    text += line;
    first = false;
  }
  return text + "\n";
}

/// "lockstep data get".
std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string usage(const CLI::App& app) {
  std::string text = "Usage: " + full_name(app);
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const bool many = option->get_expected_max() > 1;
    const std::string name = option->get_name(true) + (many ? "..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  const bool commands = !app.get_subcommands({}).empty();
  const bool optional = commands && !app.get_options([](const CLI::Option* o) { return o->get_positional(); }).empty();
  return text + (optional ? " [COMMAND]" : commands ? " COMMAND" : "") + " [--flags]\n";
}

std::string options_section(const std::string& title, const std::vector<const CLI::Option*>& options) {
  if (title.empty() || options.empty()) return "";
  std::string text = "\n" + title + ":\n";
  for (const CLI::Option* option : options) {
    const bool positional = option->get_positional();
    std::string name = option->get_name(positional, !positional);
    if (!positional && option->get_type_size() != 0) name += " " + option->get_type_name();
    text += entry(name, option->get_description());
  }
  return text;
}

/// True for options marked only_in_full_help(). command_line.cpp keeps the mark as "not configurable", which CLI11 also
/// sets for its own flags: help and version.
bool only_in_full_help(const CLI::App& app, const CLI::Option* option) {
  return !option->get_configurable() && option != app.get_help_ptr() && option != app.get_help_all_ptr() &&
         option != app.get_version_ptr();
}

/// "12 more flags: lockstep train --help-all", where the command leaves some out of its --help.
std::string more_flags(const CLI::App& app) {
  if (app.get_help_all_ptr() == nullptr) return "";
  const auto left_out = app.get_options([&](const CLI::Option* option) { return only_in_full_help(app, option); });
  return fmt::format("\n{} more flags: `{} --help-all`\n", left_out.size(), full_name(app));
}

[[noreturn]] void reject_flag(const CLI::App& app, const std::string& argument) {
  const std::string flag = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const char* all = app.get_help_all_ptr() == nullptr ? "--help" : "--help-all";
  const std::string nearest = base::nearest(flag, known);
  const std::string hint =
      nearest.empty() ? fmt::format("; `{} {}` lists all", full_name(app), all) : " (did you mean '" + nearest + "'?)";
  throw UsageError(fmt::format("unknown flag '{}'{}", flag, hint));
}

/// Throws an error about the first argument that no option or command accepted.
void reject_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  for (const std::string& argument : extras) {
    if (argument.size() > 1 && argument[0] == '-' && argument != "--") reject_flag(app, argument);
  }
  if (extras.empty()) return;
  if (!app.get_subcommands({}).empty()) reject_command(app, extras[0]);
  throw UsageError(fmt::format("unexpected argument '{}'; `{} --help` shows how", extras[0], full_name(app)));
}

}  // namespace

void reject_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) commands.push_back(command->get_name());
  }
  if (commands.empty()) throw UsageError(fmt::format("`{}` has no command '{}'", full_name(app), name));
  throw UsageError(fmt::format("unknown command '{}'{}", name, base::hint(name, commands)));
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode mode) const {
  const bool all = mode == CLI::AppFormatMode::All;
  std::string text = app->get_description() + "\n\n" + usage(*app);
  text += options_section("Arguments", app->get_options([](const CLI::Option* o) { return o->get_positional(); }));
  for (const std::string& group : app->get_groups()) {
    const auto belongs = [&](const CLI::Option* o) {
      return o->get_group() == group && o->nonpositional() && (all || !only_in_full_help(*app, o));
    };
    text += options_section(group, app->get_options(belongs));
  }
  if (!all) text += more_flags(*app);
  const auto commands = app->get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
  if (!commands.empty()) text += "\nCommands:\n";
  for (const CLI::App* command : commands) text += entry(command->get_name(), command->get_description());
  if (!app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
  const CLI::App* program = app;
  while (program->get_parent() != nullptr) program = program->get_parent();
  return terminal::replaced(std::move(text), "lockstep ", program->get_name() + " ");
}

const CLI::App& innermost(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : innermost(*commands.front());
}

void reject(const CLI::App& program, const CLI::ParseError& error, const std::string& last) {
  const CLI::App& app = innermost(program);
  reject_extras(app);
  std::string message = error.what();
  // Only a flag at the very end can be without its value: elsewhere the next argument is taken for it.
  const CLI::Option* flag = last.starts_with('-') ? app.get_option_no_throw(last) : nullptr;
  const bool mismatch = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch);
  if (mismatch && flag != nullptr && flag->get_type_size() != 0) message = flag->get_name() + " needs a value";
  throw UsageError(fmt::format("{}; `{} --help` shows how", message, full_name(app)));
}

}  // namespace lockstep::tools
