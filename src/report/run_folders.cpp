#include "report/run_folders.h"

#include "lockstep/error.h"

namespace lockstep::report {

const records::RunRecord* RunFolders::record(const lab::RunResult& run) {
  if (run.folder.empty()) return nullptr;
  const auto [place, fresh] = records_.try_emplace(run.folder);
  if (fresh) {
    try {
      place->second = records::read_run(run.folder);
    } catch (const Error&) {
      place->second.reset();
    }
  }
  return place->second ? &*place->second : nullptr;
}

}  // namespace lockstep::report
