// The fields that tables, plots and findings may name: what was set (settings, tags, label, group, repeat) and what was
// measured (this list). One visible table, which also makes the part of docs/experiments.md. Constant; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lockstep::lab {

enum class Unit : uint8_t { none, share, seconds, bytes, bytes_per_second, percent, count, times };

struct FieldDef {
  std::string_view name;   ///< "epoch_seconds"
  std::string_view title;  ///< "time of an epoch"
  Unit unit = Unit::none;
  bool of_worker = false;  ///< measured for each role that trains, too
  std::string_view help;
};

const std::vector<FieldDef>& fields();
/// nullptr where it is no measured field.
const FieldDef* find_field(std::string_view name);
/// " (did you mean 'x'?)" or empty.
std::string field_hint(std::string_view name);

using Measured = std::map<std::string, double, std::less<>>;
struct RoleMeasured {
  std::string role;  ///< "worker:0", "ps:0", "process"
  std::string node;  ///< "node1"; the host without emulation
  Measured values;
};
struct RunMeasured {
  Measured values;
  std::vector<RoleMeasured> roles;
};

/// All fields of a run that ended; those that are not known are absent.
RunMeasured measure(const records::RunRecord& run);

}  // namespace lockstep::lab
