#include "data/random_images.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/memory.h"
#include "base/random.h"
#include "data/normal_kernels.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kTrainPixels = 0x696d67747261;         // "imgtra"
constexpr uint64_t kTestPixels = 0x696d67746573;          // "imgtes"
constexpr uint64_t kTrainLabelStream = 0x6c62747261696e;  // "lbtrain"
constexpr uint64_t kTestLabelStream = 0x6c6274657374;     // "lbtest"
constexpr float kDeviation = 0.1F;
constexpr int kMostRandomClasses = 1'000'000;

class NormalImages final : public ImageMaker {
 public:
  NormalImages(uint64_t seed, uint64_t stream, size_t pixels) : seed_(seed), stream_(stream), pixels_(pixels) {}

  void make(int64_t index, float* pixels) const override {
    fill_normal(seed_, stream_, static_cast<uint64_t>(index), kDeviation, {pixels, pixels_});
  }

 private:
  uint64_t seed_;
  uint64_t stream_;
  size_t pixels_;
};

/// Makes and stores all images.
void store(Examples& examples) {
  const size_t pixels = examples.shape.size();
  try {
    base::require_memory(examples.labels.size() * pixels * sizeof(float));
  } catch (const MemoryError& error) {
    throw MemoryError(
        fmt::format("generate once: {} images {}; generate fresh takes none", examples.labels.size(), error.what()));
  }
  std::vector<float> floats(examples.labels.size() * pixels);
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    examples.maker->make(static_cast<int64_t>(i), floats.data() + i * pixels);
  }
  examples.floats = std::move(floats);
  examples.maker.reset();
}

Examples make_split(const RandomImagesOptions& options, int64_t count, uint64_t pixels, uint64_t labels) {
  Examples examples;
  examples.shape = options.shape;
  examples.classes = options.classes;
  examples.maker = std::make_shared<NormalImages>(options.seed, pixels, options.shape.size());
  base::Sequence random(options.seed, labels);
  examples.labels.resize(static_cast<size_t>(count));
  for (int32_t& label : examples.labels) {
    label = static_cast<int32_t>(random.below(static_cast<uint32_t>(options.classes)));
  }
  if (!options.fresh) store(examples);
  return examples;
}

void check(const RandomImagesOptions& options) {
  const auto count_ok = [](int64_t count) { return count >= 1 && count <= std::numeric_limits<int32_t>::max(); };
  if (!count_ok(options.train) || !count_ok(options.test)) {
    throw UsageError(fmt::format("generated images: {} for training and {} for testing; 1 to {} are allowed",
                                 options.train, options.test, std::numeric_limits<int32_t>::max()));
  }
  if (options.classes < 2 || options.classes > kMostRandomClasses) {
    throw UsageError(
        fmt::format("generated images of {} classes; 2 to {} are allowed", options.classes, kMostRandomClasses));
  }
}

}  // namespace

Dataset random_images(const RandomImagesOptions& options) {
  check(options);
  Dataset dataset;
  dataset.name = "images";
  dataset.origin = fmt::format("generated from seed {}, {}", options.seed,
                               options.fresh ? "each image when it is needed" : "all at the start");
  dataset.train = make_split(options, options.train, kTrainPixels, kTrainLabelStream);
  dataset.test = make_split(options, options.test, kTestPixels, kTestLabelStream);
  dataset.validation.shape = options.shape;
  dataset.validation.classes = options.classes;
  return dataset;
}

}  // namespace lockstep::data
