// The hook that shows what a classifier takes some images for: at evaluations (pace.h) a picture of the first images of
// the split, and beneath each what the model sees in it and what it is, green where that is the same and red where not.
// Gives the picture away, writes no files. Borrows backend and parameters; for the training thread.
#pragma once

#include <string>
#include <vector>

#include "train/pace.h"
#include "train/pictures.h"

namespace lockstep::train {

class SampleWriter final : public Hooks {
 public:
  /// The examples have labels. `class_names` may be empty: classes are then numbers.
  SampleWriter(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
               const data::Examples& examples, const data::PixelScaling& pixels, std::vector<std::string> class_names,
               PictureSink sink);

  /// Named "samples".
  void on_eval(const EvalEvent& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  [[nodiscard]] std::string class_name(int32_t label) const;
  void make(uint64_t step);

  Programs programs_;
  data::ImageShape shape_;
  int64_t count_;
  std::vector<float> images_;  ///< as the model sees them
  std::vector<float> shown_;   ///< as people do
  std::vector<int32_t> labels_;
  std::vector<std::string> class_names_;
  PictureSink sink_;
  Pace pace_;
};

}  // namespace lockstep::train
