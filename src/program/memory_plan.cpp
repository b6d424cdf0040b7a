#include "program/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>

namespace lockstep::program {
namespace {

constexpr size_t kAlignment = 128;
constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A block of arena memory and the nodes during which it must keep its content.
struct Block {
  size_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  size_t offset = 0;
};

/// Returns true for elementwise ops, which may overwrite an input of the same shape that no later node reads.
bool may_overwrite_first_input(graph::Op op) {
  switch (op) {
    case graph::Op::relu:
    case graph::Op::tanh:
    case graph::Op::sigmoid:
    case graph::Op::softplus:
    case graph::Op::exp:
    case graph::Op::log:
    case graph::Op::sqrt:
    case graph::Op::square:
    case graph::Op::neg:
    case graph::Op::abs:
    case graph::Op::scale:
    case graph::Op::add_scalar:
    case graph::Op::add:
    case graph::Op::sub:
    case graph::Op::mul:
    case graph::Op::div:
    case graph::Op::relu_grad:
    case graph::Op::tanh_grad:
    case graph::Op::sigmoid_grad:
    case graph::Op::softplus_grad:
    case graph::Op::abs_grad:
    case graph::Op::dropout:
    case graph::Op::softmax_cross_entropy_grad:
      return true;
    default:
      return false;
  }
}

class Planner {
 public:
  Planner(const Work& work, const std::vector<KernelMemory>& kernels)
      : work_(work), graph_(work.graph), kernels_(kernels), constants_(find_constants(work)) {}

  MemoryPlan run() && {
    place_fixed_values();
    find_last_uses();
    make_blocks();
    add_kernel_memory();
    pack();
    write_offsets();
    return std::move(plan_);
  }

 private:
  using PerOutput = std::vector<std::vector<int32_t>>;

  [[nodiscard]] ValuePlace& place(graph::ValueId id) {
    return plan_.values[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  }
  static int32_t& at(PerOutput& table, graph::ValueId id) {
    return table[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  }
  [[nodiscard]] int32_t count() const { return static_cast<int32_t>(graph_.nodes().size()); }
  [[nodiscard]] size_t bytes(graph::ValueId id) const {
    const graph::Output& output = graph_.output(id);
    return aligned(static_cast<size_t>(graph::stored_elements(output.type.shape, output.layout)) *
                   size_of(output.type.dtype));
  }

  void place_fixed_values() {
    size_t inputs = 0;
    for (int32_t i = 0; i < count(); ++i) {
      const graph::Node& node = graph_.node(i);
      plan_.values.emplace_back(node.outputs.size());
      last_use_.emplace_back(node.outputs.size(), i);
      block_of_.emplace_back(node.outputs.size(), -1);
      if (node.op == graph::Op::input) place({i, 0}) = {Place::input, inputs++};
      if (node.op == graph::Op::parameter) {
        const auto index = static_cast<size_t>(node.as<graph::ParameterAttrs>().index);
        place({i, 0}) = {Place::parameters, graph_.parameters()[index].offset * sizeof(float)};
      }
    }
    for (size_t i = 0; i < work_.gradients.size(); ++i) {
      place(work_.gradients[i]) = {Place::gradients, graph_.parameters()[i].offset * sizeof(float)};
    }
  }

  void find_last_uses() {
    for (int32_t i = 0; i < count(); ++i) {
      for (const graph::ValueId input : graph_.node(i).inputs) at(last_use_, input) = i;
    }
    for (const graph::ValueId output : work_.outputs) at(last_use_, output) = kForever;
    for (int32_t i = count(); i-- > 0;) {
      const graph::Node& node = graph_.node(i);
      std::vector<int32_t>& uses = last_use_[static_cast<size_t>(i)];
      if (constants_[static_cast<size_t>(i)]) std::fill(uses.begin(), uses.end(), kForever);
      if (!is_alias(graph_, node)) continue;
      at(last_use_, node.inputs[0]) = std::max(at(last_use_, node.inputs[0]), at(last_use_, {i, 0}));
    }
  }

  void make_blocks() {
    for (int32_t i = 0; i < count(); ++i) {
      const graph::Node& node = graph_.node(i);
      if (is_alias(graph_, node)) {
        place({i, 0}) = place(node.inputs[0]);
        at(block_of_, {i, 0}) = at(block_of_, node.inputs[0]);
        continue;
      }
      for (int32_t output = 0; output < static_cast<int32_t>(node.outputs.size()); ++output) {
        if (place({i, output}).place == Place::none) give_block({i, output});
      }
    }
  }

  void give_block(graph::ValueId id) {
    place(id).place = Place::arena;
    plan_.unshared_bytes += bytes(id);
    if (const int32_t taken = block_to_take_over(id); taken >= 0) {
      Block& block = blocks_[static_cast<size_t>(taken)];
      block.last = at(last_use_, id);
      at(block_of_, id) = taken;
      return;
    }
    at(block_of_, id) = static_cast<int32_t>(blocks_.size());
    const int32_t first = constants_[static_cast<size_t>(id.node)] ? -1 : id.node;
    blocks_.push_back({bytes(id), first, at(last_use_, id), 0});
  }

  /// Returns the block of the first input if this node may write over it: same shape and size, and no later reader.
  int32_t block_to_take_over(graph::ValueId id) {
    const graph::Node& node = graph_.node(id);
    if (id.output != 0 || !may_overwrite_first_input(node.op)) return -1;
    const graph::ValueId input = node.inputs[0];
    if (graph_.output(input).type.shape != graph_.output(id).type.shape) return -1;
    const int32_t block = at(block_of_, input);
    if (block < 0 || blocks_[static_cast<size_t>(block)].last != id.node || bytes(input) != bytes(id)) return -1;
    if (constants_[static_cast<size_t>(id.node)]) return -1;
    if (std::count(node.inputs.begin(), node.inputs.end(), input) > 1) return -1;
    return block;
  }

  void add_kernel_memory() {
    for (int32_t i = 0; i < static_cast<int32_t>(kernels_.size()); ++i) {
      const auto [workspace, state] = kernels_[static_cast<size_t>(i)];
      workspace_blocks_.push_back(static_cast<int32_t>(blocks_.size()));
      blocks_.push_back({aligned(workspace), i, i, 0});
      state_blocks_.push_back(static_cast<int32_t>(blocks_.size()));
      blocks_.push_back({aligned(state), -1, kForever, 0});
      plan_.unshared_bytes += aligned(workspace) + aligned(state);
    }
  }

  /// Packs the largest blocks first, each at the lowest offset free of blocks with an overlapping lifetime.
  void pack() {
    std::vector<size_t> order(blocks_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    std::vector<size_t> placed;
    for (const size_t index : order) {
      Block& block = blocks_[index];
      std::map<size_t, size_t> busy;  // offset -> end of neighbours alive at the same time
      for (const size_t other : placed) {
        const Block& neighbour = blocks_[other];
        const bool apart = neighbour.last < block.first || block.last < neighbour.first;
        if (!apart && neighbour.bytes > 0) {
          size_t& end = busy[neighbour.offset];
          end = std::max(end, neighbour.offset + neighbour.bytes);
        }
      }
      size_t offset = 0;
      for (const auto& [begin, end] : busy) {
        if (offset + block.bytes <= begin) break;
        offset = std::max(offset, end);
      }
      block.offset = offset;
      plan_.arena_bytes = std::max(plan_.arena_bytes, offset + block.bytes);
      placed.push_back(index);
    }
  }

  void write_offsets() {
    for (int32_t i = 0; i < count(); ++i) {
      for (int32_t output = 0; output < static_cast<int32_t>(graph_.node(i).outputs.size()); ++output) {
        const int32_t block = at(block_of_, {i, output});
        if (block >= 0) place({i, output}).offset = blocks_[static_cast<size_t>(block)].offset;
      }
    }
    const auto offset = [&](int32_t block) { return blocks_[static_cast<size_t>(block)].offset; };
    for (const int32_t block : workspace_blocks_) plan_.workspace_offsets.push_back(offset(block));
    for (const int32_t block : state_blocks_) plan_.state_offsets.push_back(offset(block));
  }

  const Work& work_;
  const graph::Graph& graph_;
  const std::vector<KernelMemory>& kernels_;
  std::vector<bool> constants_;
  PerOutput last_use_;
  PerOutput block_of_;
  std::vector<Block> blocks_;
  std::vector<int32_t> state_blocks_;
  std::vector<int32_t> workspace_blocks_;
  MemoryPlan plan_;
};

}  // namespace

bool is_alias(const graph::Graph& graph, const graph::Node& node) {
  if (node.op != graph::Op::reshape) return false;
  const graph::Output& input = graph.output(node.inputs[0]);
  return input.layout == node.outputs[0].layout && input.type.dtype == node.outputs[0].type.dtype;
}

std::vector<bool> find_constants(const Work& work) {
  std::vector<bool> constant;
  for (const graph::Node& node : work.graph.nodes()) {
    bool fixed = node.op != graph::Op::input && node.op != graph::Op::parameter &&
                 node.op != graph::Op::random_uniform && node.op != graph::Op::random_normal &&
                 node.op != graph::Op::dropout;
    for (const graph::ValueId input : node.inputs) fixed = fixed && constant[static_cast<size_t>(input.node)];
    constant.push_back(fixed);
  }
  for (const graph::ValueId gradient : work.gradients) constant[static_cast<size_t>(gradient.node)] = false;
  return constant;
}

MemoryPlan plan_memory(const Work& work, const std::vector<KernelMemory>& kernels) {
  return Planner(work, kernels).run();
}

}  // namespace lockstep::program
