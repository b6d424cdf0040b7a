#include "launch/mpi_launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "launch/ssh_launch.h"

namespace lockstep::launch {
namespace {

// mpirun prints no error texts of its own, because the failed rank has printed one. It uses no other machines, network
// interfaces or ssh. There may be more ranks than cores; the system schedules them.
// clang-format off
const std::vector<std::string> kMpirun{
    "mpirun", "-q", "--oversubscribe", "--bind-to", "none",
    "--mca", "plm", "isolated",
    "--mca", "oob_tcp_if_include", "lo",
    "--mca", "pml", "ob1",
    "--mca", "btl", "self,vader"};
// clang-format on

bool of_another_launcher(const std::string& name) {
  return name.starts_with("SLURM_") || name.starts_with("PMIX_") || name.starts_with("PMI_") ||
         name.starts_with("OMPI_COMM_") || name.starts_with("OMPI_MCA_orte_") || name.starts_with("OMPI_MCA_ess_");
}

}  // namespace

RoleProcess mpi_job(const LocalJob& job, const cluster::Environment& environment) {
  RoleProcess process;
  process.task = job.spec.chief_task();
  process.group = "mpirun";
  process.interrupt = SIGUSR1;  // mpirun passes it on; other signals make it kill its ranks
  process::Command& command = process.command;
  command.program = "mpirun";
  command.argv = kMpirun;
  if (::geteuid() == 0) command.argv.emplace_back("--allow-run-as-root");
  const std::vector<std::string> ranks{"-n", std::to_string(job.spec.members().size()), job.program};
  command.argv.insert(command.argv.end(), ranks.begin(), ranks.end());
  command.argv.insert(command.argv.end(), job.words.begin(), job.words.end());
  const std::vector<std::string> rest{"--report=json", fmt::format("--threads={}", job.shares.worker_threads),
                                      "--wait-policy=" + waits_of(job)};
  command.argv.insert(command.argv.end(), rest.begin(), rest.end());
  command.environment = {{"TF_CONFIG", ""}};
  for (const auto& [name, value] : environment) {
    if (of_another_launcher(name)) command.environment.emplace_back(name, "");
  }
  return process;
}

std::string resume_command(const cluster::Environment& environment, const std::string& program,
                           const std::string& run_dir, const std::string& more) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::string start;
  if (const std::optional<cluster::Ranks> ranks = cluster::find_ranks(environment)) {
    const bool slurm = ranks->launcher == "Slurm";
    const std::string pmix = slurm && !value("PMIX_RANK").empty() ? " --mpi=pmix" : "";
    start = fmt::format("{}{} -n {} ", slurm ? "srun" : "mpirun", pmix, ranks->size);
  }
  return fmt::format("{}{} train --resume {}{}", start, program, shell_word(run_dir), more.empty() ? "" : " " + more);
}

}  // namespace lockstep::launch
