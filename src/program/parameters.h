// The one buffer of all parameters, in plain order, used by checkpoints, exchanges, optimizers and summaries.
#pragma once

#include <span>
#include <vector>

#include "lockstep/graph.h"
#include "tensor/buffer.h"

namespace lockstep::program {

class ParameterStore {
 public:
  /// Parameters in the graph's order, at their initial values: a function of the seed and each parameter's place.
  ParameterStore(std::vector<graph::ParameterInfo> infos, uint64_t seed);

  [[nodiscard]] const std::vector<graph::ParameterInfo>& infos() const { return infos_; }
  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] std::span<float> values() const { return values_.as<float>().first(count_); }
  [[nodiscard]] std::span<float> gradients() const { return gradients_.as<float>().first(count_); }

 private:
  std::vector<graph::ParameterInfo> infos_;
  size_t count_ = 0;
  Buffer values_;
  Buffer gradients_;
};

}  // namespace lockstep::program
