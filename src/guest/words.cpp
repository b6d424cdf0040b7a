// The words of a command: splitting, and names in braces.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/suggest.h"
#include "base/yaml_tree.h"
#include "emulate/quantities.h"
#include "guest/guest_run.h"
#include "lockstep/error.h"

namespace lockstep::guest {
namespace {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kMostWords = 1000;

const std::string& value_of(const NamedTexts& values, const std::string& name, const std::string& word) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
  if (found != values.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.first);
  throw UsageError(fmt::format("command: '{}' in '{}' is neither a setting of this run nor a name of a role{}",
                               base::shown("{" + name + "}"), base::shown(word), base::hint(name, names)));
}

std::string filled(const std::string& word, const NamedTexts& values) {
  std::string result;
  for (size_t at = 0; at < word.size(); ++at) {
    if (word[at] == '{' && at + 1 < word.size() && word[at + 1] == '{') {
      result += word[at++];
      continue;
    }
    const size_t end = word[at] == '{' ? word.find('}', at) : std::string::npos;
    if (end == std::string::npos || !is_name(std::string_view(word).substr(at + 1, end - at - 1))) {
      result += word[at];
      continue;
    }
    result += value_of(values, word.substr(at + 1, end - at - 1), word);
    at = end;
  }
  return result;
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.');
  });
}

std::vector<std::string> filled_in(const std::vector<std::string>& words, const NamedTexts& values) {
  std::vector<std::string> result;
  for (const std::string& word : words) result.push_back(filled(word, values));
  return result;
}

const std::vector<std::string>& role_names() {
  static const std::vector<std::string> names{"rank",   "role",        "index",       "local_rank", "workers",
                                              "master", "master_port", "master_addr", "hosts",      "run_dir"};
  return names;
}

double parse_deadline(const std::string& text, const std::string& what) {
  constexpr double kMost = 7 * 24 * 3600;
  const std::optional<double> hours = emulate::parse_quantity(text, {{"h", 3600}});
  const std::optional<double> seconds = hours ? hours : emulate::parse_seconds(text);
  if (seconds && *seconds > 0 && *seconds <= kMost) return *seconds;
  throw UsageError(fmt::format("{}: '{}' is not allowed; it takes a time up to 7 days, such as 90s, 10m or 2h", what,
                               base::shown(text)));
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;  // a word has begun, maybe an empty one
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      open = true;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
      if (c != quote && quote != 0) word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) throw UsageError(fmt::format("command: has a {} without end", quote));
  if (open) words.push_back(std::move(word));
  if (words.empty()) throw UsageError("command: is empty");
  if (words.size() > kMostWords) throw UsageError(fmt::format("command: has more than {} words", kMostWords));
  return words;
}

}  // namespace lockstep::guest
