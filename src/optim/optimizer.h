// Optimizers: how gradients change parameters. An Optimizer is one fused pass over contiguous buffers; it owns its
// state (momentum, moments) and borrows parameters and gradients for the call only. It runs where the parameters live:
// in the worker, or on a parameter server that holds a slice. One thread calls it at a time; large passes use the
// process's thread pool. Each element's result depends on that element alone, so any split of the work gives the same
// bits.
//
// To add an optimizer: a Method and its name here, its arithmetic in update_kernels.{h,cpp}, its class in
// optimizer.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::optim {

enum class Method : uint8_t { sgd, momentum, adam };

/// "sgd", "momentum", "adam".
std::string_view name(Method method);
/// Throws UsageError that suggests the nearest name.
Method parse_method(std::string_view text);
const std::vector<std::string>& method_names();

struct OptimizerSettings {
  Method method = Method::sgd;
  float momentum = 0.9F;  ///< for `momentum`
  bool nesterov = false;
  double beta1 = 0.9;  ///< for `adam`; double, since 1 - beta2 would lose four digits in float
  double beta2 = 0.999;
  float epsilon = 1e-8F;
  float weight_decay = 0;  ///< L2: adds weight_decay * parameter to each gradient
};

struct Update {
  uint64_t step = 0;  ///< updates made before this one
  float learning_rate = 0;
  float gradient_scale = 1;  ///< multiplies every gradient first: clipping, averaging
};

/// A named part of an optimizer's state, one value per parameter.
struct StateSlot {
  std::string_view name;
  std::span<float> values;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates parameters [first, first + parameters.size()) of those this optimizer serves; both spans hold just that
  /// range. Throws UsageError where the spans differ in length or reach past the end.
  virtual void apply(size_t first, std::span<float> parameters, std::span<const float> gradients,
                     const Update& update) = 0;
  void apply(std::span<float> parameters, std::span<const float> gradients, const Update& update) {
    apply(0, parameters, gradients, update);
  }

  /// The state in a fixed order, for checkpoints; empty for plain SGD.
  [[nodiscard]] virtual std::vector<StateSlot> state() = 0;
};

/// An optimizer for `count` parameters that may use `threads` threads. Throws UsageError for settings out of range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, size_t count, int threads = 1);

/// How many floats of state an optimizer keeps per parameter.
int state_slots(Method method);

}  // namespace lockstep::optim
