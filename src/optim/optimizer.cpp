#include "optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "lockstep/error.h"
#include "optim/update_kernels.h"
#include "tensor/buffer.h"

namespace lockstep::optim {
namespace {

/// What all optimizers share: their size, their threads and the check of a range.
class Base : public Optimizer {
 public:
  Base(const OptimizerSettings& settings, size_t count, int threads)
      : settings_(settings), count_(count), threads_(threads) {}

 protected:
  void check(size_t first, std::span<float> parameters, std::span<const float> gradients) const {
    if (parameters.size() == gradients.size() && first <= count_ && parameters.size() <= count_ - first) return;
    throw UsageError(fmt::format("optimizer of {} parameters: asked to update {} from {} on with {} gradients", count_,
                                 parameters.size(), first, gradients.size()));
  }

  OptimizerSettings settings_;
  size_t count_;
  int threads_;
};

class Sgd final : public Base {
 public:
  using Base::Base;

  void apply(size_t first, std::span<float> parameters, std::span<const float> gradients,
             const Update& update) override {
    check(first, parameters, gradients);
    const SgdUpdate step{1.0F - update.learning_rate * settings_.weight_decay,
                         update.learning_rate * update.gradient_scale};
    sgd_update(step, parameters.data(), gradients.data(), parameters.size(), threads_);
  }

  std::vector<StateSlot> state() override { return {}; }
};

class Momentum final : public Base {
 public:
  Momentum(const OptimizerSettings& settings, size_t count, int threads)
      : Base(settings, count, threads), velocity_(count * sizeof(float)) {}

  void apply(size_t first, std::span<float> parameters, std::span<const float> gradients,
             const Update& update) override {
    check(first, parameters, gradients);
    const MomentumUpdate step{update.gradient_scale, settings_.weight_decay, settings_.momentum, update.learning_rate,
                              settings_.nesterov};
    momentum_update(step, parameters.data(), velocity_.as<float>().data() + first, gradients.data(), parameters.size(),
                    threads_);
  }

  std::vector<StateSlot> state() override { return {{"momentum", velocity_.as<float>().first(count_)}}; }

 private:
  Buffer velocity_;
};

class Adam final : public Base {
 public:
  Adam(const OptimizerSettings& settings, size_t count, int threads)
      : Base(settings, count, threads), first_(count * sizeof(float)), second_(count * sizeof(float)) {}

  void apply(size_t first, std::span<float> parameters, std::span<const float> gradients,
             const Update& update) override {
    check(first, parameters, gradients);
    const auto t = static_cast<double>(update.step + 1);
    AdamUpdate step;
    step.scale = update.gradient_scale;
    step.decay = settings_.weight_decay;
    step.epsilon = settings_.epsilon;
    step.rest1 = static_cast<float>(1 - settings_.beta1);
    step.beta2 = static_cast<float>(settings_.beta2);
    step.rest2 = static_cast<float>(1 - settings_.beta2);
    step.rate = static_cast<float>(update.learning_rate / (1 - std::pow(settings_.beta1, t)));
    step.root = static_cast<float>(1 / std::sqrt(1 - std::pow(settings_.beta2, t)));
    adam_update(step, parameters.data(), first_.as<float>().data() + first, second_.as<float>().data() + first,
                gradients.data(), parameters.size(), threads_);
  }

  std::vector<StateSlot> state() override {
    return {{"first_moment", first_.as<float>().first(count_)}, {"second_moment", second_.as<float>().first(count_)}};
  }

 private:
  Buffer first_;
  Buffer second_;
};

void check_range(const char* what, double value, double least, double below) {
  if (value >= least && value < below) return;
  throw UsageError(fmt::format("optimizer: {} {}; at least {} and less than {} is allowed", what, value, least, below));
}

void check_settings(const OptimizerSettings& settings) {
  constexpr double kAny = 1e30;
  check_range("momentum", settings.momentum, 0, 1);
  check_range("beta1", settings.beta1, 0, 1);
  check_range("beta2", settings.beta2, 0, 1);
  check_range("epsilon", settings.epsilon, 0, kAny);
  check_range("weight decay", settings.weight_decay, 0, kAny);
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

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, size_t count, int threads) {
  check_settings(settings);
  switch (settings.method) {
    case Method::sgd:
      return std::make_unique<Sgd>(settings, count, threads);
    case Method::momentum:
      return std::make_unique<Momentum>(settings, count, threads);
    case Method::adam:
      break;
  }
  return std::make_unique<Adam>(settings, count, threads);
}

int state_slots(Method method) {
  switch (method) {
    case Method::sgd:
      return 0;
    case Method::momentum:
      return 1;
    case Method::adam:
      break;
  }
  return 2;
}

}  // namespace lockstep::optim
