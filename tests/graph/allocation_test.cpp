// A separate program, because it counts every allocation of the process.
#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "graph/bench_program.h"

namespace lockstep::graph {
namespace {

TEST(Program, StepsOfOurKernelsAllocateNothing) {
  const auto backend = cpu(2);
  for (const char* model : {"lr", "lenet"}) {
    Bench bench(model, 32, *backend);
    bench.program().run({});
    testing_support::start_counting();
    for (int step = 0; step < 3; ++step) {
      bench.program().parameters_changed();
      bench.program().run({});
    }
    const auto counted = testing_support::stop_counting();
    EXPECT_EQ(counted.ours, 0U) << model;
    EXPECT_EQ(counted.onednn, 0U) << model;
  }
}

TEST(Program, StepsWithOneDnnAllocateOnlyInsideIt) {
  const auto backend = cpu(1);
  Graph g;
  const Value x = g.input("x", {DType::f32, {2, 64, 8, 8}});
  const Value y = nn::conv(x, "conv", 64, 3, 1, 1);
  const Value loss = ops::reduce_sum(ops::square(y));
  const auto gradients = ops::gradients(loss);
  program::Program program(g, {loss}, gradients, *backend);
  const program::ParameterStore store(program.graph().parameters(), 1);
  const std::vector<float> images(2 * 64 * 8 * 8, 0.5F);
  program.bind_input(0, images.data());
  program.bind_parameters(store.values().data());
  program.bind_gradients(store.gradients().data());
  program.run({});
  testing_support::start_counting();
  program.parameters_changed();
  program.run({});
  EXPECT_EQ(testing_support::stop_counting().ours, 0U);
}

}  // namespace
}  // namespace lockstep::graph
