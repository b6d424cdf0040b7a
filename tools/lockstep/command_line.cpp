#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "completion.h"
#include "help.h"
#include "lockstep/error.h"
#include "man_pages.h"

namespace lockstep::tools {

Option Option::required() const { return Option(option_->required()); }
Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::group(const std::string& name) const { return Option(option_->group(name)); }
Option Option::only_in_full_help() const { return Option(option_->configurable(false)); }
Option Option::repeated() const { return Option(option_->expected(1)->take_all()); }
Option Option::take_last() const { return Option(option_->take_last()); }

Command Command::add_command(const std::string& name, const std::string& description) const {
  app_->require_subcommand(0, 1);
  return Command(app_->add_subcommand(name, description));
}

Option Command::add_option(const std::string& name, std::string& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}

Option Command::add_option(const std::string& name, std::vector<std::string>& values,
                           const std::string& description) const {
  return Option(app_->add_option(name, values, description));
}

Option Command::add_option(const std::string& name, const std::function<void(const std::vector<std::string>&)>& take,
                           const std::string& description) const {
  return Option(app_->add_option_function(name, take, description)->allow_extra_args(false));
}

Option Command::add_number(const std::string& name, int64_t& value, const std::string& description,
                           int64_t least) const {
  const auto read = [name, &value, least](const std::string& text) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least) {
      throw UsageError(fmt::format("{}: '{}' is not allowed; it takes a whole number, {} or more", name, text, least));
    }
    value = number;
  };
  return Option(app_->add_option_function<std::string>(name, read, description)->type_name("N")->take_last());
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& description) const {
  return Option(app_->add_flag(name, value, description));
}

Option Command::add_flag(const std::string& name, const std::function<void(bool)>& take,
                         const std::string& description) const {
  return Option(app_->add_flag_function(
      name, [take](int64_t count) { take(count > 0); }, description));
}

void Command::add_full_help() const { app_->set_help_all_flag("--help-all", "Show all flags"); }
void Command::hide() const { app_->group(""); }
void Command::footer(const std::string& text) const { app_->footer(text); }
void Command::callback(const std::function<void()>& chosen) const { app_->callback(chosen); }

void Command::callback_without_command(const std::function<void(const std::string&)>& chosen) const {
  app_->callback([app = app_, chosen] {
    if (app->get_subcommands().empty()) chosen(app->help());
  });
}

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description)) {
  app_->name(name);
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->set_help_flag("-h,--help", "Show this help, or that of a command");
}

CommandLine::~CommandLine() = default;

void CommandLine::version(const std::string& text) { app_->set_version_flag("--version", text, "Show the version"); }

void CommandLine::add_help_command() {
  help_command_ = app_->add_subcommand("help", "Show the help of a command");
  help_command_->add_option("COMMAND", help_words_, "The command, e.g. train or data get");
  help_command_->footer("Examples:\n  lockstep help train\n  lockstep help data get");
}

std::string CommandLine::help_of(const std::vector<std::string>& names) const {
  const CLI::App* command = app_.get();
  for (const std::string& name : names) {
    const auto found = command->get_subcommands([&](const CLI::App* next) { return next->check_name(name); });
    if (found.empty()) reject_command(*command, name);
    command = found.front();
  }
  // Not App::help(), which would show the command `help` itself: it was parsed.
  return command->get_formatter()->make_help(command, "", CLI::AppFormatMode::Normal);
}

std::optional<std::string> CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return innermost(*app_).help();
  } catch (const CLI::CallForAllHelp&) {
    return innermost(*app_).help("", CLI::AppFormatMode::All);
  } catch (const CLI::Success& version) {
    return std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    reject(*app_, error, argc > 1 ? argv[argc - 1] : "");
  }
  if (help_command_ != nullptr && help_command_->parsed()) return help_of(help_words_);
  return std::nullopt;
}

std::string CommandLine::help() const { return app_->help(); }

std::string CommandLine::completions(const std::vector<std::string>& words,
                                     std::span<const nn::ModelDef> models) const {
  return completion_text(complete(*app_, words, models));
}

std::vector<std::pair<std::string, std::string>> CommandLine::man_pages(const std::string& version) const {
  return tools::man_pages(*app_, version);
}

}  // namespace lockstep::tools
