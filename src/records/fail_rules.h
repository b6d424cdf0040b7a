// Rules that a run must keep against a baseline, for CI: `lockstep compare A B --fail-if 'accuracy<-0.5pt,speed<-5%'`.
// A rule names a key of run_keys(), < or >, and the largest change allowed: in points (pt) of shares, in % of the
// baseline's value, or in the key's own unit. Plain values; any thread.
#pragma once

#include <string>
#include <vector>

#include "records/run_values.h"

namespace lockstep::records {

struct FailRule {
  enum class Unit : uint8_t { own, points, percent };
  std::string text;  ///< as given
  std::string key;
  bool below = true;  ///< fails if the change is less than the limit, otherwise if it is more
  double limit = 0;
  Unit unit = Unit::own;
};

/// Reads rules with commas between. Throws UsageError that names the rule.
std::vector<FailRule> parse_fail_rules(const std::string& text);

/// Returns what is wrong with a run by the rule: "accuracy is 0.60 points lower (rule accuracy<-0.5pt)"; empty if the
/// rule is kept. A value that one of the runs lacks breaks the rule.
std::string broken_rule(const FailRule& rule, const RunValues& run, const RunValues& baseline);

}  // namespace lockstep::records
