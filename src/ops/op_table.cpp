#include "ops/op_table.h"

#include <array>

namespace lockstep::ops {

// Declares the gradient rules, which only this file uses.

void relu_gradient(GradientRuleContext&);
void tanh_gradient(GradientRuleContext&);
void sigmoid_gradient(GradientRuleContext&);
void softplus_gradient(GradientRuleContext&);
void exp_gradient(GradientRuleContext&);
void log_gradient(GradientRuleContext&);
void sqrt_gradient(GradientRuleContext&);
void square_gradient(GradientRuleContext&);
void neg_gradient(GradientRuleContext&);
void abs_gradient(GradientRuleContext&);
void scale_gradient(GradientRuleContext&);
void pass_gradient(GradientRuleContext&);
void add_gradient(GradientRuleContext&);
void sub_gradient(GradientRuleContext&);
void mul_gradient(GradientRuleContext&);
void div_gradient(GradientRuleContext&);
void maximum_gradient(GradientRuleContext&);
void minimum_gradient(GradientRuleContext&);
void matmul_gradient(GradientRuleContext&);
void bias_add_gradient(GradientRuleContext&);
void conv2d_gradient(GradientRuleContext&);
void max_pool_gradient(GradientRuleContext&);
void avg_pool_gradient(GradientRuleContext&);
void lrn_gradient(GradientRuleContext&);
void affine_grid_gradient(GradientRuleContext&);
void bilinear_sample_gradient(GradientRuleContext&);
void softmax_gradient(GradientRuleContext&);
void cross_entropy_gradient(GradientRuleContext&);
void softmax_cross_entropy_gradient(GradientRuleContext&);
void reduce_sum_gradient(GradientRuleContext&);
void reduce_mean_gradient(GradientRuleContext&);
void reduce_max_gradient(GradientRuleContext&);
void broadcast_to_gradient(GradientRuleContext&);
void reshape_gradient(GradientRuleContext&);
void transpose_gradient(GradientRuleContext&);
void concat_gradient(GradientRuleContext&);
void slice_gradient(GradientRuleContext&);
void dropout_gradient(GradientRuleContext&);

namespace {

constexpr std::array<OpDef, graph::kOpCount> kTable{{
    {Op::input, "input", Family::source, "a tensor supplied at every run", nullptr},
    {Op::parameter, "parameter", Family::source, "a trained tensor", nullptr},
    {Op::constant, "constant", Family::source, "one value everywhere", nullptr},
    {Op::matmul, "matmul", Family::dense, "op(a) op(b), op transposes if asked; may carry bias and activation",
     matmul_gradient},
    {Op::bias_add, "bias_add", Family::dense, "x + bias along axis 1", bias_add_gradient},
    {Op::bias_grad, "bias_grad", Family::backward, "sum over all axes but axis 1", nullptr},
    {Op::conv2d, "conv2d", Family::window, "cross-correlation with stride and padding; may carry bias and activation",
     conv2d_gradient},
    {Op::conv2d_grad_input, "conv2d_grad_input", Family::backward, "gradient of conv2d to its input", nullptr},
    {Op::conv2d_grad_weights, "conv2d_grad_weights", Family::backward,
     "gradient of conv2d to its weights, and to its bias when fused", nullptr},
    {Op::max_pool, "max_pool", Family::window, "largest value in each window", max_pool_gradient},
    {Op::max_pool_grad, "max_pool_grad", Family::backward, "gradient of max_pool, to the first maximum", nullptr},
    {Op::avg_pool, "avg_pool", Family::window, "mean of the cells of each window inside the image", avg_pool_gradient},
    {Op::avg_pool_grad, "avg_pool_grad", Family::backward, "gradient of avg_pool", nullptr},
    {Op::lrn, "lrn", Family::window, "x / (bias + alpha * sum of x * x over the near channels) ^ beta", lrn_gradient},
    {Op::lrn_grad, "lrn_grad", Family::backward, "gradient of lrn", nullptr},
    {Op::affine_grid, "affine_grid", Family::sampling, "theta (2x3) times (x, y, 1) for each cell of an image",
     affine_grid_gradient},
    {Op::affine_grid_grad, "affine_grid_grad", Family::backward, "gradient of affine_grid", nullptr},
    {Op::bilinear_sample, "bilinear_sample", Family::sampling, "the image between its pixels, at the grid's points",
     bilinear_sample_gradient},
    {Op::bilinear_sample_grad_image, "bilinear_sample_grad_image", Family::backward,
     "gradient of bilinear_sample to its image", nullptr},
    {Op::bilinear_sample_grad_grid, "bilinear_sample_grad_grid", Family::backward,
     "gradient of bilinear_sample to its grid", nullptr},
    {Op::relu, "relu", Family::unary, "max(x, 0)", relu_gradient},
    {Op::tanh, "tanh", Family::unary, "tanh(x)", tanh_gradient},
    {Op::sigmoid, "sigmoid", Family::unary, "1 / (1 + exp(-x))", sigmoid_gradient},
    {Op::softplus, "softplus", Family::unary, "log(1 + exp(x))", softplus_gradient},
    {Op::exp, "exp", Family::unary, "exp(x)", exp_gradient},
    {Op::log, "log", Family::unary, "log(x)", log_gradient},
    {Op::sqrt, "sqrt", Family::unary, "square root of x", sqrt_gradient},
    {Op::square, "square", Family::unary, "x * x", square_gradient},
    {Op::neg, "neg", Family::unary, "-x", neg_gradient},
    {Op::abs, "abs", Family::unary, "|x|", abs_gradient},
    {Op::scale, "scale", Family::unary, "x * constant", scale_gradient},
    {Op::add_scalar, "add_scalar", Family::unary, "x + constant", pass_gradient},
    {Op::relu_grad, "relu_grad", Family::backward, "dy where y > 0, else 0", nullptr},
    {Op::tanh_grad, "tanh_grad", Family::backward, "dy * (1 - y * y)", nullptr},
    {Op::sigmoid_grad, "sigmoid_grad", Family::backward, "dy * y * (1 - y)", nullptr},
    {Op::softplus_grad, "softplus_grad", Family::backward, "dy * sigmoid(x)", nullptr},
    {Op::abs_grad, "abs_grad", Family::backward, "dy * sign(x)", nullptr},
    {Op::add, "add", Family::binary, "a + b", add_gradient},
    {Op::sub, "sub", Family::binary, "a - b", sub_gradient},
    {Op::mul, "mul", Family::binary, "a * b", mul_gradient},
    {Op::div, "div", Family::binary, "a / b", div_gradient},
    {Op::maximum, "maximum", Family::binary, "the larger of a and b", maximum_gradient},
    {Op::minimum, "minimum", Family::binary, "the smaller of a and b", minimum_gradient},
    {Op::max_grad, "max_grad", Family::backward, "dy where a >= b, else 0", nullptr},
    {Op::softmax, "softmax", Family::softmax, "exp(x) / sum(exp(x)) over the last axis", softmax_gradient},
    {Op::softmax_grad, "softmax_grad", Family::backward, "y * (dy - sum(dy * y))", nullptr},
    {Op::cross_entropy, "cross_entropy", Family::softmax, "-log(p[label]) per row", cross_entropy_gradient},
    {Op::cross_entropy_grad, "cross_entropy_grad", Family::backward, "-dy / p at the label, else 0", nullptr},
    {Op::softmax_cross_entropy, "softmax_cross_entropy", Family::softmax,
     "-log(softmax(x)[label]) per row, and the probabilities", softmax_cross_entropy_gradient},
    {Op::softmax_cross_entropy_grad, "softmax_cross_entropy_grad", Family::backward, "dy * (p - onehot(label))",
     nullptr},
    {Op::correct, "correct", Family::softmax, "1 where the largest score is the label's, else 0", nullptr},
    {Op::reduce_sum, "reduce_sum", Family::reduce, "sum over axes", reduce_sum_gradient},
    {Op::reduce_mean, "reduce_mean", Family::reduce, "mean over axes", reduce_mean_gradient},
    {Op::reduce_max, "reduce_max", Family::reduce, "largest over axes; equal ones share the gradient",
     reduce_max_gradient},
    {Op::broadcast_to, "broadcast_to", Family::shape, "repeats along missing or single dimensions",
     broadcast_to_gradient},
    {Op::reshape, "reshape", Family::shape, "the same elements in another shape", reshape_gradient},
    {Op::transpose, "transpose", Family::shape, "axes in another order", transpose_gradient},
    {Op::concat, "concat", Family::shape, "parts joined along an axis", concat_gradient},
    {Op::slice, "slice", Family::shape, "a part of an axis", slice_gradient},
    {Op::pad_slice, "pad_slice", Family::backward, "a slice put back among zeros", nullptr},
    {Op::identity, "identity", Family::shape, "a copy", pass_gradient},
    {Op::dropout, "dropout", Family::random, "x / (1 - rate) with probability 1 - rate, else 0", dropout_gradient},
    {Op::random_uniform, "random_uniform", Family::random, "uniform in [low, high)", nullptr},
    {Op::random_normal, "random_normal", Family::random, "normal with mean and deviation", nullptr},
    {Op::reorder, "reorder", Family::internal, "the same tensor in another memory layout", nullptr},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].op != static_cast<Op>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "op_table: one line per op, in the order of graph::Op");

}  // namespace

std::span<const OpDef> op_table() { return kTable; }
const OpDef& definition(Op op) { return kTable[static_cast<size_t>(op)]; }
std::string_view name(Op op) { return definition(op).name; }

std::string_view name(Family family) {
  constexpr std::array<std::string_view, 12> kNames{"Sources",
                                                    "Dense",
                                                    "Windows",
                                                    "Sampling",
                                                    "Elementwise, one argument",
                                                    "Elementwise, two arguments",
                                                    "Softmax and losses",
                                                    "Reductions",
                                                    "Shapes",
                                                    "Random",
                                                    "Backward ops",
                                                    "Internal"};
  return kNames[static_cast<size_t>(family)];
}

}  // namespace lockstep::ops
