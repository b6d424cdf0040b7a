// MPI ranks: starts a job of them on this machine, and gives the command that resumes one. Plain values and free
// functions, any thread.
#pragma once

#include <string>

#include "cluster/launcher_environment.h"
#include "launch/local_launch.h"

namespace lockstep::launch {

/// Returns one process, mpirun, whose ranks are the workers of the job's spec. It listens only on this machine.
/// `environment`: this process's; variables of another launcher are hidden from mpirun.
RoleProcess mpi_job(const LocalJob& job, const cluster::Environment& environment);

/// Returns the command that starts this process's job again: "mpirun -n 4 lockstep train --resume runs/lenet-3".
/// `more`: further arguments, which the run itself does not keep.
std::string resume_command(const cluster::Environment& environment, const std::string& program,
                           const std::string& run_dir, const std::string& more = "");

}  // namespace lockstep::launch
