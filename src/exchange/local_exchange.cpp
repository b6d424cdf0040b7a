#include "exchange/local_exchange.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "lockstep/error.h"
#include "optim/update_kernels.h"

namespace lockstep::exchange {

LocalExchange::LocalExchange(program::ParameterStore& parameters, const LocalOptions& options)
    : parameters_(parameters),
      options_(options),
      optimizer_(optim::make_optimizer(options.optimizer, parameters.count(), options.threads)) {
  if (!(options.clip_norm >= 0)) {
    throw UsageError("clip norm is " + std::to_string(options.clip_norm) + "; 0 or more is allowed");
  }
}

void LocalExchange::begin(const StepStart& start) {
  step_ = start.step;
  announced_ = 0;
}

void LocalExchange::ready(program::ParameterRange range, Event /*event*/) { announced_ += range.count; }

base::Result<StepInfo> LocalExchange::finish(const BatchReport& report) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point entered = Clock::now();
  if (announced_ != parameters_.count()) {
    throw Error("exchange: step " + std::to_string(step_) + " announced " + std::to_string(announced_) + " of " +
                std::to_string(parameters_.count()) + " gradients");
  }
  optim::Update update{step_, optim::learning_rate(options_.schedule, step_), 1};
  float norm = std::numeric_limits<float>::quiet_NaN();
  if (options_.clip_norm > 0) update.gradient_scale = clip(norm);
  optimizer_->apply(parameters_.values(), parameters_.gradients(), update);
  StepInfo info;
  info.step = ++step_;
  info.learning_rate = update.learning_rate;
  info.gradient_norm = norm;
  info.group = report;
  info.entered = entered;
  info.spent.optimizer = std::chrono::duration<double>(Clock::now() - entered).count();
  return info;
}

float LocalExchange::clip(float& norm) const {
  constexpr double kTiny = 1e-6;  // as in PyTorch's clip_grad_norm_
  const double length = std::sqrt(optim::sum_of_squares(parameters_.gradients(), options_.threads));
  norm = static_cast<float>(length);
  const double factor = static_cast<double>(options_.clip_norm) / (length + kTiny);
  return factor < 1 ? static_cast<float>(factor) : 1.0F;
}

std::vector<optim::StateSlot> LocalExchange::state() { return optimizer_->state(); }

std::vector<std::string> LocalExchange::slot_names() const {
  std::vector<std::string> names;
  for (const optim::StateSlot& slot : optimizer_->state()) names.emplace_back(slot.name);
  return names;
}

base::Result<Snapshot> LocalExchange::snapshot() {
  Snapshot snapshot;
  snapshot.step = step_;
  snapshot.parameters = parameters_.values();
  snapshot.slots = state();
  return snapshot;
}

}  // namespace lockstep::exchange
