// The tests of findings: each takes the cases of an experiment and says whether it holds in them, with their numbers.
// Only this room uses it. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

#include "lab/fields.h"
#include "report/findings.h"
#include "report/observations.h"
#include "report/run_folders.h"

namespace lockstep::report {

/// What a test set against each other, for reasons.
struct Side {
  std::string name;
  Observations members;
};

struct Checked {
  Verdict verdict = Verdict::unknown;
  std::string sentence;
  std::vector<Side> sides = {};
  bool failing_alone = false;  ///< the sides are of the cases that do not hold, while others do
};

Checked check(const Material& material, const lab::FindingTest& test);

std::vector<Finding> check_findings(const Material& material, RunFolders& folders);

/// In one case of a test.
struct Outcome {
  Verdict verdict = Verdict::unknown;
  std::string where;  ///< "batch 32"; empty where there is only one
  std::string text;   ///< with its numbers
  std::vector<Side> sides = {};
};

/// All hold, some, none; what is unknown among others is passed over.
Verdict verdict_of(const std::vector<Verdict>& verdicts);
/// "WHAT: WHERE: TEXT; WHERE: TEXT, CLAIM: holds in 2 of 3 cases.", with the sides of the cases that do not hold, if
/// any.
Checked checked_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim);

// By kind (checks_pairs.cpp, checks_series.cpp).
Checked check_pairs(const Material& material, const lab::FindingTest& test);
Checked check_trend(const Material& material, const lab::FindingTest& test);
Checked check_value(const Material& material, const lab::FindingTest& test);
Checked check_spread(const Material& material, const lab::FindingTest& test);
Checked check_extreme(const Material& material, const lab::FindingTest& test);

/// Whether the test is of workers rather than of runs.
bool is_per_worker(const lab::FindingTest& test);
/// "nodes 3, mode sync": what a filter asks for and another does not.
std::string describe(const lab::Filter& filter, const lab::Filter& other);
/// " in softmax, lenet"; empty without groups.
std::string place_of(const lab::Filter& filter);
/// What `within` limits: of shares a - b, of all others (a - b) / b. Infinite against 0.
double difference(double a, double b, lab::Unit unit);
/// "+33 %", "-1.50 points", "12 times as much".
std::string difference_text(double a, double b, lab::Unit unit);
/// Why nothing can be said: which runs are missing.
std::string what_is_missing(const Material& material, const lab::Filter& filter, const std::string& field);
/// "at least 0.9, at most 1"
std::string bounds_text(const lab::FindingTest& test, lab::Unit unit);
/// "5 %", of shares "5 points".
std::string limit_text(double within, lab::Unit unit);
bool within_bounds(const lab::FindingTest& test, double value);

}  // namespace lockstep::report
