// The CPU backend's kernels: each op's implementations in order of preference. Each may decline a node. The last is a
// plain reference that takes any node in plain layout. kernel_list.cpp holds the complete list.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"

namespace lockstep::backend::cpu {

/// Prepares a kernel for a node, or returns null to decline it.
using MakeKernel = std::unique_ptr<Kernel> (*)(const KernelRequest& request, const CpuOptions& options);

struct Implementation {
  std::string_view name;
  MakeKernel make;
  bool bf16 = false;  ///< true: also offered nodes with bfloat16 operands
};

/// Returns the implementations, fastest first; empty for ops that need no kernel.
std::span<const Implementation> implementations(graph::Op op);

/// A kernel made from one function: body(const Binding&, const StepContext&).
template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(size_t workspace, Body body, base::Shares shares)
      : workspace_(workspace), body_(std::move(body)), shares_(std::move(shares)) {}
  [[nodiscard]] size_t workspace_bytes() const override { return workspace_; }
  [[nodiscard]] base::Shares shares() const override { return shares_; }
  void run(const StepContext& context) override { body_(operands(), context); }

 private:
  size_t workspace_;
  Body body_;
  base::Shares shares_;
};

template <class Body>
std::unique_ptr<Kernel> make_kernel(Body body, size_t workspace_bytes = 0, base::Shares shares = {}) {
  return std::make_unique<FunctionKernel<Body>>(workspace_bytes, std::move(body), std::move(shares));
}

/// Return true if every operand of the node is in plain order, and if all have the same layout.
bool all_plain(const KernelRequest& request);
bool all_alike(const KernelRequest& request);

}  // namespace lockstep::backend::cpu
