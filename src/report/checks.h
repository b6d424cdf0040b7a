// The tests of findings: each takes the cases of an experiment and says whether it holds in them, with their numbers.
// Only this room uses it. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

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
};

Checked check(const Material& material, const lab::FindingTest& test);

std::vector<Finding> check_findings(const Material& material, RunFolders& folders);

/// In one case of a test.
struct Outcome {
  Verdict verdict = Verdict::unknown;
  std::string where;  ///< "batch 32"; empty where there is only one
  std::string text;   ///< with its numbers
};

/// All hold, some, none; what is unknown among others is passed over.
Verdict verdict_of(const std::vector<Outcome>& outcomes);
/// "WHAT: WHERE TEXT; WHERE TEXT: holds in 2 of 3 cases."
std::string sentence_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim);

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
/// (a - b) / the larger of their sizes: from -1 to 1 for numbers of one sign.
double relative_difference(double a, double b);
/// Why nothing can be said: which runs are missing.
std::string what_is_missing(const Material& material, const lab::Filter& filter, const std::string& field);
/// "at least 0.9, at most 1"
std::string bounds_text(const lab::FindingTest& test, lab::Unit unit);
/// "5 %"
std::string limit_text(double within);
bool within_bounds(const lab::FindingTest& test, double value);

}  // namespace lockstep::report
