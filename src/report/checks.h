// The tests of findings: each takes the cases of an experiment and decides whether it holds in them, with their
// numbers. Internal to this room. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

#include "lab/fields.h"
#include "report/findings.h"
#include "report/judgement.h"
#include "report/observations.h"
#include "report/run_folders.h"

namespace lockstep::report {

/// One side of a comparison, used for the reasons of a finding.
struct Side {
  std::string name;
  Observations members;
};

struct Checked {
  Verdict verdict = Verdict::unjudged;
  std::string sentence;
  std::vector<Side> sides = {};
  bool failing_alone = false;  ///< the sides hold only the cases that fail, while others hold
  bool too_few = false;        ///< it was not judged for want of repeats
  size_t cases = 1;
  size_t decided = 0;  ///< cases that are neither within noise nor not judged
};

Checked check(const Material& material, RunFolders& folders, const lab::FindingTest& test);

std::vector<Finding> check_findings(const Material& material, RunFolders& folders);

/// The result of a test in one case.
struct Outcome {
  Verdict verdict = Verdict::unjudged;
  std::string where;  ///< "batch 32"; empty if there is only one case
  std::string text;   ///< the measured values, and why they decide nothing
  std::vector<Side> sides = {};
  bool too_few = false;  ///< it has a figure, but too few repeats to judge it

  /// Takes over a judgement and its note.
  void take(const Judgement& judgement);
};

/// Combines verdicts: decided cases all hold, all fail, or both occur. At least half of the judged cases must be
/// decided, otherwise the whole is within noise. Cases that were not judged do not count. Readers are told how many
/// cases were decided (verdict_text).
Verdict verdict_of(const std::vector<Verdict>& verdicts);
/// Combines outcomes into "WHAT: WHERE: TEXT; WHERE: TEXT, CLAIM: holds in 2 of 3 cases.", with the sides of the cases
/// that do not hold, if any.
Checked checked_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim);

// One function per kind of test (checks_pairs.cpp, checks_series.cpp, checks_workers.cpp, checks_curves.cpp).
Checked check_pairs(const Material& material, const lab::FindingTest& test);
Checked check_trend(const Material& material, const lab::FindingTest& test);
Checked check_value(const Material& material, const lab::FindingTest& test);
Checked check_spread(const Material& material, const lab::FindingTest& test);
Checked check_extreme(const Material& material, const lab::FindingTest& test);
Checked check_slope(const Material& material, const lab::FindingTest& test);
/// Reads the curves from the runs' folders.
Checked check_curves(const Material& material, RunFolders& folders, const lab::FindingTest& test);

/// Returns what the test is about: runs, their workers or their machines.
lab::Per part_of(const lab::FindingTest& test);
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
/// Returns the values that the test allows by at_least and at_most.
statistics::Region bounds_of(const lab::FindingTest& test);
/// Returns the differences that count as `is`: less, greater or same by more than `within`; all others are different.
statistics::Region differences_of(const std::string& is, double within);
/// Returns the verdict on the difference between two sides: less, greater, same or different.
Judgement judge_difference(const statistics::Estimate& difference, const std::string& is, double within);
/// Returns the sentence for a test of which nothing is known.
Checked nothing_known(const std::string& what, const std::string& why);
/// Returns the case of the other side with the same key; nullptr if there is none.
const Case* partner(const std::vector<Case>& cases, const Key& key);
/// Returns the cases by the fields of the test, or one per variation.
std::vector<Case> cases_of(const lab::FindingTest& test, const Observations& observations);
std::string case_name(const lab::FindingTest& test, const Case& each, bool with_group);

}  // namespace lockstep::report
