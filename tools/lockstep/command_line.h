// The command line as the commands see it: each adds itself and what it takes, and parsing fills that in. CLI11 stands
// behind it and is seen by command_line.cpp and help.cpp alone: it costs seconds in every source that includes it.
// A CommandLine owns everything; Command and Option are handles to its parts and live no longer than it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/nn.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep::tools {

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  /// Sets the placeholder of the value in --help.
  Option type_name(const std::string& name) const;
  /// Sets the heading in --help.
  Option group(const std::string& name) const;
  /// Hides the option in --help; --help-all shows it. The command needs add_full_help().
  Option only_in_full_help() const;
  /// Allows the option several times, with one value each.
  Option repeated() const;
  /// Allows the option several times; the last value counts.
  Option take_last() const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_command(const std::string& name, const std::string& description) const;

  /// Adds an option: "--name" is a flag, "NAME" an argument. `value` must outlive the parsing.
  Option add_option(const std::string& name, std::string& value, const std::string& description) const;
  Option add_option(const std::string& name, std::vector<std::string>& values, const std::string& description) const;
  /// Passes all given values to `take`; the option takes one value each time.
  Option add_option(const std::string& name, const std::function<void(const std::vector<std::string>&)>& take,
                    const std::string& description) const;
  /// Adds an option whose value is a whole number of at least `least`.
  Option add_number(const std::string& name, int64_t& value, const std::string& description, int64_t least = 0) const;
  Option add_flag(const std::string& name, bool& value, const std::string& description) const;
  Option add_flag(const std::string& name, const std::function<void(bool)>& take, const std::string& description) const;

  /// Adds --help-all, which also shows the options marked only_in_full_help().
  void add_full_help() const;
  /// Leaves the command out of --help.
  void hide() const;
  void footer(const std::string& text) const;
  /// Sets the function that runs when the user names this command; below, when a command with subcommands is named
  /// without one: it receives the help text.
  void callback(const std::function<void()>& chosen) const;
  void callback_without_command(const std::function<void(const std::string& help)>& chosen) const;

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void version(const std::string& text);
  /// Adds the command `help`: `help train` shows the same as `train --help`. Add it after the other commands.
  void add_help_command();
  [[nodiscard]] Command root() const { return Command(app_.get()); }

  /// Fills in what was added and calls the callbacks of the commands named. Gives the text to show where --help or
  /// --version asks for one. Throws UsageError with a hint for everything that does not fit.
  std::optional<std::string> parse(int argc, const char* const* argv);
  [[nodiscard]] std::string help() const;

  /// Completes the last of the words that a user has typed, for a shell's script (completion.h says in which form).
  [[nodiscard]] std::string completions(const std::vector<std::string>& words,
                                        std::span<const nn::ModelDef> models) const;
  /// Returns manual pages: file names and texts.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> man_pages(const std::string& version) const;

 private:
  /// The help of the command with these names, each a command of the one before. Throws UsageError if there is none.
  [[nodiscard]] std::string help_of(const std::vector<std::string>& names) const;

  std::unique_ptr<CLI::App> app_;
  CLI::App* help_command_ = nullptr;
  std::vector<std::string> help_words_;  ///< arguments of the command `help`
};

}  // namespace lockstep::tools
