// Optimizers: how gradients change parameters.
//
// `apply_update` is one fused pass over contiguous buffers that the caller owns, from one set into another or in place.
// An Optimizer adds the state (momentum, moments), which it owns; it borrows parameters and gradients for the call
// only. It runs in the process that holds the parameters: the worker, or a parameter server with a slice of them. One
// thread at a time calls an Optimizer; large passes use the process's thread pool. Each element's result depends on
// that element alone, so any split of the work gives the same bits.
//
// To add an optimizer: a Method, its name and its slots here, its arithmetic in update_kernels.{h,cpp}, its case in
// optimizer.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shares.h"
#include "tensor/buffer.h"

namespace lockstep::optim {

enum class Method : uint8_t { sgd, momentum, adam };

/// Returns "sgd", "momentum" or "adam".
std::string_view name(Method method);
/// Returns the method of that name. Throws UsageError with the nearest name as a suggestion.
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
  float gradient_scale = 1;  ///< factor applied to every gradient first: clipping, averaging
};

/// Throws UsageError for settings out of range.
void check(const OptimizerSettings& settings);

constexpr size_t kMostSlots = 2;

/// Returns the names of a method's state slots, in a fixed order; each slot has one value per parameter. None for plain
/// SGD.
std::span<const std::string_view> slot_names(Method method);

/// Parameters and the method's slots, all of one length.
template <class Float>
struct Block {
  std::span<Float> parameters;
  std::array<std::span<Float>, kMostSlots> slots{};

  operator Block<const float>() const { return {parameters, {slots[0], slots[1]}}; }
};

/// Reads `from` and writes `to`. They may be the same memory but must not overlap in part. The result has the same
/// bits in place or not.
/// Throws UsageError if lengths differ. Does not check the settings.
void apply_update(const OptimizerSettings& settings, const Update& update, const Block<const float>& from,
                  std::span<const float> gradients, const Block<float>& to, int threads = 1);

/// A named part of an optimizer's state.
struct StateSlot {
  std::string_view name;
  std::span<float> values;
};

class Optimizer {
 public:
  /// Throws UsageError for settings out of range.
  Optimizer(const OptimizerSettings& settings, size_t count, int threads);

  /// Gives each of two threads runs of parameters for updates of all of them; the rest goes to the one with less.
  /// Throws UsageError for runs that overlap or reach past the end. Any other number of threads keeps equal parts,
  /// since parts of rows share cache lines: then the runs are not looked at.
  void divide(const std::vector<base::Shares>& by_thread);

  /// Updates parameters [first, first + parameters.size()) of this optimizer's parameters; both spans hold just that
  /// range. Throws UsageError if the spans differ in length or reach past the end.
  void apply(size_t first, std::span<float> parameters, std::span<const float> gradients, const Update& update);
  void apply(std::span<float> parameters, std::span<const float> gradients, const Update& update) {
    apply(0, parameters, gradients, update);
  }

  /// Returns the state, for checkpoints.
  [[nodiscard]] std::vector<StateSlot> state();

 private:
  OptimizerSettings settings_;
  size_t count_;
  int threads_;
  std::vector<Buffer> slots_;
  std::vector<base::Shares> division_;  ///< by thread; empty: equal parts
};

/// Returns an optimizer for `count` parameters that may use `threads` threads. Throws UsageError for settings out of
/// range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, size_t count, int threads = 1);

/// Returns the number of floats of state per parameter.
int state_slots(Method method);

}  // namespace lockstep::optim
