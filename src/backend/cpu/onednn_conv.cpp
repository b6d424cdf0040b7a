// Convolutions by oneDNN. It chooses its own weight layout; the plain weights are copied into it when the parameters
// change (or at every run where the weights are no parameter), and weight gradients are brought back to plain order.
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/onednn.h"

namespace lockstep::backend::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Tag = dnnl::memory::format_tag;

struct Geometry {
  memory::dims stride;
  memory::dims padding_before;
  memory::dims padding_after;
};

Geometry geometry(const graph::Window& w) {
  return {{w.stride_h, w.stride_w}, {w.pad_top, w.pad_left}, {w.pad_bottom, w.pad_right}};
}

memory::desc any_weights(const Shape& weights) { return {dims_of(weights), memory::data_type::f32, Tag::any}; }
memory::desc plain_weights(const Shape& weights) { return {dims_of(weights), memory::data_type::f32, Tag::oihw}; }
memory::desc vector_of(int64_t size) { return {{size}, memory::data_type::f32, Tag::x}; }

dnnl::convolution_forward::primitive_desc forward_desc(const OneDnn& dnn, const memory::desc& src, const Shape& weights,
                                                       const memory::desc& dst, bool bias,
                                                       const graph::ConvAttrs& attrs) {
  const Geometry g = geometry(attrs.window);
  dnnl::primitive_attr attributes;
  dnnl::post_ops after;
  if (attrs.activation == graph::Activation::relu) after.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
  if (attrs.activation == graph::Activation::tanh) after.append_eltwise(1, algorithm::eltwise_tanh, 0, 0);
  if (attrs.activation == graph::Activation::sigmoid) after.append_eltwise(1, algorithm::eltwise_logistic, 0, 0);
  attributes.set_post_ops(after);
  const memory::desc w = any_weights(weights);
  const auto kind = prop_kind::forward_training;
  const auto direct = algorithm::convolution_direct;
  const auto desc =
      bias ? dnnl::convolution_forward::desc(kind, direct, src, w, vector_of(weights[0]), dst, g.stride,
                                             g.padding_before, g.padding_after)
           : dnnl::convolution_forward::desc(kind, direct, src, w, dst, g.stride, g.padding_before, g.padding_after);
  return {desc, attributes, dnn.engine};
}

/// A blocked copy of plain weights in the kernel's own memory.
class BlockedWeights {
 public:
  BlockedWeights(const OneDnn& dnn, const Shape& shape, const memory::desc& blocked, bool refreshed)
      : plain_(dnn.unbound(plain_weights(shape))),
        blocked_(dnn.unbound(blocked)),
        reorder_(dnnl::reorder(plain_, blocked_), {{DNNL_ARG_FROM, plain_}, {DNNL_ARG_TO, blocked_}}),
        refreshed_(refreshed) {}

  [[nodiscard]] size_t bytes() const { return blocked_.get_desc().get_size(); }
  [[nodiscard]] const memory& blocked() const { return blocked_; }
  /// Whether the owner's refresh() keeps the copy up to date.
  [[nodiscard]] bool refreshed() const { return refreshed_; }

  void update(const OneDnn& dnn, const float* plain, float* own) {
    plain_.set_data_handle(const_cast<float*>(plain));
    blocked_.set_data_handle(own);
    reorder_.run(dnn.stream);
  }

 private:
  memory plain_;
  memory blocked_;
  Prepared reorder_;
  bool refreshed_;
};

class OneDnnConv final : public Kernel {
 public:
  explicit OneDnnConv(const KernelRequest& request)
      : attrs_(request.node.as<graph::ConvAttrs>()),
        desc_(forward_desc(dnn_, describe(request.in_shape(0), request.input(0).layout), request.in_shape(1),
                           describe(request.out_shape(), request.output().layout), attrs_.bias, attrs_)),
        src_(dnn_.unbound(desc_.src_desc())),
        dst_(dnn_.unbound(desc_.dst_desc())),
        weights_(dnn_, request.in_shape(1), desc_.weights_desc(), request.is_parameter(1)),
        conv_(dnnl::convolution_forward(desc_),
              {{DNNL_ARG_SRC, src_}, {DNNL_ARG_WEIGHTS, weights_.blocked()}, {DNNL_ARG_DST, dst_}}) {
    if (attrs_.bias) {
      bias_ = dnn_.unbound(vector_of(request.in_shape(1)[0]));
      conv_.add(DNNL_ARG_BIAS, bias_);
    }
  }

  [[nodiscard]] size_t state_bytes() const override { return weights_.bytes(); }
  void refresh() override {
    if (weights_.refreshed()) weights_.update(dnn_, operands().in(1), operands().state());
  }
  void run(const StepContext&) override {
    const Binding& m = operands();
    if (!weights_.refreshed()) weights_.update(dnn_, m.in(1), m.state());
    src_.set_data_handle(const_cast<float*>(m.in(0)));
    dst_.set_data_handle(m.out());
    if (bias_) bias_.set_data_handle(const_cast<float*>(m.in(2)));
    conv_.run(dnn_.stream);
  }

 private:
  OneDnn dnn_;
  graph::ConvAttrs attrs_;
  dnnl::convolution_forward::primitive_desc desc_;
  memory src_, dst_, bias_;
  BlockedWeights weights_;
  Prepared conv_;
};

class OneDnnConvGradInput final : public Kernel {
 public:
  explicit OneDnnConvGradInput(const KernelRequest& request)
      : desc_(make_desc(dnn_, request)),
        diff_src_(dnn_.unbound(desc_.diff_src_desc())),
        diff_dst_(dnn_.unbound(desc_.diff_dst_desc())),
        weights_(dnn_, request.in_shape(1), desc_.weights_desc(), request.is_parameter(1)),
        conv_(
            dnnl::convolution_backward_data(desc_),
            {{DNNL_ARG_DIFF_DST, diff_dst_}, {DNNL_ARG_WEIGHTS, weights_.blocked()}, {DNNL_ARG_DIFF_SRC, diff_src_}}) {}

  [[nodiscard]] size_t state_bytes() const override { return weights_.bytes(); }
  void refresh() override {
    if (weights_.refreshed()) weights_.update(dnn_, operands().in(1), operands().state());
  }
  void run(const StepContext&) override {
    const Binding& m = operands();
    if (!weights_.refreshed()) weights_.update(dnn_, m.in(1), m.state());
    diff_dst_.set_data_handle(const_cast<float*>(m.in(0)));
    diff_src_.set_data_handle(m.out());
    conv_.run(dnn_.stream);
  }

 private:
  static dnnl::convolution_backward_data::primitive_desc make_desc(const OneDnn& dnn, const KernelRequest& request) {
    const auto& attrs = request.node.as<graph::ConvAttrs>();
    const Geometry g = geometry(attrs.window);
    const memory::desc diff_src = describe(request.out_shape(), request.output().layout);
    const memory::desc diff_dst = describe(request.in_shape(0), request.input(0).layout);
    const auto forward = forward_desc(dnn, diff_src, request.in_shape(1), diff_dst, false, {attrs.window, false, {}});
    return {{algorithm::convolution_direct, diff_src, any_weights(request.in_shape(1)), diff_dst, g.stride,
             g.padding_before, g.padding_after},
            dnn.engine,
            forward};
  }

  OneDnn dnn_;
  dnnl::convolution_backward_data::primitive_desc desc_;
  memory diff_src_, diff_dst_;
  BlockedWeights weights_;
  Prepared conv_;
};

class OneDnnConvGradWeights final : public Kernel {
 public:
  explicit OneDnnConvGradWeights(const KernelRequest& request)
      : bias_wanted_(request.node.as<graph::ConvAttrs>().bias),
        desc_(make_desc(dnn_, request, bias_wanted_)),
        src_(dnn_.unbound(desc_.src_desc())),
        diff_dst_(dnn_.unbound(desc_.diff_dst_desc())),
        blocked_(dnn_.unbound(desc_.diff_weights_desc())),
        plain_(dnn_.unbound(plain_weights(request.out_shape()))),
        conv_(dnnl::convolution_backward_weights(desc_),
              {{DNNL_ARG_SRC, src_}, {DNNL_ARG_DIFF_DST, diff_dst_}, {DNNL_ARG_DIFF_WEIGHTS, blocked_}}),
        to_plain_(dnnl::reorder(blocked_, plain_), {{DNNL_ARG_FROM, blocked_}, {DNNL_ARG_TO, plain_}}) {
    if (bias_wanted_) {
      diff_bias_ = dnn_.unbound(vector_of(request.out_shape()[0]));
      conv_.add(DNNL_ARG_DIFF_BIAS, diff_bias_);
    }
  }

  [[nodiscard]] size_t workspace_bytes() const override { return blocked_.get_desc().get_size(); }
  void run(const StepContext&) override {
    const Binding& m = operands();
    src_.set_data_handle(const_cast<float*>(m.in(0)));
    diff_dst_.set_data_handle(const_cast<float*>(m.in(1)));
    blocked_.set_data_handle(m.workspace());
    if (bias_wanted_) diff_bias_.set_data_handle(m.out(1));
    conv_.run(dnn_.stream);
    plain_.set_data_handle(m.out(0));
    to_plain_.run(dnn_.stream);
  }

 private:
  static dnnl::convolution_backward_weights::primitive_desc make_desc(const OneDnn& dnn, const KernelRequest& request,
                                                                      bool bias) {
    const auto& attrs = request.node.as<graph::ConvAttrs>();
    const Geometry g = geometry(attrs.window);
    const memory::desc src = describe(request.in_shape(0), request.input(0).layout);
    const memory::desc diff_dst = describe(request.in_shape(1), request.input(1).layout);
    const auto forward = forward_desc(dnn, src, request.out_shape(), diff_dst, bias, {attrs.window, bias, {}});
    const memory::desc w = any_weights(request.out_shape());
    using Desc = dnnl::convolution_backward_weights::desc;
    const auto direct = algorithm::convolution_direct;
    const Desc desc = bias ? Desc(direct, src, w, vector_of(request.out_shape()[0]), diff_dst, g.stride,
                                  g.padding_before, g.padding_after)
                           : Desc(direct, src, w, diff_dst, g.stride, g.padding_before, g.padding_after);
    return {desc, dnn.engine, forward};
  }

  OneDnn dnn_;
  bool bias_wanted_;
  dnnl::convolution_backward_weights::primitive_desc desc_;
  memory src_, diff_dst_, diff_bias_, blocked_, plain_;
  Prepared conv_;
  Prepared to_plain_;
};

bool takes(const KernelRequest& request) {
  for (const graph::ValueId id : request.node.inputs) {
    const graph::Output& input = request.graph.output(id);
    if (input.layout.kind == graph::Layout::Kind::batch_blocked || input.type.shape.elements() == 0) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Kernel> onednn_conv2d(const KernelRequest& request, const CpuOptions&) {
  return takes(request) ? std::make_unique<OneDnnConv>(request) : nullptr;
}
std::unique_ptr<Kernel> onednn_conv2d_grad_input(const KernelRequest& request, const CpuOptions&) {
  return takes(request) ? std::make_unique<OneDnnConvGradInput>(request) : nullptr;
}
std::unique_ptr<Kernel> onednn_conv2d_grad_weights(const KernelRequest& request, const CpuOptions&) {
  return takes(request) ? std::make_unique<OneDnnConvGradWeights>(request) : nullptr;
}

}  // namespace lockstep::backend::cpu
