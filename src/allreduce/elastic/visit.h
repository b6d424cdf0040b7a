// Asks a member something without being one: for the evaluator, and for processes that need the run's name.
#pragma once

#include <memory>
#include <string>

#include "allreduce/elastic/elastic_membership.h"
#include "allreduce/elastic/messages.h"
#include "allreduce/elastic/watchdog.h"

namespace lockstep::allreduce::elastic {

/// Opens a stream to a member that welcomes this process with `kind` (ask_run or visit). `run` receives the run's name
/// if it knows one. Throws UsageError if the member refused.
base::Result<std::unique_ptr<transport::Stream>> visit(const ElasticOptions& options, int member, Kind kind,
                                                       Watchdog& watchdog, std::string& run);

}  // namespace lockstep::allreduce::elastic
