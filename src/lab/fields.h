// The fields that tables, plots and findings may name: given values (settings, tags, label, group, repeat) and measured
// values (this list). The table also generates the field list in docs/experiments.md. Constant; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lockstep::lab {

enum class Unit : uint8_t { none, share, seconds, bytes, bytes_per_second, percent, count, times };

/// Why repeats of a run differ in a field.
enum class Varies : uint8_t {
  time,    ///< measured: timing, load, memory
  seed,    ///< random numbers
  nothing  ///< counted: equal settings give equal values, so one run tells it
};

struct FieldDef {
  std::string_view name;   ///< "epoch_seconds"
  std::string_view title;  ///< "time of an epoch"
  Unit unit = Unit::none;
  bool of_worker = false;  ///< measured for each training role, too
  std::string_view help;
  Varies varies = Varies::time;
};

const std::vector<FieldDef>& fields();
/// Returns nullptr if it is not a measured field.
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

/// Measures all fields of a run that ended; unknown ones are absent.
RunMeasured measure(const records::RunRecord& run);

}  // namespace lockstep::lab
