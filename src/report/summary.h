// The beginning of a report: what was run and what came out, in words. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

#include "report/findings.h"
#include "report/observations.h"

namespace lockstep::report {

/// Tiles with the figures that lead the page.
std::string tiles_html(const Material& material, const std::vector<Finding>& findings);
/// Sentences: counts, then each group.
std::string summary_html(const Material& material, const std::vector<Finding>& findings);
/// A card for each finding: verdict, what the study says, what was measured, why.
std::string findings_html(const std::vector<Finding>& findings);

/// "2026-11-16 04:05 UTC"; empty for 0.
std::string date_text(double seconds);
/// "18 min".
std::string duration_text(double seconds);

}  // namespace lockstep::report
