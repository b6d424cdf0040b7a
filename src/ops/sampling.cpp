// Reads an image at points between its pixels: the grid of points and the interpolation.
#include "ops/op_table.h"
#include "ops/rules.h"

namespace lockstep::ops {

Value affine_grid(Value theta, int64_t height, int64_t width, Sampling sampling) {
  require_dtype("affine_grid", "theta", theta, DType::f32);
  require_rank("affine_grid", "theta", theta, 2);
  if (theta.shape()[1] != 6) {
    reject("affine_grid", "theta '" + theta.name() + "' " + theta.shape().str() + " must be [N, 6], a 2x3 matrix each");
  }
  if (height < 1 || width < 1) {
    reject("affine_grid",
           "height " + std::to_string(height) + " and width " + std::to_string(width) + " must be positive");
  }
  return add_node(Op::affine_grid, graph::AffineGridAttrs{height, width, sampling}, {theta},
                  {{DType::f32, {theta.shape()[0], height, width, 2}}});
}

Value bilinear_sample(Value image, Value grid, Sampling sampling) {
  for (const auto& [argument, value] : {std::pair{"image", image}, std::pair{"grid", grid}}) {
    require_dtype("bilinear_sample", argument, value, DType::f32);
    require_rank("bilinear_sample", argument, value, 4);
  }
  const Shape& from = image.shape();
  const Shape& points = grid.shape();
  if (points[0] != from[0] || points[3] != 2) {
    reject("bilinear_sample", "grid '" + grid.name() + "' " + points.str() + " does not fit image '" + image.name() +
                                  "' " + from.str() + ": must be [" + std::to_string(from[0]) + ", height, width, 2]");
  }
  return add_node(Op::bilinear_sample, graph::SampleAttrs{sampling}, {image, grid},
                  {{DType::f32, {from[0], from[1], points[1], points[2]}}});
}

void affine_grid_gradient(GradientRuleContext& g) {
  const auto attrs = g.node().as<graph::AffineGridAttrs>();
  g.set(0, add_node(Op::affine_grid_grad, attrs, {g.dy()}, {g.input(0).type()}));
}

void bilinear_sample_gradient(GradientRuleContext& g) {
  const auto attrs = g.node().as<graph::SampleAttrs>();
  const Value image = g.input(0);
  const Value grid = g.input(1);
  g.set(0, add_node(Op::bilinear_sample_grad_image, attrs, {grid, g.dy()}, {image.type()}));
  g.set(1, add_node(Op::bilinear_sample_grad_grid, attrs, {image, grid, g.dy()}, {grid.type()}));
}

}  // namespace lockstep::ops
