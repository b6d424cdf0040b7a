// A graph built by hand: nodes are operations, edges are tensors, and gradients() adds the backward pass to it.
#include "lockstep/graph.h"

#include <cstdio>

#include "lockstep/error.h"
#include "lockstep/ops.h"

int main() {
  namespace graph = lockstep::graph;
  namespace ops = lockstep::ops;

  graph::Graph g;
  const graph::Value x = g.input("x", {lockstep::DType::f32, {8, 3}});
  const graph::Value w = g.parameter("w", {3, 2}, graph::Initializer::xavier_uniform(3, 2));
  const graph::Value loss = ops::reduce_mean(ops::square(ops::tanh(ops::matmul(x, w))));
  const size_t forward = g.nodes().size();
  const graph::Value dw = ops::gradients(loss)[0];
  std::printf("%zu nodes forward, %zu backward; the gradient of w is %s\n", forward, g.nodes().size() - forward,
              dw.shape().str().c_str());

  // Misfits are found when the graph is built, and the error names the value seen.
  try {
    ops::matmul(w, x);
  } catch (const lockstep::ShapeError& error) {
    std::printf("refused: %s\n", error.what());
    return 0;
  }
  return 1;
}
