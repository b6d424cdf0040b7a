// Decides whether the findings of a study hold in an experiment's results, and why, from the measured fields alone.
// Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "lab/results.h"

namespace lockstep::report {

enum class Verdict : uint8_t {
  holds,
  partly,   ///< decided yes in some cases or tests, decided no in others
  fails,    ///< decided no
  noise,    ///< the repeats scatter too much to decide
  unjudged  ///< one run of a quantity that varies, or runs or figures are missing
};
std::string_view name(Verdict verdict);

struct Finding {
  const lab::FindingSpec* spec = nullptr;
  Verdict verdict = Verdict::unjudged;
  std::vector<std::string> sentences;  ///< one per test: measured values with their numbers
  std::vector<std::string> reasons;    ///< from the explaining fields and from the diagnoses of the runs
  size_t cases = 0;                    ///< of all tests
  size_t decided = 0;                  ///< of them, neither within noise nor not judged
};

/// Returns whether the verdict is that of the decided cases, but other cases are undecided.
bool passes_over_cases(const Finding& finding);
/// Returns the verdict, with the decided cases if there are others: "holds (3 of 5 cases decided)".
std::string verdict_text(const Finding& finding);

std::vector<Finding> check_findings(const lab::Results& results);

}  // namespace lockstep::report
