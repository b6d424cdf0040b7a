// Reads the folders of an experiment's runs, each once, when first needed. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lab/results.h"
#include "records/run_record.h"

namespace lockstep::report {

class RunFolders {
 public:
  /// Returns nullptr if the folder is gone or is not a run. Borrowed from this object.
  const records::RunRecord* record(const lab::RunResult& run);

 private:
  std::map<std::string, std::optional<records::RunRecord>> records_;
};

}  // namespace lockstep::report
