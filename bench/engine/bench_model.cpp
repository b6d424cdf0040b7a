#include "bench_model.h"

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"

namespace lockstep::bench {
namespace {

train::ModelSpec spec_of(const BenchOptions& options) {
  const nn::ModelDef& model = nn::find_model(options.model);
  return {&model, nn::resolve_options(model, options.options), model.image, model.classes};
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
      backend_(backend::make_cpu_backend({.threads = options.threads, .exact_conv = options.exact_conv})),
      parameters_(train::make_parameters(spec_, 1)),
      programs_(spec_, train::Purpose::training, *backend_, parameters_.values().data(),
                parameters_.gradients().data()),
      exchange_(parameters_, exchange_of(options)),
      labelled_(train::traits_of(spec_).labels),
      images_(static_cast<size_t>(options.batch * spec_.image.elements())),
      labels_(static_cast<size_t>(options.batch)) {
  base::Sequence random(1, 1);
  constexpr size_t kPrototypes = 10;
  const auto pixels = static_cast<size_t>(spec_.image.elements());
  std::vector<float> prototypes(kPrototypes * pixels);
  for (float& v : prototypes) v = random.uniform();
  for (size_t i = 0; i < labels_.size(); ++i) {
    labels_[i] = static_cast<int32_t>(i % kPrototypes);
    for (size_t p = 0; p < pixels; ++p) {
      images_[i * pixels + p] = 0.5F * (prototypes[(i % kPrototypes) * pixels + p] + random.uniform());
    }
  }
}

float BenchModel::step(const float* images, const int32_t* labels, int64_t count) {
  graph::Program& program = programs_.for_batch(count);
  program.bind_input(0, images);
  if (labelled_) program.bind_input(1, labels);
  exchange_.begin({steps_, static_cast<uint64_t>(count)});
  program.run({1, steps_, 0}, [&](graph::ParameterRange range) { exchange_.ready(range, {}); });
  steps_ = exchange_.finish().value().step;
  programs_.parameters_changed();
  return *program.output(0).as<float>().data();
}

}  // namespace lockstep::bench
