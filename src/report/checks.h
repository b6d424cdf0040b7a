// The tests of findings: each takes the cases of an experiment and decides whether it holds in them, with their
// numbers. Internal to this room. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

#include "lab/fields.h"
#include "report/findings.h"
#include "report/observations.h"
#include "report/run_folders.h"

namespace lockstep::report {

/// One side of a comparison, used for the reasons of a finding.
struct Side {
  std::string name;
  Observations members;
};

struct Checked {
  Verdict verdict = Verdict::unknown;
  std::string sentence;
  std::vector<Side> sides = {};
  bool failing_alone = false;  ///< the sides hold only the cases that fail, while others hold
};

Checked check(const Material& material, const lab::FindingTest& test);

std::vector<Finding> check_findings(const Material& material, RunFolders& folders);

/// The result of a test in one case.
struct Outcome {
  Verdict verdict = Verdict::unknown;
  std::string where;  ///< "batch 32"; empty if there is only one case
  std::string text;   ///< the measured values
  std::vector<Side> sides = {};
};

/// Combines verdicts: all hold, some, none. Ignores unknown ones among others.
Verdict verdict_of(const std::vector<Verdict>& verdicts);
/// Combines outcomes into "WHAT: WHERE: TEXT; WHERE: TEXT, CLAIM: holds in 2 of 3 cases.", with the sides of the cases
/// that do not hold, if any.
Checked checked_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim);

// One function per kind of test (checks_pairs.cpp, checks_series.cpp).
Checked check_pairs(const Material& material, const lab::FindingTest& test);
Checked check_trend(const Material& material, const lab::FindingTest& test);
Checked check_value(const Material& material, const lab::FindingTest& test);
Checked check_spread(const Material& material, const lab::FindingTest& test);
Checked check_extreme(const Material& material, const lab::FindingTest& test);

/// Returns whether the test is about workers rather than runs.
bool is_per_worker(const lab::FindingTest& test);
/// Returns the conditions of a filter that another filter does not have: "nodes 3, mode sync".
std::string describe(const lab::Filter& filter, const lab::Filter& other);
/// Returns " in softmax, lenet"; empty without groups.
std::string place_of(const lab::Filter& filter);
/// Returns the difference that `within` limits: of shares a - b, otherwise (a - b) / b; infinite if b is 0.
double difference(double a, double b, lab::Unit unit);
/// "+33 %", "-1.50 points", "12 times as much".
std::string difference_text(double a, double b, lab::Unit unit);
/// Returns why nothing is known: the runs that are missing.
std::string what_is_missing(const Material& material, const lab::Filter& filter, const std::string& field);
/// Returns "at least 0.9, at most 1".
std::string bounds_text(const lab::FindingTest& test, lab::Unit unit);
/// Returns "5 %"; for shares "5 points".
std::string limit_text(double within, lab::Unit unit);
bool within_bounds(const lab::FindingTest& test, double value);

}  // namespace lockstep::report
