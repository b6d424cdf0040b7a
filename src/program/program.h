// Program: a graph made ready to run. A flat list of prepared kernel calls over one arena that is allocated once.
// Running a step allocates nothing and looks nothing up. Used by one thread at a time. The caller owns parameters and
// gradients and may move them between runs.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/function_ref.h"
#include "base/shares.h"
#include "program/memory_plan.h"
#include "schedule/range.h"
#include "tensor/buffer.h"

namespace lockstep::program {

/// A run of elements in the parameter and gradient buffers.
using schedule::ParameterRange;

/// One kernel call, for display and profiles.
struct KernelInfo {
  std::string name;
  graph::Op op = graph::Op::identity;
  std::string implementation;
  TensorType type;  ///< type of the first output
  graph::Layout layout;
  bool backward = false;
  bool once = false;  ///< constant: computed before the first step only
};

/// Durations of a run, in seconds.
struct RunTimes {
  double forward = 0;
  double backward = 0;  ///< includes the work done when gradients were announced
};

class Program {
 public:
  /// Optimises the graph for the backend and prepares its kernels. A run sets `outputs`. `gradients` holds one value
  /// per parameter, or none for a forward program.
  Program(graph::Graph graph, const std::vector<graph::Value>& outputs, const std::vector<graph::Value>& gradients,
          const backend::Backend& backend);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  /// Sets the memory of input i (in the order the graph's inputs were made), of the parameters and of the gradients.
  void bind_input(size_t i, const void* data);
  void bind_parameters(const float* data);
  void bind_gradients(float* data);
  /// Tells the program that parameters changed since the last run.
  void parameters_changed() { stale_ = true; }

  /// Runs all kernels. Calls `announce` for each parameter's gradient as soon as it is final.
  void run(const backend::StepContext& context, base::FunctionRef<void(ParameterRange)> announce);
  void run(const backend::StepContext& context);
  /// Runs all kernels and reports for each, by its index in kernels(), when it ran.
  using Clock = std::chrono::steady_clock;
  using Observer = base::FunctionRef<void(size_t kernel, Clock::time_point begin, Clock::time_point end)>;
  void run_observed(const backend::StepContext& context, base::FunctionRef<void(ParameterRange)> announce,
                    Observer observe);

  /// Returns the durations of the latest run.
  [[nodiscard]] const RunTimes& times() const { return times_; }

  [[nodiscard]] Tensor output(size_t i) const;
  /// Returns the runs of the gradient buffer that each thread writes, as far as kernels know them.
  [[nodiscard]] std::vector<base::Shares> gradient_shares() const;
  [[nodiscard]] const std::vector<KernelInfo>& kernels() const { return infos_; }
  [[nodiscard]] const MemoryPlan& memory() const { return plan_; }
  [[nodiscard]] const graph::Graph& graph() const { return work_.graph; }

 private:
  struct Step {
    backend::Kernel* kernel = nullptr;
    size_t info = 0;
    std::vector<ParameterRange> finishes;
  };

  /// Consecutive steps that all belong to the forward pass, or all to the backward pass.
  struct Stretch {
    size_t end = 0;
    bool backward = false;
  };

  void make_kernels(const backend::Backend& backend);
  void bind_kernels();
  void order_steps();
  template <class RunKernel>
  void run_steps(const backend::StepContext& context, base::FunctionRef<void(ParameterRange)> announce,
                 const RunKernel& run_kernel);
  void before_run(const backend::StepContext& context);
  [[nodiscard]] backend::Location locate(graph::ValueId id) const;

  Work work_;
  MemoryPlan plan_;
  std::vector<std::unique_ptr<backend::Kernel>> kernels_;  // per node; null if none is needed
  std::vector<KernelInfo> infos_;
  std::vector<Step> once_;
  std::vector<Step> steps_;
  std::vector<Stretch> stretches_;       // stretches of steps_; mostly two
  std::unique_ptr<std::byte*[]> bases_;  // arena, parameters, gradients, inputs...
  Buffer arena_;
  RunTimes times_;
  bool stale_ = true;
  bool first_run_ = true;
};

}  // namespace lockstep::program
