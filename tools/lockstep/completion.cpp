#include "completion.h"

#include <algorithm>
#include <set>

namespace lockstep::tools {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* next) { return next->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

/// Returns the flag as --help names it: "--output" for "-o".
std::string flag_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
}

/// Sorts the words before the last one.
class Reader {
 public:
  explicit Reader(const CLI::App& program) : program_(program), command_(&program) {}

  void read(const std::string& word) {
    if (waiting_ != nullptr) {
      typed.flags[flag_name(*waiting_)] = word;
      waiting_ = nullptr;
    } else if (!only_arguments_ && word == "--") {
      end_flags();
    } else if (!only_arguments_ && word.starts_with('-') && word.size() > 1) {
      read_flag(word);
    } else if (const CLI::App* next = only_arguments_ ? nullptr : find_command(*command_, word);
               next != nullptr && typed.arguments.empty()) {
      command_ = next;
    } else {
      typed.arguments.push_back(word);
    }
  }

  [[nodiscard]] const CLI::App& command() const { return *command_; }
  /// The flag whose value comes next; nullptr if none does.
  [[nodiscard]] const CLI::Option* waiting() const { return waiting_; }
  [[nodiscard]] bool only_arguments() const { return only_arguments_; }
  [[nodiscard]] bool given(const CLI::Option* option) const { return given_.contains(option); }

  TypedWords typed;

 private:
  /// Behind "--", `launch` takes a command line of the program itself.
  void end_flags() {
    only_arguments_ = command_->get_name() != "launch";
    if (only_arguments_) return;
    command_ = &program_;
    typed.arguments.clear();
  }

  void read_flag(const std::string& word) {
    const size_t equals = word.find('=');
    const CLI::Option* option = command_->get_option_no_throw(word.substr(0, equals));
    if (option == nullptr) return;
    given_.insert(option);
    if (!takes_value(*option)) return;
    if (equals == std::string::npos) {
      waiting_ = option;
    } else {
      typed.flags[flag_name(*option)] = word.substr(equals + 1);
    }
  }

  const CLI::App& program_;
  const CLI::App* command_;
  const CLI::Option* waiting_ = nullptr;
  bool only_arguments_ = false;
  std::set<const CLI::Option*> given_;
};

void add_commands(const CLI::App& app, Completion& completion) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); })) {
    completion.candidates.push_back({command->get_name(), command->get_description()});
  }
}

void add_flags(const Reader& reader, Completion& completion) {
  for (const CLI::Option* option : reader.command().get_options()) {
    if (option->get_positional() || reader.given(option)) continue;
    completion.candidates.push_back({flag_name(*option), option->get_description()});
  }
}

/// The argument that comes next; nullptr if the command takes no more.
const CLI::Option* next_argument(const Reader& reader) {
  size_t place = reader.typed.arguments.size();
  for (const CLI::Option* option : reader.command().get_options()) {
    if (!option->get_positional()) continue;
    if (place == 0 || option->get_expected_max() > 1) return option;
    --place;
  }
  return nullptr;
}

void add_values_of(const CLI::Option& option, const TypedWords& typed, Completion& completion) {
  if (option.get_positional()) return add_values(option.get_name(true), typed, completion);
  (void)add_choices(flag_name(option).substr(2), completion);
  add_values(option.get_type_name(), typed, completion);
}

void add_arguments(const Reader& reader, Completion& completion) {
  if (reader.typed.arguments.empty() && !reader.only_arguments()) add_commands(reader.command(), completion);
  const CLI::Option* next = next_argument(reader);
  if (next != nullptr) add_values_of(*next, reader.typed, completion);
}

/// Completes "--flag=val".
Completion complete_after_equals(Reader& reader, const std::string& word, size_t equals) {
  Completion completion;
  const std::string flag = word.substr(0, equals);
  const CLI::Option* option = reader.command().get_option_no_throw(flag);
  if (option == nullptr || !takes_value(*option)) return completion;
  reader.typed.value = word.substr(equals + 1);
  add_values_of(*option, reader.typed, completion);
  keep_beginning_with(reader.typed.value, completion);
  for (Candidate& candidate : completion.candidates) candidate.text.insert(0, flag + "=");
  return completion;
}

}  // namespace

Completion complete(const CLI::App& program, std::span<const std::string> words, std::span<const nn::ModelDef> models) {
  Completion completion;
  if (words.empty()) return completion;
  const bool help = words.size() > 1 && words.front() == "help" && !words.back().starts_with('-');  // of commands
  if (help) words = words.subspan(1);
  Reader reader(program);
  for (const std::string& word : words.first(words.size() - 1)) reader.read(word);
  reader.typed.models = models;
  const std::string& last = words.back();
  reader.typed.value = last;
  if (help) {
    add_commands(reader.command(), completion);
  } else if (reader.waiting() != nullptr) {
    add_values_of(*reader.waiting(), reader.typed, completion);
  } else if (last.starts_with('-') && !reader.only_arguments()) {
    const size_t equals = last.find('=');
    if (equals != std::string::npos) return complete_after_equals(reader, last, equals);
    add_flags(reader, completion);
  } else {
    add_arguments(reader, completion);
  }
  keep_beginning_with(last, completion);
  return completion;
}

void keep_beginning_with(std::string_view text, Completion& completion) {
  std::set<std::string> seen;
  std::erase_if(completion.candidates,
                [&](const Candidate& c) { return !c.text.starts_with(text) || !seen.insert(c.text).second; });
}

std::string completion_text(const Completion& completion) {
  std::string text = completion.paths == Completion::Paths::files     ? "files\n"
                     : completion.paths == Completion::Paths::folders ? "folders\n"
                                                                      : "none\n";
  for (const Candidate& candidate : completion.candidates) {
    std::string line = candidate.text + "\t" + candidate.about;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += line + "\n";
  }
  return text;
}

}  // namespace lockstep::tools
