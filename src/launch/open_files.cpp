#include "launch/open_files.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace lockstep::launch {
namespace {

constexpr uint64_t kTraining = 20;  ///< logs, checkpoints, data, libraries
constexpr uint64_t kAccepted = 10;  ///< at a server, per member or evaluator
constexpr uint64_t kConnected = 6;  ///< at a client, per server
constexpr uint64_t kMeshed = 7;     ///< in an all-reduce, per member

std::string plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

void check_open_files_of(const cluster::Spec& spec, const cluster::Task& task) {
  const size_t members = spec.members().size();
  const size_t guests = members + spec.evaluator.size();
  const std::string workers = plural(members, "worker");
  if (task.role == cluster::Role::ps) {
    base::check_open_files(kTraining + kAccepted * guests + kConnected * (spec.ps.size() - 1),
                           "a parameter server with " + workers);
  } else if (!spec.ps.empty()) {
    base::check_open_files(kTraining + kConnected * spec.ps.size(),
                           fmt::format("{} with {}", task.str(), plural(spec.ps.size(), "parameter server")));
  } else {
    base::check_open_files(kTraining + kMeshed * guests - 2, "an all-reduce of " + workers);
  }
}

void check_open_files_of_job(const cluster::Spec& spec, bool local) {
  const size_t roles = spec.tasks().size();
  if (local) {
    for (const cluster::Task& task : spec.tasks()) check_open_files_of(spec, task);
  }
  base::check_open_files(kTraining + (local ? 3 : 4) * roles, "a launcher of " + plural(roles, "role"));
}

void check_open_files_alone() { base::check_open_files(kTraining, "a training"); }

}  // namespace lockstep::launch
