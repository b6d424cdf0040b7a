// What `lockstep profile` measures of a machine: how long a step computes by batch and threads, how fast memory and
// loopback are, what a message and a byte cost. A JSON file that `lockstep plan` reads. Plain values and free
// functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/training.h"

namespace lockstep::plan {

/// Means of a step, in seconds.
struct ComputePoint {
  int64_t batch = 0;
  int threads = 1;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double spread = 0;  ///< standard deviation of the logarithm of the times
};

struct ModelProfile {
  std::string model = {};
  std::vector<predict::Tensor> tensors = {};  ///< with the shares of the backward pass after which gradients are final
  std::vector<ComputePoint> points = {};
  double memory_fixed = 0;  ///< bytes of parameters, gradients, optimizer
  double memory_each = 0;   ///< bytes of a step per example
};

struct Profile {
  std::string host = {};
  std::string isa = {};
  int cores = 1;
  double memory_bytes = 0;
  double memory_rate = 0;  ///< bytes copied per second by one thread
  double link_rate = 0;    ///< bytes per second between two processes of this machine
  predict::Costs costs = {};
  std::vector<ModelProfile> models = {};

  /// Returns nullptr if the model was not profiled.
  [[nodiscard]] const ModelProfile* model(const std::string& name) const;
};

/// A machine, as far as a profile of it is recognised.
struct MachineKind {
  std::string host = {};
  std::string isa = {};
  int cores = 1;
};
/// Returns a note that the profile in `file` is of another machine than `here`; empty if it is of this one.
std::string note_of_other_machine(const Profile& profile, const std::string& file, const MachineKind& here);

/// The file that `profile` writes and `plan` reads unless another is named.
constexpr const char* kProfileFile = "lockstep-profile.json";

std::string to_json(const Profile& profile);
/// Throws DataError "FILE: ..." for anything that is no profile.
Profile parse_profile(const std::string& text, const std::string& file);

}  // namespace lockstep::plan
