#include "ps/optimizer_pass.h"

#include <algorithm>
#include <cmath>

#include "optim/update_kernels.h"

namespace lockstep::ps {

std::vector<std::string> slot_names_of(const optim::OptimizerSettings& settings) {
  std::vector<std::string> names;
  for (const optim::StateSlot& slot : optim::make_optimizer(settings, 1)->state()) names.emplace_back(slot.name);
  return names;
}

void update_version(const optim::OptimizerSettings& settings, const VersionSpans& from, const VersionSpans& to,
                    std::span<const float> gradient, const optim::Update& update) {
  std::ranges::copy(from.parameters, to.parameters.begin());
  for (size_t i = 0; i < kMostSlots; ++i) std::ranges::copy(from.slots[i], to.slots[i].begin());
  update_in_place(settings, to, gradient, update);
}

[[gnu::noinline]] void update_in_place(const optim::OptimizerSettings& settings, const VersionSpans& block,
                                       std::span<const float> gradient, const optim::Update& update) {
  float* params = block.parameters.data();
  const size_t count = gradient.size();
  if (settings.method == optim::Method::sgd) {
    const optim::SgdUpdate step{1.0F - update.learning_rate * settings.weight_decay,
                                update.learning_rate * update.gradient_scale};
    return optim::sgd_update(step, params, gradient.data(), count, 1);
  }
  if (settings.method == optim::Method::momentum) {
    const optim::MomentumUpdate step{update.gradient_scale, settings.weight_decay, settings.momentum,
                                     update.learning_rate, settings.nesterov};
    return optim::momentum_update(step, params, block.slots[0].data(), gradient.data(), count, 1);
  }
  const auto t = static_cast<double>(update.step + 1);
  optim::AdamUpdate step;
  step.scale = update.gradient_scale;
  step.decay = settings.weight_decay;
  step.epsilon = settings.epsilon;
  step.rest1 = static_cast<float>(1 - settings.beta1);
  step.beta2 = static_cast<float>(settings.beta2);
  step.rest2 = static_cast<float>(1 - settings.beta2);
  step.rate = static_cast<float>(update.learning_rate / (1 - std::pow(settings.beta1, t)));
  step.root = static_cast<float>(1 / std::sqrt(1 - std::pow(settings.beta2, t)));
  optim::adam_update(step, params, block.slots[0].data(), block.slots[1].data(), gradient.data(), count, 1);
}

}  // namespace lockstep::ps
