#include <gtest/gtest.h>

#include <algorithm>

#include "backend/null/null_backend.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "program/program.h"

namespace lockstep::graph {
namespace {

struct Lifetime {
  size_t begin, end;  // bytes in the arena
  int32_t first, last;
};

/// Returns every arena value of a work with the nodes between its creation and its last use.
std::vector<Lifetime> lifetimes(const program::Work& work, const program::MemoryPlan& plan) {
  std::vector<Lifetime> result;
  const std::vector<bool> constants = program::find_constants(work);
  const auto count = static_cast<int32_t>(work.graph.nodes().size());
  for (int32_t i = 0; i < count; ++i) {
    const Node& node = work.graph.node(i);
    if (program::is_alias(work.graph, node)) continue;
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k) {
      const program::ValuePlace& place = plan.values[static_cast<size_t>(i)][static_cast<size_t>(k)];
      if (place.place != program::Place::arena) continue;
      int32_t last = i;
      std::vector<ValueId> names{{i, k}};  // the value and its aliases
      for (int32_t j = i + 1; j < count; ++j) {
        for (const ValueId input : work.graph.node(j).inputs) {
          if (std::find(names.begin(), names.end(), input) == names.end()) continue;
          last = j;
          if (program::is_alias(work.graph, work.graph.node(j))) names.push_back({j, 0});
        }
      }
      for (const ValueId name : names) {
        const bool wanted = std::find(work.outputs.begin(), work.outputs.end(), name) != work.outputs.end();
        if (wanted || constants[static_cast<size_t>(i)]) last = count;
      }
      const Output& output = node.outputs[static_cast<size_t>(k)];
      const auto bytes = static_cast<size_t>(stored_elements(output.type.shape, output.layout)) * 4;
      result.push_back({place.offset, place.offset + bytes, i, last});
    }
  }
  return result;
}

void expect_no_overlap(const program::Work& work, const program::MemoryPlan& plan) {
  const auto values = lifetimes(work, plan);
  for (size_t a = 0; a < values.size(); ++a) {
    for (size_t b = a + 1; b < values.size(); ++b) {
      const bool same_bytes = values[a].begin < values[b].end && values[b].begin < values[a].end;
      // A node may overwrite an input that has its last use there: lifetimes that only touch do not overlap.
      const bool same_time = values[a].first < values[b].last && values[b].first < values[a].last;
      EXPECT_FALSE(same_bytes && same_time) << "values made at nodes " << values[a].first << " and " << values[b].first;
    }
  }
}

program::Work lenet_work(int64_t batch, const backend::Backend& backend) {
  Graph g;
  const auto model = nn::build(g, nn::find_model("lenet"), {batch, true, {1, 28, 28}, 10, {}});
  const auto gradients = ops::gradients(model.loss);
  program::Work work{g, {model.loss.id(), model.correct.id()}, {}};
  for (const Value& v : gradients) work.gradients.push_back(v.id());
  return program::optimize(std::move(work), backend);
}

TEST(MemoryPlan, LivingValuesNeverShareMemory) {
  const auto backend = backend::make_null_backend();
  const program::Work work = lenet_work(7, *backend);
  const program::MemoryPlan plan =
      program::plan_memory(work, std::vector<program::KernelMemory>(work.graph.nodes().size(), {100, 36}));
  expect_no_overlap(work, plan);
}

TEST(MemoryPlan, ScratchTakesTheMemoryOfDeadValuesOnly) {
  const auto backend = backend::make_null_backend();
  const program::Work work = lenet_work(64, *backend);
  constexpr size_t kScratch = 100'000;
  const size_t nodes = work.graph.nodes().size();
  const program::MemoryPlan plan = program::plan_memory(work, std::vector<program::KernelMemory>(nodes, {kScratch, 0}));
  const program::MemoryPlan without = program::plan_memory(work, std::vector<program::KernelMemory>(nodes));
  EXPECT_LT(plan.arena_bytes, without.arena_bytes + 2 * kScratch);
  for (const Lifetime& value : lifetimes(work, plan)) {
    for (int32_t node = value.first; node <= value.last && node < static_cast<int32_t>(nodes); ++node) {
      const size_t scratch = plan.workspace_offsets[static_cast<size_t>(node)];
      EXPECT_TRUE(scratch >= value.end || scratch + kScratch <= value.begin)
          << "scratch of node " << node << " and the value made at node " << value.first;
    }
  }
}

TEST(MemoryPlan, DeadValuesMemoryIsUsedAgain) {
  const auto backend = backend::make_null_backend();
  const program::Work work = lenet_work(64, *backend);
  const program::MemoryPlan plan =
      program::plan_memory(work, std::vector<program::KernelMemory>(work.graph.nodes().size()));
  EXPECT_LT(plan.arena_bytes, plan.unshared_bytes * 7 / 10);
}

TEST(MemoryPlan, ElementwiseOpsWriteOverTheirInput) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {1000}});
  const Value y = ops::exp(ops::neg(ops::exp(ops::exp(x))));
  const auto backend = backend::make_null_backend();
  const program::Program program(g, {y}, {}, *backend);
  EXPECT_LE(program.memory().arena_bytes, size_t{4096});
}

TEST(MemoryPlan, OpsOfTwoInputsWriteOverTheirFirst) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {1000}});
  const Value row = g.input("row", {DType::f32, {1}});
  const Value y = ops::mul(ops::sub(ops::add(ops::exp(x), row), x), row);
  const auto backend = backend::make_null_backend();
  const program::Program program(g, {y}, {}, *backend);
  EXPECT_LE(program.memory().arena_bytes, size_t{4096});
}

TEST(MemoryPlan, GradientsLieInTheirBufferInPlainOrder) {
  const auto backend = backend::make_null_backend();
  const program::Work work = lenet_work(8, *backend);
  const program::MemoryPlan plan =
      program::plan_memory(work, std::vector<program::KernelMemory>(work.graph.nodes().size()));
  for (size_t i = 0; i < work.gradients.size(); ++i) {
    const ValueId id = work.gradients[i];
    const program::ValuePlace& place = plan.values[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
    EXPECT_EQ(place.place, program::Place::gradients);
    EXPECT_EQ(place.offset, work.graph.parameters()[i].offset * sizeof(float));
    EXPECT_TRUE(work.graph.output(id).layout.plain());
  }
}

}  // namespace
}  // namespace lockstep::graph
