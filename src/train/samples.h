// The hook that shows a classifier's predictions: at evaluations (pace.h) it makes a picture of the first images of the
// split, each with its predicted and true class beneath, green if equal and red if not. Passes the picture to a sink
// and writes no files. Borrows backend and parameters; for the training thread.
#pragma once

#include <string>
#include <vector>

#include "train/pace.h"
#include "train/pictures.h"

namespace lockstep::train {

class SampleWriter final : public Hooks {
 public:
  /// The examples must have labels. `class_names` may be empty: classes are then numbers.
  SampleWriter(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
               const data::Examples& examples, const data::PixelScaling& pixels, std::vector<std::string> class_names,
               PictureSink sink);

  /// Makes the picture "samples".
  void on_eval(const EvalEvent& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  [[nodiscard]] std::string class_name(int32_t label) const;
  void make(uint64_t step);

  Programs programs_;
  data::ImageShape shape_;
  int64_t count_;
  std::vector<float> images_;  ///< scaled for the model
  std::vector<float> shown_;   ///< unscaled, for people
  std::vector<int32_t> labels_;
  std::vector<std::string> class_names_;
  PictureSink sink_;
  Pace pace_;
};

}  // namespace lockstep::train
