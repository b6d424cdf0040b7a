// What a step computes and sends: the backward pass in parts, each of which ends with gradients to send. Cut by the
// code that cuts real steps (src/schedule). Plain values.
#pragma once

#include <cstddef>
#include <vector>

#include "predict/training.h"

namespace lockstep::predict {

/// A part of the backward pass, and what follows it.
struct StepPart {
  double share = 0;           ///< of the backward pass
  std::vector<double> bytes;  ///< servers: sent to each of them; all-reduce: one operation's size each
  std::vector<int> messages;  ///< servers: frames to each of them
};

/// Returns the parts for parameter servers; the last one holds the rest and the end of the push.
std::vector<StepPart> push_parts(const Training& training);
/// Returns the parts for all-reduce; an operation starts when its bucket and all before it are complete.
std::vector<StepPart> all_reduce_parts(const Training& training);
/// Returns the bytes that each server holds, on the wire.
std::vector<double> bytes_of_servers(const Training& training);

}  // namespace lockstep::predict
