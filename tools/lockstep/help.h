// The layout of --help, and errors about unknown arguments. Only command_line.cpp needs it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lockstep::tools {

/// Options in groups, descriptions wrapped in their own column.
class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// Returns the innermost command that the user named.
const CLI::App& innermost(const CLI::App& app);

/// Throws UsageError for a name that is not a command of `app`, with a hint.
[[noreturn]] void reject_command(const CLI::App& app, const std::string& name);

/// Throws UsageError with a hint for what did not fit. `last` is the last argument that was given.
[[noreturn]] void reject(const CLI::App& program, const CLI::ParseError& error, const std::string& last);

}  // namespace lockstep::tools
