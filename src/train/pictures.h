// The hook that writes pictures of a model's output: at each evaluation a PNG with each image beside its
// reconstruction, or beside the part that the transformer attends to. It always takes the first images of the split, so
// that pictures of different steps can be compared. Borrows examples, backend and parameters; for the training thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/pixel_scaling.h"
#include "lockstep/train_events.h"
#include "train/programs.h"

namespace lockstep::train {

/// Returns true if images of that shape can be shown: one or three channels, not flat rows, of moderate size.
bool can_be_shown(const data::ImageShape& shape);

/// A PNG file's bytes, borrowed.
struct EncodedPicture {
  std::span<const uint8_t> png;
  int height = 0;
  int width = 0;
  int channels = 1;
};
/// Takes a picture of a step; the name of the picture comes first.
using PictureSink = std::function<void(const std::string& name, uint64_t step, const EncodedPicture& picture)>;

/// Returns the first `count` images of a split as the model sees them.
std::vector<float> first_images(const data::Examples& examples, const data::PixelScaling& pixels, int64_t count);

class PictureWriter final : public Hooks {
 public:
  /// Writes pictures to `folder`, which is made with the first one, and gives them to `sink` if there is one.
  PictureWriter(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
                const data::Examples& examples, const data::PixelScaling& pixels, std::string folder,
                PictureSink sink = {});

  /// Writes folder/NAME-STEP.png. Throws IoError if it cannot be written.
  void on_eval(const EvalEvent& event) override;

 private:
  Programs programs_;
  const data::PixelScaling& pixels_;
  std::string folder_;
  PictureSink sink_;
  data::ImageShape shape_;
  int64_t count_;
  std::vector<float> images_;  ///< scaled for the model
};

}  // namespace lockstep::train
