#include "records/fail_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::records {
namespace {

[[noreturn]] void reject_rule(const std::string& rule, const std::string& what) {
  throw UsageError(fmt::format("--fail-if: '{}': {}", printable(rule), what));
}

std::vector<std::string> number_keys() {
  std::vector<std::string> keys;
  for (const RunKey& key : run_keys()) {
    if (key.kind == KeyKind::number || key.kind == KeyKind::share) keys.emplace_back(key.name);
  }
  return keys;
}

FailRule parse_rule(const std::string& text) {
  const size_t at = text.find_first_of("<>");
  if (at == std::string::npos || at == 0) {
    reject_rule(text, "it takes KEY<CHANGE or KEY>CHANGE, e.g. accuracy<-0.5pt or speed<-5%");
  }
  FailRule rule{text, text.substr(0, at), text[at] == '<', 0};
  std::replace(rule.key.begin(), rule.key.end(), '-', '_');
  const std::vector<std::string> keys = number_keys();
  if (std::find(keys.begin(), keys.end(), rule.key) == keys.end()) {
    reject_rule(text, "unknown key '" + printable(rule.key) + "'" + base::hint(rule.key, keys));
  }
  std::string_view value = std::string_view(text).substr(at + 1);
  if (value.ends_with('%')) {
    rule.unit = FailRule::Unit::percent;
    value.remove_suffix(1);
  } else if (value.ends_with("pt")) {
    rule.unit = FailRule::Unit::points;
    value.remove_suffix(2);
    if (find_run_key(rule.key)->kind != KeyKind::share)
      reject_rule(text, rule.key + " is no share; it takes % or a number");
  }
  if (value.starts_with('+')) value.remove_prefix(1);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rule.limit);
  if (error != std::errc() || end != value.data() + value.size() || !known(rule.limit)) {
    reject_rule(text, "the change is not a number, with pt or % after it");
  }
  return rule;
}

double number_at(const RunValues& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? kUnknown : found->second.number;
}

std::string change_text(const FailRule& rule, double change) {
  const char* direction = change < 0 ? "lower" : "higher";
  const double size = std::fabs(change);
  if (rule.unit == FailRule::Unit::points) return fmt::format("{:.2f} points {}", size, direction);
  if (rule.unit == FailRule::Unit::percent) return fmt::format("{:.1f} % {}", size, direction);
  return fmt::format("{:.4g} {}", size, direction);
}

}  // namespace

std::vector<FailRule> parse_fail_rules(const std::string& text) {
  std::vector<FailRule> rules;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    rules.push_back(parse_rule(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return rules;
}

std::string broken_rule(const FailRule& rule, const RunValues& run, const RunValues& baseline) {
  const double now = number_at(run, rule.key);
  const double before = number_at(baseline, rule.key);
  if (!known(now) || !known(before)) {
    return fmt::format("{} of {} is not known (rule {})", rule.key, known(now) ? "the baseline" : "the run", rule.text);
  }
  double change = now - before;
  if (rule.unit == FailRule::Unit::points) change *= 100;
  if (rule.unit == FailRule::Unit::percent) change = change == 0 ? 0 : change / std::fabs(before) * 100;
  // Decimal fractions such as 0.9 - 0.895 are not exact: half a point is not more than half a point.
  const double slack = 1e-9 * std::max({1.0, std::fabs(rule.limit)});
  const bool broken = rule.below ? change < rule.limit - slack : change > rule.limit + slack;
  if (!broken) return "";
  return fmt::format("{} is {} (rule {})", rule.key, change_text(rule, change), rule.text);
}

}  // namespace lockstep::records
