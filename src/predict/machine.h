// The machine that emulated nodes share: its cores go evenly to the nodes that compute, each as much as it can use.
// Single-threaded.
#pragma once

#include <vector>

#include "predict/training.h"

namespace lockstep::predict {

class NodeCpu;

class Machine {
 public:
  explicit Machine(double cores) : cores_(cores) {}

  void add(NodeCpu& node) { nodes_.push_back(&node); }
  /// Divides the cores anew, because a node computes more or less than before.
  void divide();

 private:
  double cores_;
  std::vector<NodeCpu*> nodes_;
};

}  // namespace lockstep::predict
