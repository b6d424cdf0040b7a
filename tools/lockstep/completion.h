// What a shell offers when Tab is pressed: commands, flags and arguments from the command line itself, their values
// from the settings table and the folders of runs and experiments. So it cannot differ from what the program takes. The
// scripts in completion/ ask with `lockstep --complete WORD...`. Only command_line.cpp and completion*.cpp need this.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/nn.h"

namespace lockstep::tools {

struct Candidate {
  std::string text;
  std::string about;  ///< one line
};

struct Completion {
  enum class Paths : uint8_t { none, folders, files };

  std::vector<Candidate> candidates;
  Paths paths = Paths::none;  ///< what the shell adds by itself
};

/// An unfinished command line: the words before the last, sorted into flags and arguments.
struct TypedWords {
  std::map<std::string, std::string> flags;  ///< values of flags, by names such as "--runs-dir"
  std::vector<std::string> arguments;        ///< of the innermost command
  std::string value;                         ///< beginning of the value to complete
  std::span<const nn::ModelDef> models;      ///< models besides the zoo's
};

/// Completes the last word, which may be empty. Never throws for what the user typed.
Completion complete(const CLI::App& program, std::span<const std::string> words, std::span<const nn::ModelDef> models);

/// Returns the answer as the scripts read it: the kind of paths on the first line, then "TEXT<tab>ABOUT" lines.
std::string completion_text(const Completion& completion);

/// Adds the values that a placeholder of the help stands for: "RUN", "DIR", "sync|async", "best|newest|FILE".
void add_values(std::string_view placeholder, const TypedWords& typed, Completion& completion);

/// Adds the values of the setting of that name; returns false if it is not one with choices.
bool add_choices(std::string_view setting, Completion& completion);

/// Keeps the candidates that begin with `text`, each once.
void keep_beginning_with(std::string_view text, Completion& completion);

}  // namespace lockstep::tools
