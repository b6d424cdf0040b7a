#include "bench_model.h"

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"

namespace lockstep::bench {
namespace {

constexpr size_t kPixels = 28 * 28;
constexpr int kClasses = 10;

train::ModelSpec spec_of(const BenchOptions& options) {
  return {&nn::find_model(options.model), {}, {1, 28, 28}, kClasses};
}

exchange::LocalOptions exchange_of(const BenchOptions& options) {
  exchange::LocalOptions result;
  result.optimizer.method = optim::parse_method(options.optimizer);
  result.schedule.base = options.optimizer == "adam" ? 1e-3F : 0.01F;
  result.threads = options.threads;
  return result;
}

}  // namespace

BenchModel::BenchModel(const BenchOptions& options)
    : options_(options),
      spec_(spec_of(options)),
      backend_(backend::make_cpu_backend({.threads = options.threads, .reference_only = false})),
      parameters_(train::make_parameters(spec_, 1)),
      programs_(spec_, train::Purpose::training, *backend_, parameters_.values().data(),
                parameters_.gradients().data()),
      exchange_(parameters_, exchange_of(options)),
      images_(static_cast<size_t>(options.batch) * kPixels),
      labels_(static_cast<size_t>(options.batch)) {
  base::Sequence random(1, 1);
  std::vector<float> prototypes(kClasses * kPixels);
  for (float& v : prototypes) v = random.uniform();
  for (size_t i = 0; i < labels_.size(); ++i) {
    labels_[i] = static_cast<int32_t>(i % kClasses);
    for (size_t p = 0; p < kPixels; ++p) {
      images_[i * kPixels + p] = 0.5F * (prototypes[(i % kClasses) * kPixels + p] + random.uniform());
    }
  }
}

float BenchModel::step(const float* images, const int32_t* labels, int64_t count) {
  graph::Program& program = programs_.for_batch(count);
  program.bind_input(0, images);
  program.bind_input(1, labels);
  exchange_.begin({steps_, static_cast<uint64_t>(count)});
  program.run({1, steps_, 0}, [&](graph::ParameterRange range) { exchange_.ready(range, {}); });
  steps_ = exchange_.finish().value().step;
  programs_.parameters_changed();
  return *program.output(0).as<float>().data();
}

}  // namespace lockstep::bench
