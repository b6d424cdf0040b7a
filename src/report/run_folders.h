// The folders of an experiment's runs, each read once, when it is needed first. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lab/results.h"
#include "records/run_record.h"

namespace lockstep::report {

class RunFolders {
 public:
  /// nullptr where the folder is gone or holds no run. Borrowed from this.
  const records::RunRecord* record(const lab::RunResult& run);

 private:
  std::map<std::string, std::optional<records::RunRecord>> records_;
};

}  // namespace lockstep::report
