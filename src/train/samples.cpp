#include "train/samples.h"

#include <algorithm>

#include "picture/picture_grid.h"

namespace lockstep::train {
namespace {

constexpr int64_t kMostSamples = 32;
constexpr picture::Colour kRight = {110, 231, 135};
constexpr picture::Colour kWrong = {255, 138, 128};

}  // namespace

SampleWriter::SampleWriter(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
                           const data::Examples& examples, const data::PixelScaling& pixels,
                           std::vector<std::string> class_names, PictureSink sink)
    : programs_(spec, Purpose::prediction, backend, parameters, nullptr),
      shape_(examples.shape),
      count_(std::min(kMostSamples, examples.stored())),
      images_(first_images(examples, pixels, count_)),
      shown_(images_),
      labels_(examples.labels.begin(), examples.labels.begin() + count_),
      class_names_(std::move(class_names)),
      sink_(std::move(sink)) {
  if (!pixels.empty()) pixels.undo(shown_);
}

std::string SampleWriter::class_name(int32_t label) const {
  const auto index = static_cast<size_t>(label);
  return index < class_names_.size() ? class_names_[index] : std::to_string(label);
}

void SampleWriter::on_eval(const EvalEvent& event) {
  if (pace_.due(event.step, event.seconds)) make(event.step);
}

void SampleWriter::on_end(const Outcome& outcome) {
  if (pace_.skipped(outcome.steps)) make(outcome.steps);
}

void SampleWriter::make(uint64_t step) {
  programs_.parameters_changed();
  program::Program& program = programs_.for_batch(count_);
  program.bind_input(0, images_.data());
  program.run({});
  const std::span<const float> scores = program.output(0).as<float>();
  const auto classes = static_cast<size_t>(programs_.spec().classes);
  picture::PictureGrid grid(shape_, {.caption_lines = 2});
  for (size_t i = 0; i < labels_.size(); ++i) {
    const auto row = scores.subspan(i * classes, classes);
    const auto seen = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
    const bool right = seen == labels_[i];
    grid.add(shown_.data() + i * shape_.size(),
             {{"sees " + class_name(seen), "is " + class_name(labels_[i])}, right ? kRight : kWrong});
  }
  const picture::Bitmap bitmap = grid.picture();
  const std::vector<uint8_t> png = picture::encode_png(bitmap);
  sink_("samples", step, {png, bitmap.height, bitmap.width, bitmap.channels});
}

}  // namespace lockstep::train
