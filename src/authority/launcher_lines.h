// Questions of a role to the launcher that started it, and the answers: one line each, on the role's standard output
// and input, which nobody else can write to. Plain values; free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "authority/register.h"

namespace lockstep::authority {

/// Environment of a role whose launcher answers: its name, and the value.
inline constexpr const char* kLauncherVariable = "LOCKSTEP_REGISTER";
inline constexpr const char* kLauncherAnswers = "launcher";

struct LauncherQuestion {
  uint64_t number = 0;       ///< counts the role's questions, so that a late answer is known as such
  std::optional<Swap> swap;  ///< of `expected` only the number and the id are sent; none: a read
};
std::string question_line(const LauncherQuestion& question);
/// Returns nothing for a line that is no question.
std::optional<LauncherQuestion> parse_question(std::string_view line);

struct LauncherAnswer {
  uint64_t number = 0;
  Answer answer;
};
std::string answer_line(const LauncherAnswer& answer);
std::optional<LauncherAnswer> parse_answer(std::string_view line);

}  // namespace lockstep::authority
