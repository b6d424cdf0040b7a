// A shard that gets numbered updates, with gradients computed from the number, and the state it must then have.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "optim/update_kernels.h"
#include "ps/parameter_shard.h"

namespace lockstep::ps::testing {

/// Finite values in [-1, 1) that differ for every (number, i).
inline std::vector<float> numbered_values(uint64_t number, size_t count) {
  std::vector<float> values(count);
  uint64_t state = number * 0x9E3779B97F4A7C15ULL + 1;
  for (float& value : values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31F;
  }
  return values;
}

inline optim::Update numbered_update(uint64_t number) { return {number, 0.01F, 0.5F}; }

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Parameters and slots after updates 0 .. of one process, made by the optimizer itself.
class Undisturbed {
 public:
  Undisturbed(const optim::OptimizerSettings& settings, size_t count)
      : optimizer_(optim::make_optimizer(settings, count)), parameters_(numbered_values(1000000, count)) {}

  void advance_to(uint64_t version) {
    for (; version_ < version; ++version_) {
      apply(numbered_values(version_, parameters_.size()), numbered_update(version_));
    }
  }
  void apply(std::span<const float> gradient, const optim::Update& update) {
    optimizer_->apply(parameters_, gradient, update);
  }

  [[nodiscard]] const std::vector<float>& parameters() const { return parameters_; }
  [[nodiscard]] bool equals(const View& view) const {
    bool same = same_bits(view.parameters, parameters_);
    const auto state = optimizer_->state();
    same = same && state.size() == view.slots.size();
    for (size_t i = 0; same && i < state.size(); ++i) same = same_bits(view.slots[i], state[i].values);
    return same;
  }

 private:
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<float> parameters_;
  uint64_t version_ = 0;
};

inline optim::OptimizerSettings settings_of(optim::Method method) {
  optim::OptimizerSettings settings;
  settings.method = method;
  settings.weight_decay = 0.001F;
  return settings;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lockstep::ps::testing
