// How many files a process may need to open, by what it does, and a check before it starts. The numbers were measured
// and rounded up: connections take several descriptors each. Free functions, any thread.
#pragma once

#include "cluster/spec.h"

namespace lockstep::launch {

/// Throws LimitError where this process may open too few files for the role.
void check_open_files_of(const cluster::Spec& spec, const cluster::Task& task);
/// The same for a launcher and, where they are `local`, all of its roles, which inherit its limit.
void check_open_files_of_job(const cluster::Spec& spec, bool local);
/// The same for a training in one process.
void check_open_files_alone();

}  // namespace lockstep::launch
