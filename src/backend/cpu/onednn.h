// What the oneDNN kernels share: engine and stream, memory descriptors for our layouts, and primitives prepared to run.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace lockstep::backend::cpu {

/// The graph's layout of a 4-dimensional tensor in oneDNN's words.
dnnl::memory::desc describe(const Shape& shape, const graph::Layout& layout);
dnnl::memory::dims dims_of(const Shape& shape);

/// A primitive with its arguments, ready to run without allocating (the C++ wrapper builds its argument list anew at
/// every call). The memories are handles: setting their data afterwards is seen here.
class Prepared {
 public:
  Prepared() = default;
  Prepared(dnnl::primitive primitive, std::initializer_list<std::pair<int, dnnl::memory>> arguments)
      : primitive_(std::move(primitive)) {
    for (const auto& [index, memory] : arguments) add(index, memory);
  }
  void add(int index, const dnnl::memory& memory) { arguments_.push_back({index, memory.get()}); }
  void run(const dnnl::stream& stream) const;

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Engine and stream of one kernel; cheap handles on oneDNN's one CPU device.
struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  [[nodiscard]] dnnl::memory unbound(const dnnl::memory::desc& desc) const { return {desc, engine, nullptr}; }
};

}  // namespace lockstep::backend::cpu
