// Any text as Slurm's node list or task counts gives a limited list of hosts or a UsageError. The first line is the
// node list, the second the task counts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/address.h"
#include "cluster/launcher_environment.h"
#include "lockstep/error.h"

namespace {

template <class Call>
void attempt(Call call) {
  try {
    call();
  } catch (const lockstep::UsageError&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::cluster;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const std::string nodes = text.substr(0, line);
  const std::string counts = line == std::string::npos ? "" : text.substr(line + 1);
  attempt([&] {
    const auto hosts = expand_node_list(nodes);
    if (hosts.empty() || hosts.size() > kMostTasks) std::abort();
    for (const std::string& host : hosts) {
      if (!lockstep::base::is_host(host)) std::abort();
    }
  });
  attempt([&] {
    if (expand_task_counts(counts).size() > kMostTasks) std::abort();
  });
  attempt([&] {
    const auto ranks = find_ranks({{"SLURM_PROCID", "1"},
                                   {"SLURM_NTASKS", "4"},
                                   {"SLURM_STEP_NODELIST", nodes},
                                   {"SLURM_STEP_TASKS_PER_NODE", counts}});
    if (!ranks) std::abort();
    if (find_problem(spec_of_ranks(*ranks, 1, true))) std::abort();
  });
  return 0;
}
