// Ranks of MPI: how this program starts a job of them on this machine, and what the user types to go on with one. Plain
// values and free functions, any thread.
#pragma once

#include <string>

#include "cluster/launcher_environment.h"
#include "launch/local_launch.h"

namespace lockstep::launch {

/// One process, mpirun, whose ranks are the workers of the job's spec. Nothing of it listens beyond this machine.
/// `environment` is this process's: what it says of another launcher is kept from mpirun.
RoleProcess mpi_job(const LocalJob& job, const cluster::Environment& environment);

/// What starts this process's job again: "mpirun -n 4 lockstep train --resume runs/lenet-3".
/// `more` are further words that the run itself does not keep.
std::string resume_command(const cluster::Environment& environment, const std::string& program,
                           const std::string& run_dir, const std::string& more = "");

}  // namespace lockstep::launch
