#include "records/run_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::records {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

/// Returns whether the pattern, in which * stands for any characters, covers the whole text.
bool covers(std::string_view pattern, std::string_view text) {
  size_t star = std::string_view::npos;
  size_t p = 0;
  size_t retry = 0;
  for (size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

/// Reads "0.95" or "95%"; unknown if it is no number.
double number_of(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double number = kUnknown;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !known(number)) return kUnknown;
  return percent ? number / 100 : number;
}

bool same_number(double a, double b) { return std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b)); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

[[noreturn]] void reject(const std::string& term, const std::string& what) {
  throw UsageError(fmt::format("filter '{}': {}", printable(term), what));
}

/// Returns whether values of the key are numbers: by the table, for settings by the runs.
bool is_number(const std::string& key, std::span<const RunValues> runs) {
  if (const RunKey* known_one = find_run_key(key)) {
    return known_one->kind == KeyKind::number || known_one->kind == KeyKind::share;
  }
  return std::any_of(runs.begin(), runs.end(), [&](const RunValues& values) {
    const auto found = values.find(key);
    return found != values.end() && known(found->second.number);
  });
}

void check_choice(const std::string& term, const std::string& key, const std::vector<std::string>& texts) {
  const RunKey* found = find_run_key(key);
  if (found == nullptr || found->choices.empty()) return;
  for (const std::string& text : texts) {
    const auto fits = [&](const std::string& choice) { return covers(text, choice); };
    if (std::any_of(found->choices.begin(), found->choices.end(), fits)) continue;
    reject(term, fmt::format("'{}' is not a {}{}", printable(text), key, base::hint(text, found->choices)));
  }
}

}  // namespace

RunFilter::RunFilter(std::span<const std::string> terms, std::span<const RunValues> runs) {
  for (const std::string& term : terms) terms_.push_back(read(term, runs));
}

std::vector<std::string> RunFilter::terms_of(std::string_view line) {
  std::vector<std::string> terms;
  std::string term;
  bool quoted = false;
  bool begun = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      begun = true;
    } else if ((c == ' ' || c == '\t') && !quoted) {
      if (begun) terms.push_back(std::move(term));
      term.clear();
      begun = false;
    } else {
      term += c;
      begun = true;
    }
  }
  if (begun) terms.push_back(std::move(term));
  return terms;
}

std::vector<std::string> RunFilter::terms_of_words(std::span<const std::string> words) {
  std::vector<std::string> terms;
  for (const std::string& word : words) {
    const std::vector<std::string> parts = terms_of(word);
    const bool several = parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
                           return part.find_first_of("=<>") != std::string::npos;
                         });
    if (several) {
      terms.insert(terms.end(), parts.begin(), parts.end());
    } else {
      terms.push_back(word);
    }
  }
  return terms;
}

RunFilter::Term RunFilter::read(const std::string& text, std::span<const RunValues> runs) {
  const size_t at = text.find_first_of("=<>!");
  if (at == std::string::npos) return {Operator::word, "", {lower(text)}};
  const bool longer = at + 1 < text.size() && text[at + 1] == '=';
  const std::string sign = text.substr(at, longer ? 2 : 1);
  constexpr std::array<std::pair<std::string_view, Operator>, 7> kSigns{{{"=", Operator::equal},
                                                                         {"==", Operator::equal},
                                                                         {"!=", Operator::unequal},
                                                                         {"<", Operator::less},
                                                                         {"<=", Operator::at_most},
                                                                         {">", Operator::more},
                                                                         {">=", Operator::at_least}}};
  const auto* const found = std::find_if(kSigns.begin(), kSigns.end(), [&](const auto& s) { return s.first == sign; });
  if (at == 0 || found == kSigns.end()) reject(text, "it takes KEY=VALUE, with = != < <= > or >=");
  Term term{found->second, known_key(text.substr(0, at), runs), {}};
  const std::string value = text.substr(at + sign.size());
  const bool equality = term.compare == Operator::equal || term.compare == Operator::unequal;
  term.texts = equality ? split(lower(value), ',') : std::vector<std::string>{lower(value)};
  term.number = number_of(value);
  const RunKey* key = find_run_key(term.key);
  term.list = key != nullptr && (key->kind == KeyKind::list || key->name == "state");
  const bool by_time = key != nullptr && key->kind == KeyKind::time;
  if (value.empty() && !equality) reject(text, "the value is missing");
  if (is_number(term.key, runs)) {
    for (const std::string& part : term.texts) {
      if (!part.empty() && !known(number_of(part))) reject(text, fmt::format("'{}' is not a number", printable(part)));
    }
  } else if (!equality && !by_time) {
    reject(text, term.key + " is a text; it takes = or !=");
  }
  check_choice(text, term.key, term.texts);
  return term;
}

bool RunFilter::equals(const Term& term, const RunValue& value) {
  return std::any_of(term.texts.begin(), term.texts.end(), [&](const std::string& wanted) {
    if (known(value.number) && known(number_of(wanted))) return same_number(value.number, number_of(wanted));
    if (!term.list || wanted.empty()) return covers(wanted, lower(value.text));
    return std::any_of(value.words.begin(), value.words.end(),
                       [&](const std::string& word) { return covers(wanted, lower(word)); });
  });
}

bool RunFilter::fits(const Term& term, const RunValues& run) {
  if (term.compare == Operator::word) {
    constexpr std::array<std::string_view, 9> kTexts{"name", "model", "dataset", "how",       "state",
                                                     "end",  "tag",   "note",    "experiment"};
    return std::any_of(kTexts.begin(), kTexts.end(), [&](std::string_view key) {
      const auto found = run.find(key);
      return found != run.end() && lower(found->second.text).find(term.texts.front()) != std::string::npos;
    });
  }
  const auto found = run.find(term.key);
  const RunValue value = found == run.end() ? RunValue{} : found->second;
  if (term.compare == Operator::equal) return equals(term, value);
  if (term.compare == Operator::unequal) return !equals(term, value);
  const bool times = !known(term.number) || !known(value.number);
  if (times && value.text.empty()) return false;
  const int order = times                                    ? lower(value.text).compare(term.texts.front())
                    : same_number(value.number, term.number) ? 0
                    : value.number < term.number             ? -1
                                                             : 1;
  switch (term.compare) {
    case Operator::less:
      return order < 0;
    case Operator::at_most:
      return order <= 0;
    case Operator::more:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool RunFilter::matches(const RunValues& run) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) { return fits(term, run); });
}

}  // namespace lockstep::records
