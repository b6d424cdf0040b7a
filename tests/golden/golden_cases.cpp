#include "golden/golden_cases.h"

#include <cmath>

#include "base/random.h"

namespace lockstep::golden {
namespace {

constexpr uint64_t kImageStream = 1000;
constexpr uint64_t kLabelStream = 1001;
constexpr uint64_t kBiasStream = 1002;
/// Few batches, used repeatedly, so that the losses fall and a wrong gradient shows.
constexpr uint64_t kBatches = 2;

float pixel(base::Sequence& random, Pixels pixels) {
  switch (pixels) {
    case Pixels::uniform:
      return random.uniform();
    case Pixels::normal:
      return random.normal();
    case Pixels::faint:
      return 0.1F * random.normal();
    case Pixels::wave:
      break;
  }
  return 0;
}

void draw_waves(base::Sequence& random, const Shape& image, std::vector<float>& pixels) {
  const auto width = static_cast<size_t>(image[2]);
  const auto size = static_cast<size_t>(image.elements());
  for (size_t first = 0; first < pixels.size(); first += size) {
    const float across = 0.6F * random.uniform() - 0.3F;
    const float down = 0.6F * random.uniform() - 0.3F;
    const float phase = 6.0F * random.uniform();
    for (size_t i = 0; i < size; ++i) {
      const auto x = static_cast<float>(i % width);
      const auto y = static_cast<float>(i / width);
      pixels[first + i] = 0.5F + 0.5F * std::cos(across * x + down * y + phase);
    }
  }
}

std::vector<Case> make_cases() {
  const Shape digit{1, 28, 28};
  const Shape cluttered{1, 40, 40};
  const Shape photo{3, 224, 224};
  return {
      {"lr", "lr", {}, 16, digit, 10, Pixels::uniform, 0.02F, 1e-3F},
      {"lenet", "lenet", {}, 16, digit, 10, Pixels::uniform, 0.01F, 2e-4F},
      {"lenet-tanh-avg", "lenet", {{"activation", "tanh"}, {"pool", "avg"}}, 16, digit, 10, Pixels::uniform, 0.05F},
      {"lenet-valid", "lenet-valid", {}, 16, digit, 10, Pixels::uniform, 0.05F, 1e-3F},
      {"alexnet", "alexnet", {}, 16, photo, 1000, Pixels::faint, 1e-3F, 2e-6F},
      {"alexnet-lrn", "alexnet", {{"lrn", "true"}}, 4, {3, 96, 96}, 10, Pixels::normal, 1e-3F, 2e-6F},
      {"alexnet-features", "alexnet", {{"features_only", "true"}}, 4, photo, 10, Pixels::normal, 1e-6F, 1e-5F},
      {"autoencoder", "autoencoder", {}, 16, digit, 10, Pixels::normal, 1e-4F, 1e-3F},
      {"autoencoder-gaussian", "autoencoder", {{"kind", "gaussian"}}, 16, digit, 10, Pixels::normal, 1e-4F, 1e-3F},
      {"autoencoder-masking", "autoencoder", {{"kind", "masking"}}, 16, digit, 10, Pixels::normal, 1e-4F, 1e-3F},
      {"autoencoder-variational", "autoencoder", {{"kind", "variational"}}, 16, digit, 10, Pixels::uniform, 1e-4F},
      {"autoencoder-large", "autoencoder-large", {}, 16, digit, 10, Pixels::normal, 1e-4F, 1e-3F},
      {"stn", "stn", {}, 16, cluttered, 10, Pixels::wave, 1e-4F, 5e-6F},
      {"stn-half-pixel", "stn", {{"sampling", "half_pixel"}}, 16, cluttered, 10, Pixels::wave, 1e-4F, 5e-6F},
      {"stn-large", "stn-large", {}, 16, cluttered, 10, Pixels::wave, 1e-4F, 5e-6F},
  };
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = make_cases();
  return all;
}

train::ModelSpec spec_of(const Case& golden) {
  const nn::ModelDef& model = nn::find_model(golden.model);
  return {&model, nn::resolve_options(model, golden.options), golden.image, golden.classes};
}

program::ParameterStore start_of(const Case& golden) {
  program::ParameterStore store = train::make_parameters(spec_of(golden), kSeed);
  base::Sequence random(kSeed, kBiasStream);
  for (const graph::ParameterInfo& info : store.infos()) {
    if (info.shape.rank() != 1) continue;
    for (float& value : store.values().subspan(info.offset, info.count())) value += 0.05F + 0.05F * random.uniform();
  }
  return store;
}

Batch batch_of(const Case& golden, uint64_t step) {
  Batch batch;
  batch.images.resize(static_cast<size_t>(golden.batch * golden.image.elements()));
  base::Sequence images(kSeed, kImageStream, step % kBatches);
  if (golden.pixels == Pixels::wave) {
    draw_waves(images, golden.image, batch.images);
  } else {
    for (float& value : batch.images) value = pixel(images, golden.pixels);
  }
  base::Sequence labels(kSeed, kLabelStream, step % kBatches);
  batch.labels.resize(static_cast<size_t>(golden.batch));
  for (int32_t& label : batch.labels) label = static_cast<int32_t>(labels.below(static_cast<uint32_t>(golden.classes)));
  return batch;
}

}  // namespace lockstep::golden
