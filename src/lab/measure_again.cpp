#include "lab/measure_again.h"

#include <fmt/format.h>

#include <optional>

#include "base/file.h"
#include "lab/database.h"
#include "lab/noise.h"
#include "lockstep/error.h"
#include "records/run_record.h"

namespace lockstep::lab {
namespace {

/// Returns nothing for a run whose figures cannot be read from its folder alone.
std::optional<RunMeasured> from_folder(const RunResult& run) {
  if (run.plan.is_guest() || run.folder.empty()) return std::nullopt;
  try {
    const records::RunRecord record = records::read_run(run.folder);
    RunMeasured measured = measure(record);
    if (record.state != records::RunState::ended || !measured.values.contains("steps")) return std::nullopt;
    keep_noise(run.measured.values, measured.values);
    return measured;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

MeasuredAgain measure_again(const std::string& lab_dir, int64_t experiment) {
  Database database(lab_dir, Database::Access::write);
  const Results before = database.results(experiment);
  const std::optional<base::LockFile> lock = base::LockFile::try_lock(before.folder + "/.lock");
  if (!lock) throw UsageError(fmt::format("a lab is running {} in {}; wait for it", before.experiment.name, lab_dir));
  const Results results = database.results(experiment);  // a lab that ended before the lock may have stored more
  MeasuredAgain outcome;
  for (const RunResult& run : results.runs) {
    if (run.state != RunState::done) continue;
    const std::optional<RunMeasured> measured = from_folder(run);
    if (measured) database.measured(experiment, run.plan.key, *measured);
    ++(measured ? outcome.runs : outcome.kept);
  }
  return outcome;
}

}  // namespace lockstep::lab
