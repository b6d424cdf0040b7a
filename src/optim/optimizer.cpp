#include "optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "base/denormals.h"
#include "base/parallel.h"
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

using Prepared = std::variant<SgdUpdate, MomentumUpdate, AdamUpdate>;

Prepared prepare(const OptimizerSettings& settings, const Update& update) {
  switch (settings.method) {
    case Method::sgd:
      return sgd_step(settings, update);
    case Method::momentum:
      return momentum_step(settings, update);
    case Method::adam:
      break;
  }
  return adam_step(settings, update);
}

void run_update(const Prepared& prepared, const Source& from, const float* gradients, const Target& to, size_t count,
                int threads) {
  if (const auto* sgd = std::get_if<SgdUpdate>(&prepared)) {
    sgd_update(*sgd, from, gradients, to, count, threads);
  } else if (const auto* momentum = std::get_if<MomentumUpdate>(&prepared)) {
    momentum_update(*momentum, from, gradients, to, count, threads);
  } else {
    adam_update(std::get<AdamUpdate>(prepared), from, gradients, to, count, threads);
  }
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

/// Marks the elements of some runs as taken.
void take(const base::Runs& runs, std::vector<bool>& taken) {
  const auto count = static_cast<int64_t>(taken.size());
  for (int64_t run = 0; run < runs.count; ++run) {
    const int64_t begin = runs.first + run * runs.stride;
    const int64_t end = begin + runs.length;
    const bool fits = begin >= 0 && begin <= end && end <= count;
    if (!fits || std::find(taken.begin() + begin, taken.begin() + end, true) != taken.begin() + end) {
      throw UsageError(
          fmt::format("optimizer of {} parameters: cannot give elements {} to {} to one thread", count, begin, end));
    }
    std::fill(taken.begin() + begin, taken.begin() + end, true);
  }
}

int64_t elements(const base::Shares& runs) {
  return std::accumulate(runs.begin(), runs.end(), int64_t{0},
                         [](int64_t sum, const base::Runs& each) { return sum + each.elements(); });
}

/// Gives all that is not taken, in pieces, to the threads with the least.
void give_rest(const std::vector<bool>& taken, std::vector<base::Shares>& by_thread) {
  constexpr int64_t kPiece = 2048;
  std::vector<int64_t> loads;
  for (const base::Shares& runs : by_thread) loads.push_back(elements(runs));
  auto at = taken.begin();
  while ((at = std::find(at, taken.end(), false)) != taken.end()) {
    const auto limit = at + std::min<int64_t>(kPiece, taken.end() - at);
    const auto end = std::find(at, limit, true);
    const auto least = std::min_element(loads.begin(), loads.end());
    const int64_t length = end - at;
    by_thread[static_cast<size_t>(least - loads.begin())].push_back({at - taken.begin(), 1, length, length});
    *least += length;
    at = end;
  }
}

/// Returns true if no thread has much more than an equal part.
bool is_even(const std::vector<base::Shares>& by_thread, size_t count) {
  constexpr int64_t kFew = 4096;
  const int64_t equal = static_cast<int64_t>(count / by_thread.size());
  return std::all_of(by_thread.begin(), by_thread.end(),
                     [&](const base::Shares& runs) { return elements(runs) <= 2 * std::max(equal, kFew); });
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
  run_update(prepare(settings, update), source, gradients.data(), target, count, threads);
}

Optimizer::Optimizer(const OptimizerSettings& settings, size_t count, int threads)
    : settings_(settings), count_(count), threads_(threads) {
  check(settings);
  for (int i = 0; i < state_slots(settings.method); ++i) slots_.emplace_back(count * sizeof(float));
}

void Optimizer::divide(const std::vector<base::Shares>& by_thread) {
  division_.clear();
  if (by_thread.empty() || threads_ != 2) return;
  std::vector<bool> taken(count_);
  for (const base::Shares& shares : by_thread) {
    for (const base::Runs& runs : shares) take(runs, taken);
  }
  std::vector<base::Shares> division = by_thread;
  division.resize(std::max<size_t>(by_thread.size(), 2));
  give_rest(taken, division);
  if (is_even(division, count_)) division_ = std::move(division);
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
  if (division_.empty() || parameters.size() != count_) {
    return apply_update(settings_, update, block, gradients, block, threads_);
  }
  const Prepared prepared = prepare(settings_, update);
  base::parallel({static_cast<int>(division_.size()), threads_}, [&](int thread, int) {
    for (const base::Runs& runs : division_[static_cast<size_t>(thread)]) {
      for (int64_t run = 0; run < runs.count; ++run) {
        const int64_t at = runs.first + run * runs.stride;
        const auto from_at = [at](std::span<float> values) { return values.empty() ? nullptr : values.data() + at; };
        const Target target{from_at(block.parameters), from_at(block.slots[0]), from_at(block.slots[1])};
        run_update(prepared, {target.params, target.first, target.second}, gradients.data() + at, target,
                   static_cast<size_t>(runs.length), 1);
      }
    }
  });
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
