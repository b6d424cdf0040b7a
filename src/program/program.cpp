#include "program/program.h"

#include "base/denormals.h"
#include "base/memory.h"
#include "lockstep/error.h"

namespace lockstep::program {
namespace {

constexpr size_t kArena = 0;
constexpr size_t kParameters = 1;
constexpr size_t kGradients = 2;
constexpr size_t kFirstInput = 3;

void check_gradients(const graph::Graph& graph, const std::vector<graph::Value>& gradients) {
  if (gradients.empty()) return;
  if (gradients.size() != graph.parameters().size()) {
    throw ShapeError("program: " + std::to_string(gradients.size()) + " gradients for " +
                     std::to_string(graph.parameters().size()) + " parameters");
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    const graph::ParameterInfo& parameter = graph.parameters()[i];
    const Shape& shape = graph.output(gradients[i].id()).type.shape;  // the values' own graph may have moved
    if (shape == parameter.shape) continue;
    throw ShapeError("program: the gradient of '" + parameter.name + "' has shape " + shape.str() + ", must be " +
                     parameter.shape.str());
  }
}

std::vector<graph::ValueId> ids(const std::vector<graph::Value>& values) {
  std::vector<graph::ValueId> result;
  result.reserve(values.size());
  for (const graph::Value& value : values) result.push_back(value.id());
  return result;
}

bool is_source(const graph::Node& node) { return node.op == graph::Op::input || node.op == graph::Op::parameter; }

}  // namespace

Program::Program(graph::Graph graph, const std::vector<graph::Value>& outputs,
                 const std::vector<graph::Value>& gradients, const backend::Backend& backend)
    : work_((check_gradients(graph, gradients), optimize({std::move(graph), ids(outputs), ids(gradients)}, backend))) {
  make_kernels(backend);
  std::vector<KernelMemory> memory(kernels_.size());
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i] != nullptr) memory[i] = {kernels_[i]->workspace_bytes(), kernels_[i]->state_bytes()};
  }
  plan_ = plan_memory(work_, memory);
  arena_ = Buffer(plan_.arena_bytes);
  size_t inputs = 0;
  for (const graph::Node& node : work_.graph.nodes()) inputs += node.op == graph::Op::input ? 1 : 0;
  bases_ = std::make_unique<std::byte*[]>(kFirstInput + inputs);
  bases_[kArena] = arena_.data();
  bind_kernels();
  order_steps();
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

void Program::make_kernels(const backend::Backend& backend) {
  for (const graph::Node& node : work_.graph.nodes()) {
    for (const graph::Output& output : node.outputs) base::require_memory(output.type.bytes());
  }
  const std::vector<bool> constants = find_constants(work_);
  for (size_t i = 0; i < work_.graph.nodes().size(); ++i) {
    const graph::Node& node = work_.graph.nodes()[i];
    kernels_.emplace_back();
    infos_.push_back(
        {node.name, node.op, "", node.outputs[0].type, node.outputs[0].layout, node.backward, constants[i]});
    if (is_source(node) || is_alias(work_.graph, node)) continue;
    backend::NamedKernel made = backend.make({work_.graph, node});
    infos_.back().implementation = std::move(made.implementation);
    kernels_.back() = std::move(made.kernel);
  }
}

backend::Location Program::locate(graph::ValueId id) const {
  const ValuePlace& place = plan_.values[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  switch (place.place) {
    case Place::parameters:
      return {&bases_[kParameters], place.offset};
    case Place::gradients:
      return {&bases_[kGradients], place.offset};
    case Place::input:
      return {&bases_[kFirstInput + place.offset], 0};
    case Place::none:
    case Place::arena:
      break;
  }
  return {&bases_[kArena], place.offset};
}

void Program::bind_kernels() {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i] == nullptr) continue;
    const graph::Node& node = work_.graph.nodes()[i];
    backend::Binding binding;
    for (const graph::ValueId input : node.inputs) binding.inputs.push_back(locate(input));
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k) {
      binding.outputs.push_back(locate({static_cast<int32_t>(i), k}));
    }
    binding.workspace_at = {&bases_[kArena], plan_.workspace_offsets[i]};
    binding.state_at = {&bases_[kArena], plan_.state_offsets[i]};
    kernels_[i]->bind(std::move(binding));
  }
}

void Program::order_steps() {
  std::vector<std::vector<ParameterRange>> finishes(kernels_.size());
  for (size_t i = 0; i < work_.gradients.size(); ++i) {
    const graph::ParameterInfo& info = work_.graph.parameters()[i];
    finishes[static_cast<size_t>(work_.gradients[i].node)].push_back({info.offset, info.count()});
  }
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i] == nullptr) continue;
    (infos_[i].once ? once_ : steps_).push_back({kernels_[i].get(), i, std::move(finishes[i])});
    if (infos_[i].once) continue;
    if (stretches_.empty() || stretches_.back().backward != infos_[i].backward) {
      stretches_.push_back({0, infos_[i].backward});
    }
    stretches_.back().end = steps_.size();
  }
}

void Program::bind_input(size_t i, const void* data) {
  bases_[kFirstInput + i] = static_cast<std::byte*>(const_cast<void*>(data));
}
void Program::bind_parameters(const float* data) {
  bases_[kParameters] = reinterpret_cast<std::byte*>(const_cast<float*>(data));
  stale_ = true;
}
void Program::bind_gradients(float* data) { bases_[kGradients] = reinterpret_cast<std::byte*>(data); }

void Program::before_run(const backend::StepContext& context) {
  if (first_run_) {
    for (const Step& step : once_) step.kernel->run(context);
    first_run_ = false;
  }
  if (stale_) {
    for (const Step& step : steps_) step.kernel->refresh();
    stale_ = false;
  }
}

template <class RunKernel>
void Program::run_steps(const backend::StepContext& context, base::FunctionRef<void(ParameterRange)> announce,
                        const RunKernel& run_kernel) {
  const base::FlushDenormals flush;
  Clock::time_point before = Clock::now();
  before_run(context);
  times_ = {};
  size_t i = 0;
  for (const Stretch& stretch : stretches_) {
    for (; i < stretch.end; ++i) {
      run_kernel(steps_[i]);
      for (const ParameterRange& range : steps_[i].finishes) announce(range);
    }
    const Clock::time_point now = Clock::now();
    (stretch.backward ? times_.backward : times_.forward) += std::chrono::duration<double>(now - before).count();
    before = now;
  }
}

void Program::run(const backend::StepContext& context, base::FunctionRef<void(ParameterRange)> announce) {
  run_steps(context, announce, [&](const Step& step) { step.kernel->run(context); });
}

void Program::run(const backend::StepContext& context) {
  run(context, [](ParameterRange) {});
}

void Program::run_observed(const backend::StepContext& context, base::FunctionRef<void(ParameterRange)> announce,
                           Observer observe) {
  run_steps(context, announce, [&](const Step& step) {
    const Clock::time_point begin = Clock::now();
    step.kernel->run(context);
    observe(step.info, begin, Clock::now());
  });
}

std::vector<base::Shares> Program::gradient_shares() const {
  std::vector<base::Shares> by_thread;
  for (size_t i = 0; i < work_.gradients.size(); ++i) {
    const graph::ValueId gradient = work_.gradients[i];
    const auto& kernel = kernels_[static_cast<size_t>(gradient.node)];
    if (kernel == nullptr || gradient.output != 0) continue;
    const base::Shares shares = kernel->shares();
    if (by_thread.size() < shares.size()) by_thread.resize(shares.size());
    for (size_t thread = 0; thread < shares.size(); ++thread) {
      base::Runs runs = shares[thread];
      if (runs.elements() == 0) continue;
      runs.first += static_cast<int64_t>(work_.graph.parameters()[i].offset);
      by_thread[thread].push_back(runs);
    }
  }
  return by_thread;
}

Tensor Program::output(size_t i) const {
  const graph::ValueId id = work_.outputs[i];
  return {work_.graph.output(id).type, locate(id).get<std::byte>()};
}

}  // namespace lockstep::program
