// Asking a member something without being one: the evaluator, and whoever wants to know the run's name.
#pragma once

#include <memory>
#include <string>

#include "allreduce/elastic/elastic_membership.h"
#include "allreduce/elastic/messages.h"
#include "allreduce/elastic/watchdog.h"

namespace lockstep::allreduce::elastic {

/// A stream to a member that has welcomed this process with `kind` (ask_run or visit), and the run's name if it knows
/// one. Throws UsageError where it refused.
base::Result<std::unique_ptr<transport::Stream>> visit(const ElasticOptions& options, int member, Kind kind,
                                                       Watchdog& watchdog, std::string& run);

}  // namespace lockstep::allreduce::elastic
