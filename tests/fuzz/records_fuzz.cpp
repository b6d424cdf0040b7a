// The readers of a run's logs and summary must answer any bytes with a value or a typed error, and the rules of
// `lockstep why` must accept every value. The first byte chooses the file.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/error.h"
#include "records/why.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace records = lockstep::records;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  records::RunRecord run;
  run.roles.resize(2);
  run.roles[0].role = "worker:0";
  run.roles[1].role = "ps:0";
  records::RoleRecord& role = run.roles[data[0] / 4 % 2];
  try {
    std::string problem;
    if (data[0] % 4 == 0) {
      role.summary = records::parse_summary(text, "summary.json");
      role.phases = role.summary.phases;
      role.resources = role.summary.resources;
      role.samples = role.summary.number("resources.samples");
    } else {
      role.steps = records::CsvTable::parse_what_fits(text, "steps.csv", problem);
      role.evals = role.steps;
      role.phase_log = role.steps;
      role.monitor.append(role.steps);
    }
  } catch (const lockstep::DataError&) {
  }
  if (records::diagnose(run).headline.empty()) __builtin_trap();
  (void)records::compare(run, run);
  return 0;
}
