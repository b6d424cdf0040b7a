// The --json output of `show` and `why`.
#pragma once

#include <optional>
#include <string>

#include "records/run_record.h"
#include "records/why.h"

namespace lockstep::tools {

std::string run_json(const records::RunRecord& run);
std::string why_json(const records::RunRecord& run, const records::Diagnosis& diagnosis,
                     const std::optional<records::Comparison>& against);

}  // namespace lockstep::tools
