// Conversions of our ops to ONNX. The table at the end has one line per op that can be exported.
#include <algorithm>
#include <array>
#include <utility>

#include "interchange/onnx_export_images.h"
#include "interchange/onnx_writer.h"

namespace lockstep::interchange {
namespace {

using graph::Activation;
using graph::Node;
using graph::Op;
using graph::Window;
using Ints = std::vector<int64_t>;

void rename(NodeWriter& w, std::string_view op) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < w.node().inputs.size(); ++i) inputs.push_back(w.in(i));
  w.result(op, inputs);
}

/// Exports ops that ONNX has under another name, with the same inputs and no attributes.
template <const char* kName>
void same(NodeWriter& w) {
  rename(w, kName);
}

constexpr char kRelu[] = "Relu";
constexpr char kTanh[] = "Tanh";
constexpr char kSigmoid[] = "Sigmoid";
constexpr char kSoftplus[] = "Softplus";
constexpr char kExp[] = "Exp";
constexpr char kLog[] = "Log";
constexpr char kSqrt[] = "Sqrt";
constexpr char kNeg[] = "Neg";
constexpr char kAbs[] = "Abs";
constexpr char kAdd[] = "Add";
constexpr char kSub[] = "Sub";
constexpr char kMul[] = "Mul";
constexpr char kDiv[] = "Div";
constexpr char kMax[] = "Max";
constexpr char kMin[] = "Min";
constexpr char kIdentity[] = "Identity";

std::vector<OnnxAttribute> window_attributes(const Window& window) {
  return {{"kernel_shape", Ints{window.kernel_h, window.kernel_w}},
          {"strides", Ints{window.stride_h, window.stride_w}},
          {"pads", Ints{window.pad_top, window.pad_left, window.pad_bottom, window.pad_right}}};
}

/// Writes the node `product` (a matmul or conv2d), with its bias if given, as the result of `w`.
void write_product(NodeWriter& w, const Node& product, const std::string& bias) {
  std::vector<std::string> inputs{w.writer().name(product.inputs[0]), w.writer().name(product.inputs[1])};
  if (!bias.empty()) inputs.push_back(bias);
  if (product.op == Op::conv2d) {
    w.result("Conv", inputs, window_attributes(product.as<graph::ConvAttrs>().window));
    return;
  }
  const auto& attrs = product.as<graph::MatMulAttrs>();
  if (bias.empty() && !attrs.trans_a && !attrs.trans_b) {
    w.result("MatMul", inputs);
    return;
  }
  w.result("Gemm", inputs, {{"transA", int64_t{attrs.trans_a}}, {"transB", int64_t{attrs.trans_b}}});
}

void product(NodeWriter& w) { write_product(w, w.node(), ""); }

void bias_add(NodeWriter& w) {
  const int32_t producer = w.node().inputs[0].node;
  if (w.writer().absorbed(producer)) {
    write_product(w, w.writer().graph().node(producer), w.in(1));
    return;
  }
  const int rank = w.in_shape(0).rank();
  if (rank == 2) {
    w.result("Add", {w.in(0), w.in(1)});
    return;
  }
  Ints dims(static_cast<size_t>(rank) - 1, 1);
  dims[0] = w.in_shape(1)[0];
  w.result("Add", {w.in(0), w.step("Reshape", {w.in(1), w.ints(dims)})});
}

void max_pool(NodeWriter& w) {
  w.result("MaxPool", {w.in(0)}, window_attributes(w.node().as<graph::PoolAttrs>().window));
}

void avg_pool(NodeWriter& w) {
  auto attributes = window_attributes(w.node().as<graph::PoolAttrs>().window);
  attributes.push_back({"count_include_pad", int64_t{0}});
  w.result("AveragePool", {w.in(0)}, attributes);
}

void square(NodeWriter& w) { w.result("Mul", {w.in(0), w.in(0)}); }
void scale(NodeWriter& w) { w.result("Mul", {w.in(0), w.scalar(w.node().as<graph::ScalarAttrs>().value)}); }
void add_scalar(NodeWriter& w) { w.result("Add", {w.in(0), w.scalar(w.node().as<graph::ScalarAttrs>().value)}); }
void softmax(NodeWriter& w) { w.result("Softmax", {w.in(0)}, {{"axis", int64_t{-1}}}); }

void constant(NodeWriter& w) {
  const std::string value = w.scalar(w.node().as<graph::ScalarAttrs>().value);
  w.result("Expand", {value, w.shape(w.out_dims())});
}

Ints reduced_axes(NodeWriter& w) {
  Ints axes;
  for (int axis = 0; axis < w.in_shape(0).rank(); ++axis) {
    if ((w.node().as<graph::ReduceAttrs>().axes >> axis & 1U) != 0) axes.push_back(axis);
  }
  return axes;
}

void reduce(NodeWriter& w) {
  const OnnxAttribute keep{"keepdims", int64_t{w.node().as<graph::ReduceAttrs>().keep_dims}};
  const Ints axes = reduced_axes(w);
  if (axes.empty()) {  // for a scalar; ONNX would read no axes as all axes
    w.result("Identity", {w.in(0)});
  } else if (w.node().op == Op::reduce_sum) {
    w.result("ReduceSum", {w.in(0), w.ints(axes)}, {keep});
  } else {
    w.result(w.node().op == Op::reduce_mean ? "ReduceMean" : "ReduceMax", {w.in(0)}, {{"axes", axes}, keep});
  }
}

void broadcast_to(NodeWriter& w) {
  std::vector<Dim> to = w.out_dims();
  const std::vector<Dim> from = w.in_dims(0);
  // Expand keeps a dimension where 1 is requested, so sizes that the tensor already has need not be computed.
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[from.size() - 1 - i].batch) to[to.size() - 1 - i] = {};
  }
  w.result("Expand", {w.in(0), w.shape(to)});
}

void reshape(NodeWriter& w) { w.result("Reshape", {w.in(0), w.reshape_dims(w.out_dims())}); }

void transpose(NodeWriter& w) {
  const auto order = w.node().as<graph::TransposeAttrs>().permutation.dims();
  w.result("Transpose", {w.in(0)}, {{"perm", Ints(order.begin(), order.end())}});
}

void concat(NodeWriter& w) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < w.node().inputs.size(); ++i) parts.push_back(w.in(i));
  w.result("Concat", parts, {{"axis", int64_t{w.node().as<graph::AxisAttrs>().axis}}});
}

void slice(NodeWriter& w) {
  const auto& [axis, begin] = w.node().as<graph::AxisAttrs>();
  const Dim size = w.out_dims()[static_cast<size_t>(axis)];
  if (size.batch) w.refuse("a part of the batch whose size depends on it; fix the batch with --batch N");
  w.result("Slice", {w.in(0), w.ints({begin}), w.ints({begin + size.size}), w.ints({axis})});
}

struct Exported {
  Op op;
  NodeExporter exporter;
};
constexpr std::array kExported{
    Exported{Op::constant, constant},
    Exported{Op::matmul, product},
    Exported{Op::bias_add, bias_add},
    Exported{Op::conv2d, product},
    Exported{Op::max_pool, max_pool},
    Exported{Op::avg_pool, avg_pool},
    Exported{Op::lrn, export_lrn},
    Exported{Op::affine_grid, export_affine_grid},
    Exported{Op::bilinear_sample, export_bilinear_sample},
    Exported{Op::relu, same<kRelu>},
    Exported{Op::tanh, same<kTanh>},
    Exported{Op::sigmoid, same<kSigmoid>},
    Exported{Op::softplus, same<kSoftplus>},
    Exported{Op::exp, same<kExp>},
    Exported{Op::log, same<kLog>},
    Exported{Op::sqrt, same<kSqrt>},
    Exported{Op::square, square},
    Exported{Op::neg, same<kNeg>},
    Exported{Op::abs, same<kAbs>},
    Exported{Op::scale, scale},
    Exported{Op::add_scalar, add_scalar},
    Exported{Op::add, same<kAdd>},
    Exported{Op::sub, same<kSub>},
    Exported{Op::mul, same<kMul>},
    Exported{Op::div, same<kDiv>},
    Exported{Op::maximum, same<kMax>},
    Exported{Op::minimum, same<kMin>},
    Exported{Op::softmax, softmax},
    Exported{Op::reduce_sum, reduce},
    Exported{Op::reduce_mean, reduce},
    Exported{Op::reduce_max, reduce},
    Exported{Op::broadcast_to, broadcast_to},
    Exported{Op::reshape, reshape},
    Exported{Op::transpose, transpose},
    Exported{Op::concat, concat},
    Exported{Op::slice, slice},
    Exported{Op::identity, same<kIdentity>},
};

}  // namespace

NodeExporter find_exporter(Op op) {
  const auto found =
      std::find_if(kExported.begin(), kExported.end(), [&](const Exported& entry) { return entry.op == op; });
  return found == kExported.end() ? nullptr : found->exporter;
}

}  // namespace lockstep::interchange
