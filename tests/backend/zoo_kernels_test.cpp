// Every layer of the zoo's models runs a fast kernel; none falls back to a reference kernel, ours or oneDNN's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "program/program.h"

namespace lockstep::backend {
namespace {

using Options = std::map<std::string, std::string>;

/// Returns the defaults, then each option's other allowed values, one at a time.
std::vector<Options> variants(const nn::ModelDef& model) {
  std::vector<Options> all{{}};
  for (const nn::ModelOption& option : model.options) {
    for (const std::string& value : option.allowed) {
      if (value != option.default_value) all.push_back({{option.name, value}});
    }
  }
  return all;
}

std::string text(const Options& options) {
  std::string all;
  for (const auto& [name, value] : options) all.append(" ").append(name).append("=").append(value);
  return all;
}

/// Returns "node: implementation" of each kernel of a training step that is a reference.
std::vector<std::string> references(const nn::ModelDef& model, const Options& options, int64_t batch,
                                    const Backend& backend) {
  graph::Graph graph;
  const nn::ModelGraph built = nn::build(graph, model, {batch, true, model.image, model.classes, options});
  std::vector<graph::Value> outputs{built.loss};
  if (built.correct.valid()) outputs.push_back(built.correct);
  const auto gradients = ops::gradients(built.loss);
  const program::Program program(std::move(graph), outputs, gradients, backend);
  std::vector<std::string> found;
  for (const program::KernelInfo& kernel : program.kernels()) {
    if (kernel.implementation.find("ref") != std::string::npos) {
      found.push_back(kernel.name + ": " + kernel.implementation);
    }
  }
  return found;
}

void expect_no_reference(const CpuOptions& computing, const std::vector<int64_t>& batches, const std::string& what) {
  const auto backend = make_cpu_backend(computing);
  for (const nn::ModelDef& model : nn::zoo()) {
    for (const Options& options : variants(model)) {
      for (const int64_t batch : batches) {
        EXPECT_THAT(references(model, options, batch, *backend), testing::IsEmpty())
            << model.name << text(options) << ", batch " << batch << what;
      }
    }
  }
}

TEST(ZooKernels, NoModelTakesAReferenceKernel) {
  expect_no_reference({.threads = 2}, {3, 16}, "");
  expect_no_reference({.threads = 2, .exact_conv = true}, {3, 16}, ", exact convolutions");
}

TEST(ZooKernels, NoModelTakesAReferenceKernelInBfloat16) {
  cpu::limit_isa_from_environment();
  if (!cpu::has_avx512_bf16()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  expect_no_reference({.threads = 2, .bf16 = true, .channels_last = false}, {16}, ", blocks of channels");
  expect_no_reference({.threads = 2, .bf16 = true, .channels_last = true}, {16}, ", channels last");
}

}  // namespace
}  // namespace lockstep::backend
