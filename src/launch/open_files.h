// Checks before the start whether a process may open enough files for its work. The numbers were measured and rounded
// up: each connection takes several descriptors. Free functions, any thread.
#pragma once

#include "cluster/spec.h"

namespace lockstep::launch {

/// Throws LimitError if this process may open too few files for the role.
void check_open_files_of(const cluster::Spec& spec, const cluster::Task& task);
/// Checks a launcher and, if they are `local`, all of its roles, which inherit its limit.
void check_open_files_of_job(const cluster::Spec& spec, bool local);
/// Checks a training in one process.
void check_open_files_alone();

}  // namespace lockstep::launch
