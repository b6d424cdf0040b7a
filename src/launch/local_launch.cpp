#include "launch/local_launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "authority/launcher_lines.h"
#include "base/cores.h"

namespace lockstep::launch {

std::string cluster_yaml(const cluster::Spec& spec) {
  std::string yaml;
  const auto add = [&](cluster::Role role, const std::vector<std::string>& addresses) {
    if (addresses.empty()) return;
    yaml += fmt::format("{}:\n", name(role));
    for (const std::string& address : addresses) yaml += fmt::format("  - \"{}\"\n", address);
  };
  add(cluster::Role::chief, spec.chief);
  add(cluster::Role::worker, spec.workers);
  add(cluster::Role::ps, spec.ps);
  add(cluster::Role::evaluator, spec.evaluator);
  return yaml;
}

CoreShares share_cores(int cores, const cluster::Spec& spec, int threads, int allowed) {
  const int members = std::max<int>(1, static_cast<int>(spec.members().size()));
  CoreShares shares;
  shares.worker_threads = threads > 0 ? threads : std::max(1, cores / members);
  const int others = static_cast<int>(spec.tasks().size()) - static_cast<int>(spec.members().size());
  shares.all_fit = members * shares.worker_threads + others <= cores;
  const auto even = [&](int of) {
    const int computing = members * shares.worker_threads;
    return computing == of || (members > 1 && of % members == 0 && computing < of);
  };
  shares.apart = others == 0 && shares.all_fit && even(cores) && even(allowed > 0 ? allowed : cores);
  return shares;
}

std::string waits_of(const LocalJob& job) {
  return job.wait_policy != "auto" || job.shares.all_fit ? job.wait_policy : "block";
}

namespace {

int threads_of(const LocalJob& job, const cluster::Task& task) {
  const auto found = job.threads.find(task.str());
  if (found != job.threads.end()) return found->second;
  return task.trains() ? job.shares.worker_threads : 1;
}

}  // namespace

std::vector<RoleProcess> local_roles(const LocalJob& job) {
  std::vector<RoleProcess> roles;
  for (const cluster::Task& task : job.spec.tasks()) {
    process::Command command;
    command.program = job.program;
    command.argv = {job.name};
    command.argv.insert(command.argv.end(), job.words.begin(), job.words.end());
    command.argv.insert(command.argv.end(),
                        {"--cluster=" + job.cluster_file, "--task=" + task.str(), "--report=json",
                         fmt::format("--threads={}", threads_of(job, task)), "--wait-policy=" + waits_of(job)});
    if (job.shares.all_fit && job.shares.apart) {
      command.cores = base::share_of_cores(job.spec.member_index(task), static_cast<int>(job.spec.members().size()));
    }
    command.environment = {{"TF_CONFIG", ""}};  // the cluster is given above
    command.environment.emplace_back(kLaunchedVariable, job.launched > 0 ? fmt::format("{:.3f}", job.launched) : "");
    command.hold_stdin = job.registers;
    command.environment.emplace_back(authority::kLauncherVariable, job.registers ? authority::kLauncherAnswers : "");
    roles.push_back({task, std::move(command)});
  }
  return roles;
}

}  // namespace lockstep::launch
