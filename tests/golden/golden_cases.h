// The trainings whose losses PyTorch has computed too (golden/*.csv, made by make_golden.py). All inputs of a training
// come from its seed: initial parameters, batches, dropout masks and noise. golden_inputs writes them to files for
// PyTorch; the test generates them again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/nn.h"
#include "lockstep/shape.h"
#include "train/programs.h"

namespace lockstep::golden {

constexpr uint64_t kSeed = 20;
constexpr uint64_t kSteps = 20;

/// Pixels: uniform in [0, 1); N(0, 1); N(0, 0.1); a wave across each image. Samplers need the wave. If neighbouring
/// pixels are unrelated, the gradient to the place of a sample jumps from pixel to pixel, and PyTorch in float32
/// departs from PyTorch in float64 after two steps.
enum class Pixels : uint8_t { uniform, normal, faint, wave };

struct Case {
  std::string name;
  std::string model;
  std::map<std::string, std::string> options;
  int64_t batch = 16;
  Shape image;
  int64_t classes = 10;
  Pixels pixels = Pixels::uniform;
  float sgd_rate = 0.1F;
  float adam_rate = 1e-3F;
};

const std::vector<Case>& cases();
train::ModelSpec spec_of(const Case& golden);
/// Returns the model's initial parameters with every bias moved off zero. Otherwise, where a sampler looks beyond the
/// image, the following layer sits on the kink of a ReLU, and rounding decides its gradient.
program::ParameterStore start_of(const Case& golden);

struct Batch {
  std::vector<float> images;
  std::vector<int32_t> labels;
};
Batch batch_of(const Case& golden, uint64_t step);

}  // namespace lockstep::golden
