#include "train/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "data/loader.h"
#include "lockstep/error.h"
#include "picture/picture_grid.h"

namespace lockstep::train {
namespace {

constexpr int64_t kMostPictures = 32;
constexpr int kPairsPerRow = 4;
constexpr int kMostSide = 512;

/// Restores pixels to their values before scaling.
void unscale(const data::PixelScaling& pixels, std::span<float> images) {
  if (!pixels.empty()) pixels.undo(images);
}

}  // namespace

bool can_be_shown(const data::ImageShape& shape) {
  const bool colours = shape.channels == 1 || shape.channels == 3;
  return colours && std::min(shape.height, shape.width) > 1 && std::max(shape.height, shape.width) <= kMostSide;
}

std::vector<float> first_images(const data::Examples& examples, const data::PixelScaling& pixels, int64_t count) {
  data::LoaderOptions options = data::LoaderOptions::evaluation(count);
  options.pixels = &pixels;
  data::Loader loader(examples, options);
  const float* images = loader.next()->images;
  return {images, images + static_cast<size_t>(count) * examples.shape.size()};
}

PictureWriter::PictureWriter(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
                             const data::Examples& examples, const data::PixelScaling& pixels, std::string folder,
                             PictureSink sink)
    : programs_(spec, Purpose::picture, backend, parameters, nullptr),
      pixels_(pixels),
      folder_(std::move(folder)),
      sink_(std::move(sink)),
      shape_(examples.shape),
      count_(std::min(kMostPictures, examples.count())),
      images_(first_images(examples, pixels, count_)) {}

void PictureWriter::on_eval(const EvalEvent& event) {
  programs_.parameters_changed();
  program::Program& program = programs_.for_batch(count_);
  program.bind_input(0, images_.data());
  program.run({});
  const std::span<const float> shown = program.output(0).as<float>().first(images_.size());
  std::vector<float> before = images_;
  std::vector<float> after(shown.begin(), shown.end());
  unscale(pixels_, before);
  unscale(pixels_, after);
  picture::PictureGrid grid(shape_, {.columns = 2 * kPairsPerRow, .group = 2});
  for (size_t i = 0; i < static_cast<size_t>(count_); ++i) {
    grid.add(before.data() + i * shape_.size());
    grid.add(after.data() + i * shape_.size());
  }
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (failed) throw IoError(fmt::format("cannot create folder {}: {}", folder_, failed.message()));
  const picture::Bitmap bitmap = grid.picture();
  const std::vector<uint8_t> png = picture::encode_png(bitmap);
  const std::string& name = programs_.traits().picture;
  base::write_whole_file(fmt::format("{}/{}-{:08}.png", folder_, name, event.step), png);
  if (sink_) sink_(name, event.step, {png, bitmap.height, bitmap.width, bitmap.channels});
}

}  // namespace lockstep::train
