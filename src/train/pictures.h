// The hook that shows what a model makes of some images: at each evaluation a PNG with each image beside its
// reconstruction, or beside what the transformer attends to. Always the first images of the split, so that pictures of
// different steps can be compared. Borrows examples, backend and parameters; for the training thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/pixel_scaling.h"
#include "lockstep/train.h"
#include "train/programs.h"

namespace lockstep::train {

/// Whether images of that shape can be shown: of one or three channels, not flat rows, and of moderate size.
bool can_be_shown(const data::ImageShape& shape);

/// A picture as a PNG file's bytes, borrowed.
struct EncodedPicture {
  std::span<const uint8_t> png;
  int height = 0;
  int width = 0;
  int channels = 1;
};
/// Takes a picture of a step; what it is called comes first.
using PictureSink = std::function<void(const std::string& name, uint64_t step, const EncodedPicture& picture)>;

/// The first `count` images of a split as a model sees them.
std::vector<float> first_images(const data::Examples& examples, const data::PixelScaling& pixels, int64_t count);

class PictureWriter final : public Hooks {
 public:
  /// Pictures go to `folder`, which is made with the first, and to `sink` where there is one.
  PictureWriter(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
                const data::Examples& examples, const data::PixelScaling& pixels, std::string folder,
                PictureSink sink = {});

  /// folder/NAME-STEP.png. Throws IoError where it cannot be written.
  void on_eval(const EvalEvent& event) override;

 private:
  Programs programs_;
  const data::PixelScaling& pixels_;
  std::string folder_;
  PictureSink sink_;
  data::ImageShape shape_;
  int64_t count_;
  std::vector<float> images_;  ///< as the model sees them
};

}  // namespace lockstep::train
