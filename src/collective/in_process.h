// Replicas as thread groups of one process. Members share memory, so an all-reduce is one pass in which each sums its
// part of all members' data, in the order of ranks.
#pragma once

#include <memory>
#include <vector>

#include "collective/collective.h"

namespace lockstep::collective {

/// Makes a group of `size` members, one per thread that takes part. The members may outlive each other.
std::vector<std::unique_ptr<Collective>> make_in_process_group(int size, const GroupOptions& options = {});

}  // namespace lockstep::collective
