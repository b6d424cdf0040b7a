// The CPU backend's kernels: for each op the implementations in order of preference. Each may decline a node; the
// last one is a plain reference that takes any node in plain layout. kernel_list.cpp is the one place to look.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"

namespace lockstep::backend::cpu {

/// Prepares a kernel for a node, or declines with null.
using MakeKernel = std::unique_ptr<Kernel> (*)(const KernelRequest& request, const CpuOptions& options);

struct Implementation {
  std::string_view name;
  MakeKernel make;
};

/// Fastest first; empty for ops that need no kernel.
std::span<const Implementation> implementations(graph::Op op);

/// A kernel made of one function: body(const Binding&, const StepContext&).
template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(size_t workspace, Body body) : workspace_(workspace), body_(std::move(body)) {}
  [[nodiscard]] size_t workspace_bytes() const override { return workspace_; }
  void run(const StepContext& context) override { body_(operands(), context); }

 private:
  size_t workspace_;
  Body body_;
};

template <class Body>
std::unique_ptr<Kernel> make_kernel(Body body, size_t workspace_bytes = 0) {
  return std::make_unique<FunctionKernel<Body>>(workspace_bytes, std::move(body));
}

/// Whether every operand of the node lies in plain order, and whether all lie alike.
bool all_plain(const KernelRequest& request);
bool all_alike(const KernelRequest& request);

// Fast implementations, by family.
std::unique_ptr<Kernel> vector_unary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_binary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_fill(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_gemm(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bias_add(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bias_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_reduce(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax_cross_entropy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax_cross_entropy_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_pool(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_pool_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_reorder(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> batch_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> batch_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> batch_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_matmul(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_reorder(const KernelRequest&, const CpuOptions&);

// Plain reference implementations, by family.
std::unique_ptr<Kernel> reference_constant(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_unary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_binary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_max_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_matmul(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bias_add(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bias_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_pool(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_pool_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_cross_entropy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_cross_entropy_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax_cross_entropy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax_cross_entropy_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_correct(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_reduce(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_broadcast_to(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_copy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_transpose(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_concat(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_slice(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_pad_slice(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_dropout(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_random(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_reorder(const KernelRequest&, const CpuOptions&);

}  // namespace lockstep::backend::cpu
