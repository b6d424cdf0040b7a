// The look of --help, and what is said about arguments that do not fit.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace lockstep::tools {

/// Options in groups, descriptions wrapped in a column of their own.
class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// Parses the command line. Throws CLI::Success for --help and --version, and UsageError with a hint for everything
/// that does not fit.
void parse(CLI::App& program, int argc, const char* const* argv);

/// An option that takes a whole number from `least` on.
CLI::Option* add_number(CLI::App& app, const std::string& name, int64_t& value, const std::string& description,
                        int64_t least = 0);

}  // namespace lockstep::tools
