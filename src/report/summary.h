// Writes the beginning of a report: the runs and their results, in words. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

#include "report/findings.h"
#include "report/observations.h"

namespace lockstep::report {

/// Returns tiles with the main figures.
/// Returns a warning above everything else if runs were disturbed; otherwise nothing.
std::string banner_html(const lab::Results& results);
std::string tiles_html(const Material& material, const std::vector<Finding>& findings);
/// Returns sentences: counts, then each group.
std::string summary_html(const Material& material, const std::vector<Finding>& findings);
/// Returns a card for each finding: verdict, the study's sentence, measured values, reasons.
std::string findings_html(const std::vector<Finding>& findings);

/// "2026-11-16 04:05 UTC"; empty for 0.
std::string date_text(double seconds);
/// "18 min".
std::string duration_text(double seconds);

}  // namespace lockstep::report
