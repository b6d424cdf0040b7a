#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "base/random.h"
#include "optim/optimizer.h"
#include "profile/measure.h"
#include "settings/machine.h"
#include "train/programs.h"

namespace lockstep::profile {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double quantile_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

const Shape& image_of(const ComputeRequest& request) {
  return request.image.rank() > 0 ? request.image : request.model->image;
}

/// Times of the steps of one batch size with one number of threads.
struct Times {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> optimizer;
};

/// A model with random data, whose steps can be timed.
class Stepper {
 public:
  Stepper(const ComputeRequest& request, int threads)
      : spec_{request.model, nn::resolve_options(*request.model, request.options), image_of(request),
              request.classes > 0 ? request.classes : request.model->classes},
        defaults_(nn::defaults_for(*request.model, spec_.options)),
        backend_(settings::make_backend("cpu", threads)),
        parameters_(train::make_parameters(spec_, 1)),
        programs_(spec_, train::Purpose::training, *backend_, parameters_.values().data(),
                  parameters_.gradients().data()),
        optimizer_({.method = optim::parse_method(defaults_.optimizer)}, parameters_.count(), threads) {}

  void prepare(int64_t batch) {
    base::Sequence random(1, 1);
    images_.resize(static_cast<size_t>(batch * spec_.image.elements()));
    labels_.resize(static_cast<size_t>(batch));
    for (float& pixel : images_) pixel = random.uniform();
    for (int32_t& label : labels_) label = static_cast<int32_t>(random.below(static_cast<uint32_t>(spec_.classes)));
    program_ = &programs_.for_batch(batch);
    program_->bind_input(0, images_.data());
    if (programs_.traits().labels) program_->bind_input(1, labels_.data());
  }

  void step(Times& times) {
    std::map<size_t, double> announced;
    const Clock::time_point begin = Clock::now();
    program_->run({1, steps_, 0}, [&](program::ParameterRange range) { announced[range.offset] = since(begin); });
    const program::RunTimes& run = program_->times();
    times.forward.push_back(run.forward);
    times.backward.push_back(run.backward);
    for (const auto& [offset, seconds] : announced) {
      shares_[offset].push_back(std::clamp((seconds - run.forward) / std::max(run.backward, 1e-12), 0.0, 1.0));
    }
    const Clock::time_point update = Clock::now();
    constexpr float kSmallRate = 1e-4F;  // the values stay as they are, so every step computes the same
    optimizer_.apply(parameters_.values(), parameters_.gradients(), {.step = steps_++, .learning_rate = kSmallRate});
    times.optimizer.push_back(since(update));
    programs_.parameters_changed();
  }

  [[nodiscard]] std::vector<predict::Tensor> tensors() const {
    std::vector<predict::Tensor> tensors;
    for (const graph::ParameterInfo& info : parameters_.infos()) {
      predict::Tensor tensor{.count = static_cast<size_t>(info.shape.elements())};
      const auto found = shares_.find(info.offset);
      if (found != shares_.end()) tensor.announced = quantile_of(found->second, 0.5);
      tensors.push_back(tensor);
    }
    return tensors;
  }

  /// Returns the bytes of a step's values.
  [[nodiscard]] double step_bytes() const { return static_cast<double>(program_->memory().arena_bytes); }
  [[nodiscard]] double lasting_bytes() const {
    constexpr double kValuesAndGradients = 2;
    const auto slots = static_cast<double>(optim::slot_names(optim::parse_method(defaults_.optimizer)).size());
    return static_cast<double>(parameters_.count()) * 4 * (kValuesAndGradients + slots);
  }

 private:
  train::ModelSpec spec_;
  nn::TrainingDefaults defaults_;
  std::unique_ptr<backend::Backend> backend_;
  program::ParameterStore parameters_;
  train::Programs programs_;
  optim::Optimizer optimizer_;
  std::vector<float> images_;
  std::vector<int32_t> labels_;
  program::Program* program_ = nullptr;
  uint64_t steps_ = 0;
  std::map<size_t, std::vector<double>> shares_;  ///< of the backward pass, by place of the parameter
};

Times timed(Stepper& stepper, double seconds) {
  constexpr size_t kLeast = 5;
  constexpr size_t kMost = 400;
  Times warm_up;
  stepper.step(warm_up);
  stepper.step(warm_up);
  Times times;
  const Clock::time_point begin = Clock::now();
  while (times.forward.size() < kLeast || (since(begin) < seconds && times.forward.size() < kMost)) {
    stepper.step(times);
  }
  return times;
}

plan::ComputePoint point_of(int64_t batch, int threads, const Times& times) {
  constexpr double kQuantile = 1.282;  // of the normal distribution, for 90 %
  plan::ComputePoint point{.batch = batch, .threads = threads};
  point.forward = quantile_of(times.forward, 0.5);
  point.backward = quantile_of(times.backward, 0.5);
  point.optimizer = quantile_of(times.optimizer, 0.5);
  point.spread = std::max(0.0, std::log(quantile_of(times.backward, 0.9) / point.backward) / kQuantile);
  return point;
}

}  // namespace

plan::ModelProfile measure_model(const ComputeRequest& request) {
  plan::ModelProfile profile;
  profile.model = request.model->name;
  const double each = request.seconds / static_cast<double>(request.batches.size() * request.threads.size());
  std::vector<std::pair<double, double>> memory;  // batch and bytes
  for (const int threads : request.threads) {
    Stepper stepper(request, threads);
    for (const int64_t batch : request.batches) {
      stepper.prepare(batch);
      profile.points.push_back(point_of(batch, threads, timed(stepper, each)));
      memory.emplace_back(static_cast<double>(batch), stepper.step_bytes());
    }
    profile.tensors = stepper.tensors();
    profile.memory_fixed = stepper.lasting_bytes();
  }
  const auto [least, most] = std::minmax_element(memory.begin(), memory.end());
  const double pixels = static_cast<double>(image_of(request).elements()) * 4;
  profile.memory_each =
      pixels * 4 + (most->first > least->first ? (most->second - least->second) / (most->first - least->first)
                                               : most->second / most->first);
  constexpr double kProgram = 40e6;  // code, libraries, threads
  profile.memory_fixed += kProgram;
  return profile;
}

}  // namespace lockstep::profile
