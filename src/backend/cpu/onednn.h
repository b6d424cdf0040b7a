// Parts that the oneDNN kernels share: engine and stream, memory descriptors for our layouts, and primitives prepared
// to run.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace lockstep::backend::cpu {

/// Describes a matrix or 4-dimensional tensor of the graph to oneDNN: shape, type and layout.
dnnl::memory::desc describe(const graph::Output& output);
/// Describes a tensor whose channels all lie in one block, however wide, or whose only channel is plain.
dnnl::memory::desc describe_channels_last(const graph::Output& output);
dnnl::memory::dims dims_of(const Shape& shape);

/// Engine and stream of one kernel; cheap handles on oneDNN's one CPU device.
struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  [[nodiscard]] dnnl::memory unbound(const dnnl::memory::desc& desc) const { return {desc, engine, nullptr}; }
};

/// A primitive with its arguments, which runs without allocating (oneDNN's C++ wrapper builds its argument list anew at
/// every call). The memories are handles: data pointers set later take effect here. The caller supplies scratch.
class Prepared {
 public:
  Prepared() = default;
  Prepared(const OneDnn& dnn, const dnnl::primitive_desc_base& desc,
           std::initializer_list<std::pair<int, dnnl::memory>> arguments);
  void add(int index, const dnnl::memory& memory) { arguments_.push_back({index, memory.get()}); }

  [[nodiscard]] size_t scratch_bytes() const { return scratch_bytes_; }
  /// Returns oneDNN's name of the implementation, e.g. "jit:avx512_core".
  [[nodiscard]] const std::string& implementation() const { return implementation_; }
  void run(const dnnl::stream& stream, void* scratch);

 private:
  dnnl::primitive primitive_;
  dnnl::memory scratch_;
  size_t scratch_bytes_ = 0;
  std::string implementation_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Returns an operand's address in the form that oneDNN takes.
inline void* input(const Binding& binding, size_t i) { return const_cast<std::byte*>(binding.in<std::byte>(i)); }
inline void* output(const Binding& binding, size_t i = 0) { return binding.out<std::byte>(i); }

}  // namespace lockstep::backend::cpu
