// The description of a model for `lockstep describe`: layers, parameters, arithmetic, memory and the chosen kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/nn.h"
#include "program/program.h"
#include "settings/settings.h"

namespace lockstep::inspect {

struct DescribeRequest {
  const nn::ModelDef* model = nullptr;
  settings::Options options = {};
  int64_t batch = 1;
  Shape image = {};            ///< shape of an example; empty: the model's default
  int64_t classes = 0;         ///< number of classes; 0: the model's default
  std::string optimizer = {};  ///< empty: the model's default
  std::string backend = "cpu";
  int threads = 1;
  settings::Precision precision = settings::Precision::f32;
  bool exact_conv = false;
};

/// One layer of the forward pass: the nodes under one name scope, or one node without a scope.
struct LayerInfo {
  std::string name;
  std::string ops;  ///< "conv2d + bias_add"
  Shape output;
  size_t parameters = 0;
  uint64_t forward_flops = 0;  ///< operations per batch
  uint64_t backward_flops = 0;
};

struct MemoryInfo {
  size_t arena_bytes = 0;
  size_t unshared_bytes = 0;  ///< size of the arena without reuse
  size_t parameter_bytes = 0;
  size_t gradient_bytes = 0;
  size_t optimizer_bytes = 0;
};

struct ModelDescription {
  std::string name;
  std::string description;
  settings::Options options;
  Shape image;
  int64_t batch = 0;
  std::string optimizer;
  size_t parameters = 0;
  uint64_t forward_flops = 0;
  uint64_t backward_flops = 0;
  std::vector<LayerInfo> layers;
  std::vector<graph::ParameterInfo> parameter_table;
  MemoryInfo memory;                         ///< memory of a training step
  std::vector<program::KernelInfo> kernels;  ///< kernels of a training step, in order
};

/// Counts a model's parameters, with its options' defaults and the images that it is made for.
size_t parameter_count(const nn::ModelDef& model);

/// Returns the floating-point operations of one node of a graph; a multiplication and an addition are two.
uint64_t flops(const graph::Graph& graph, const graph::Node& node);

ModelDescription describe(const DescribeRequest& request);

}  // namespace lockstep::inspect
