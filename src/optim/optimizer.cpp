#include "optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/denormals.h"
#include "base/suggest.h"
#include "lockstep/error.h"
#include "optim/update_kernels.h"

namespace lockstep::optim {
namespace {

SgdUpdate sgd_step(const OptimizerSettings& settings, const Update& update) {
  return {1.0F - update.learning_rate * settings.weight_decay, update.learning_rate * update.gradient_scale};
}

MomentumUpdate momentum_step(const OptimizerSettings& settings, const Update& update) {
  return {update.gradient_scale, settings.weight_decay, settings.momentum, update.learning_rate, settings.nesterov};
}

AdamUpdate adam_step(const OptimizerSettings& settings, const Update& update) {
  const auto t = static_cast<double>(update.step + 1);
  AdamUpdate step;
  step.scale = update.gradient_scale;
  step.decay = settings.weight_decay;
  step.epsilon = settings.epsilon;
  step.rest1 = static_cast<float>(1 - settings.beta1);
  step.beta2 = static_cast<float>(settings.beta2);
  step.rest2 = static_cast<float>(1 - settings.beta2);
  step.rate = static_cast<float>(update.learning_rate / (1 - std::pow(settings.beta1, t)));
  step.root = static_cast<float>(1 / std::sqrt(1 - std::pow(settings.beta2, t)));
  return step;
}

void check_lengths(Method method, const Block<const float>& block, size_t count) {
  bool fits = block.parameters.size() == count;
  for (size_t i = 0; i < slot_names(method).size(); ++i) fits = fits && block.slots[i].size() == count;
  if (fits) return;
  throw UsageError(fmt::format("optimizer {}: {} gradients for {} parameters and state of {} and {}", name(method),
                               count, block.parameters.size(), block.slots[0].size(), block.slots[1].size()));
}

void check_range(const char* what, double value, double least, double below) {
  if (value >= least && value < below) return;
  throw UsageError(fmt::format("optimizer: {} {}; at least {} and less than {} is allowed", what, value, least, below));
}

}  // namespace

const std::vector<std::string>& method_names() {
  static const std::vector<std::string> names{"sgd", "momentum", "adam"};
  return names;
}

std::string_view name(Method method) { return method_names()[static_cast<size_t>(method)]; }

Method parse_method(std::string_view text) {
  const auto& names = method_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<Method>(found - names.begin());
  throw UsageError("unknown optimizer '" + std::string(text) + "'" + base::hint(text, names));
}

std::span<const std::string_view> slot_names(Method method) {
  static constexpr std::array<std::string_view, 1> kMomentum{"momentum"};
  static constexpr std::array<std::string_view, 2> kAdam{"first_moment", "second_moment"};
  switch (method) {
    case Method::sgd:
      return {};
    case Method::momentum:
      return kMomentum;
    case Method::adam:
      break;
  }
  return kAdam;
}

int state_slots(Method method) { return static_cast<int>(slot_names(method).size()); }

void check(const OptimizerSettings& settings) {
  constexpr double kAny = 1e30;
  check_range("momentum", settings.momentum, 0, 1);
  check_range("beta1", settings.beta1, 0, 1);
  check_range("beta2", settings.beta2, 0, 1);
  check_range("epsilon", settings.epsilon, 0, kAny);
  check_range("weight decay", settings.weight_decay, 0, kAny);
}

void apply_update(const OptimizerSettings& settings, const Update& update, const Block<const float>& from,
                  std::span<const float> gradients, const Block<float>& to, int threads) {
  const size_t count = gradients.size();
  check_lengths(settings.method, from, count);
  check_lengths(settings.method, to, count);
  const base::FlushDenormals flush;
  const Source source{from.parameters.data(), from.slots[0].data(), from.slots[1].data()};
  const Target target{to.parameters.data(), to.slots[0].data(), to.slots[1].data()};
  switch (settings.method) {
    case Method::sgd:
      return sgd_update(sgd_step(settings, update), source, gradients.data(), target, count, threads);
    case Method::momentum:
      return momentum_update(momentum_step(settings, update), source, gradients.data(), target, count, threads);
    case Method::adam:
      return adam_update(adam_step(settings, update), source, gradients.data(), target, count, threads);
  }
}

Optimizer::Optimizer(const OptimizerSettings& settings, size_t count, int threads)
    : settings_(settings), count_(count), threads_(threads) {
  check(settings);
  for (int i = 0; i < state_slots(settings.method); ++i) slots_.emplace_back(count * sizeof(float));
}

void Optimizer::apply(size_t first, std::span<float> parameters, std::span<const float> gradients,
                      const Update& update) {
  if (parameters.size() != gradients.size() || first > count_ || parameters.size() > count_ - first) {
    throw UsageError(fmt::format("optimizer of {} parameters: cannot update {} parameters from {} on with {} gradients",
                                 count_, parameters.size(), first, gradients.size()));
  }
  Block<float> block{parameters};
  for (size_t i = 0; i < slots_.size(); ++i) {
    block.slots[i] = slots_[i].as<float>().subspan(first, parameters.size());
  }
  apply_update(settings_, update, block, gradients, block, threads_);
}

std::vector<StateSlot> Optimizer::state() {
  std::vector<StateSlot> slots;
  const auto names = slot_names(settings_.method);
  for (size_t i = 0; i < slots_.size(); ++i) slots.push_back({names[i], slots_[i].as<float>().first(count_)});
  return slots;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, size_t count, int threads) {
  return std::make_unique<Optimizer>(settings, count, threads);
}

}  // namespace lockstep::optim
