#include "authority/launcher_lines.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace lockstep::authority {
namespace {

constexpr std::string_view kBegin = "register";

struct Word {
  Outcome outcome;
  std::string_view text;
};
constexpr std::array<Word, 4> kOutcomes{
    {{Outcome::present, "present"}, {Outcome::won, "won"}, {Outcome::lost, "lost"}, {Outcome::refused, "refused"}}};

/// Takes the text up to the next space, and that space.
std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::optional<uint64_t> number_of(std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || word.empty() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// Takes "register N" from a line.
std::optional<uint64_t> take_begin(std::string_view& line) {
  if (take_word(line) != kBegin) return std::nullopt;
  return number_of(take_word(line));
}

}  // namespace

std::string question_line(const LauncherQuestion& question) {
  if (!question.swap) return fmt::format("{} {} read", kBegin, question.number);
  const Group& expected = question.swap->expected;
  return fmt::format("{} {} swap {} {:x} {}", kBegin, question.number, expected.number, expected.id,
                     text_of(question.swap->next));
}

std::optional<LauncherQuestion> parse_question(std::string_view line) {
  const std::optional<uint64_t> number = take_begin(line);
  if (!number) return std::nullopt;
  const std::string_view what = take_word(line);
  if (what == "read" && line.empty()) return LauncherQuestion{*number, {}};
  if (what != "swap") return std::nullopt;
  const std::string_view expected = take_word(line);
  const std::string_view id = take_word(line);
  const std::optional<Group> before = parse_group(fmt::format("{} {} -", expected, id));
  std::optional<Group> next = parse_group(line);
  if (!before || !next) return std::nullopt;
  return LauncherQuestion{*number, Swap{*before, std::move(*next)}};
}

std::string answer_line(const LauncherAnswer& answer) {
  std::string_view outcome = kOutcomes.back().text;
  for (const Word& word : kOutcomes) {
    if (word.outcome == answer.answer.outcome) outcome = word.text;
  }
  return fmt::format("{} {} {} {} {}", kBegin, answer.number, outcome, answer.answer.vacant ? "vacant" : "held",
                     text_of(answer.answer.group));
}

std::optional<LauncherAnswer> parse_answer(std::string_view line) {
  const std::optional<uint64_t> number = take_begin(line);
  if (!number) return std::nullopt;
  LauncherAnswer answer{*number, {}};
  const std::string_view outcome = take_word(line);
  for (const Word& word : kOutcomes) {
    if (word.text == outcome) answer.answer.outcome = word.outcome;
  }
  const std::string_view vacant = take_word(line);
  std::optional<Group> group = parse_group(line);
  if (answer.answer.outcome == Outcome::unanswered || (vacant != "vacant" && vacant != "held") || !group) {
    return std::nullopt;
  }
  answer.answer.vacant = vacant == "vacant";
  answer.answer.group = std::move(*group);
  return answer;
}

}  // namespace lockstep::authority
