// The --json output of `show`, `why`, `runs` and `compare`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "records/run_values.h"
#include "records/why.h"

namespace lockstep::tools {

std::string run_json(const records::RunRecord& run);
std::string why_json(const records::RunRecord& run, const records::Diagnosis& diagnosis,
                     const std::optional<records::Comparison>& against);

/// Returns the list of runs: their values by key, and their settings.
std::string runs_json(std::span<const std::string> folders, std::span<const records::RunValues> values);

/// A setting, with its value in each run.
using SettingRow = std::pair<std::string, std::vector<std::string>>;
/// Returns the runs' values, the first one being the baseline, the settings that differ, and the broken rules.
std::string compare_json(const std::vector<records::RunRecord>& runs, const std::vector<SettingRow>& settings,
                         const std::vector<std::string>& failed);

}  // namespace lockstep::tools
