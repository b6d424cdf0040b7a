// The interface of a device: kernels for nodes, and rules for memory layouts. A backend is a leaf: no room above names
// one, except the function that makes the user's choice (train::make_backend).
//
// A Kernel is prepared once for one node (shapes, layouts and thread count fixed), bound once to its memory, and then
// run many times by one thread at a time. run() neither allocates nor looks anything up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shares.h"
#include "lockstep/graph.h"

namespace lockstep::backend {

/// The place of an operand: a base that the program may move between runs, and a fixed offset.
struct Location {
  std::byte* const* base = nullptr;
  size_t offset = 0;

  template <class T>
  [[nodiscard]] T* get() const {
    return reinterpret_cast<T*>(*base + offset);
  }
};

/// The key of random ops besides their stream; see base::Philox.
struct StepContext {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t first_row = 0;  ///< row of the global batch that this batch starts at
};

/// The memory of a kernel's operands.
struct Binding {
  std::vector<Location> inputs;
  std::vector<Location> outputs;
  Location workspace_at;  ///< scratch, valid only during refresh() and run()
  Location state_at;      ///< kept between runs

  template <class T = float>
  [[nodiscard]] const T* in(size_t i) const {
    return inputs[i].get<const T>();
  }
  template <class T = float>
  [[nodiscard]] T* out(size_t i = 0) const {
    return outputs[i].get<T>();
  }
  template <class T = float>
  [[nodiscard]] T* workspace() const {
    return workspace_at.get<T>();
  }
  template <class T = float>
  [[nodiscard]] T* state() const {
    return state_at.get<T>();
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Returns the bytes of scratch shared with other kernels (workspace), or of memory of its own (state).
  [[nodiscard]] virtual size_t workspace_bytes() const { return 0; }
  [[nodiscard]] virtual size_t state_bytes() const { return 0; }
  /// Returns the implementation that a library chose inside this kernel, for display; empty if there is no choice.
  [[nodiscard]] virtual std::string detail() const { return {}; }
  /// Returns what each thread computes of the first output; empty if unknown.
  [[nodiscard]] virtual base::Shares shares() const { return {}; }

  void bind(Binding binding) { binding_ = std::move(binding); }

  /// Rebuilds data derived from parameters (blocked copies). Called before run() after each update.
  virtual void refresh() {}
  virtual void run(const StepContext& context) = 0;

 protected:
  [[nodiscard]] const Binding& operands() const { return binding_; }

 private:
  Binding binding_;
};

/// A node with everything that a kernel may depend on.
struct KernelRequest {
  const graph::Graph& graph;
  const graph::Node& node;

  [[nodiscard]] const graph::Output& input(size_t i) const { return graph.output(node.inputs[i]); }
  [[nodiscard]] const graph::Output& output(size_t i = 0) const { return node.outputs[i]; }
  [[nodiscard]] const Shape& in_shape(size_t i) const { return input(i).type.shape; }
  [[nodiscard]] const Shape& out_shape(size_t i = 0) const { return output(i).type.shape; }
  /// Returns true if input i is a parameter, which changes only between refresh() calls.
  [[nodiscard]] bool is_parameter(size_t i) const { return graph.node(node.inputs[i]).op == graph::Op::parameter; }
};

struct NamedKernel {
  std::string implementation;  ///< e.g. "batch_conv", "onednn jit:avx2", "reference"
  std::unique_ptr<Kernel> kernel;
};

/// Layouts that a node wants; inputs in other layouts are reordered.
struct LayoutChoice {
  std::vector<graph::Layout> inputs;
  std::vector<graph::Layout> outputs;
};

/// Element types that a node wants; inputs of another type are cast.
struct PrecisionChoice {
  std::vector<DType> inputs;
  std::vector<DType> outputs;
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns the fastest implementation that accepts the node. Throws Error if there is none.
  [[nodiscard]] virtual NamedKernel make(const KernelRequest& request) const = 0;
  /// Returns the element types for a node, given the graph's current types of its inputs; nullopt: keep those it was
  /// built with.
  [[nodiscard]] virtual std::optional<PrecisionChoice> precisions(const KernelRequest&) const { return std::nullopt; }
  /// Returns the layouts for a node, given the graph's current layouts of its inputs; nullopt: plain everywhere.
  [[nodiscard]] virtual std::optional<LayoutChoice> layouts(const KernelRequest& request) const = 0;
};

}  // namespace lockstep::backend
