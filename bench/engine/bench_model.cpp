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

void make_noise(std::vector<float>& images, std::vector<int32_t>& labels, int64_t classes) {
  base::Sequence random(1, 1);
  for (float& pixel : images) pixel = 0.1F * random.normal();
  for (int32_t& label : labels) label = static_cast<int32_t>(random.below(static_cast<uint32_t>(classes)));
}

void make_prototypes(std::vector<float>& images, std::vector<int32_t>& labels, int64_t classes) {
  base::Sequence random(1, 1);
  const size_t pixels = images.size() / labels.size();
  std::vector<float> prototypes(static_cast<size_t>(classes) * pixels);
  for (float& v : prototypes) v = random.uniform();
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t label = i % static_cast<size_t>(classes);
    labels[i] = static_cast<int32_t>(label);
    for (size_t p = 0; p < pixels; ++p) {
      images[i * pixels + p] = 0.5F * (prototypes[label * pixels + p] + random.uniform());
    }
  }
}

/// Standardises images: the mean of two uniform numbers has the mean 1/2 and the variance 1/24.
void standardise(std::vector<float>& images) {
  for (float& pixel : images) pixel = (pixel - 0.5F) * 4.898979F;
}

}  // namespace

BenchModel::BenchModel(const BenchOptions& options)
    : options_(options),
      spec_(spec_of(options)),
      backend_(backend::make_cpu_backend({.threads = options.threads,
                                          .exact_conv = options.exact_conv,
                                          .bf16 = options.bf16,
                                          .channels_last = options.channels_last})),
      parameters_(train::make_parameters(spec_, 1)),
      programs_(spec_, train::Purpose::training, *backend_, parameters_.values().data(),
                parameters_.gradients().data()),
      exchange_(parameters_, exchange_of(options)),
      images_(static_cast<size_t>(options.batch * spec_.image.elements())),
      labels_(static_cast<size_t>(options.batch)) {
  const nn::TrainingDefaults& defaults = spec_.model->defaults;
  const bool noise = defaults.dataset == "images";
  noise ? make_noise(images_, labels_, spec_.classes) : make_prototypes(images_, labels_, spec_.classes);
  if (defaults.pixels == "standard") standardise(images_);
  exchange_.divide_updates(programs_.for_batch(options.batch).gradient_shares());
}

program::Program& BenchModel::begin(const float* images, const int32_t* labels, int64_t count) {
  program::Program& program = programs_.for_batch(count);
  program.bind_input(0, images);
  if (programs_.traits().labels) program.bind_input(1, labels);
  exchange_.begin({steps_, static_cast<uint64_t>(count)});
  return program;
}

double BenchModel::step_observed(program::Program::Observer observe) {
  program::Program& program = begin(images_.data(), labels_.data(), options_.batch);
  program.run_observed(
      {1, steps_, 0}, [&](program::ParameterRange range) { exchange_.ready(range, {}); }, observe);
  const exchange::StepInfo info = exchange_.finish({}).value();
  steps_ = info.step;
  programs_.parameters_changed();
  return info.spent.optimizer;
}

float BenchModel::step(const float* images, const int32_t* labels, int64_t count) {
  program::Program& program = begin(images, labels, count);
  program.run({1, steps_, 0}, [&](program::ParameterRange range) { exchange_.ready(range, {}); });
  steps_ = exchange_.finish({}).value().step;
  programs_.parameters_changed();
  return *program.output(0).as<float>().data();
}

}  // namespace lockstep::bench
