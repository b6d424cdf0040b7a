// Convolutions by oneDNN, which chooses its own weight layout. The plain weights are copied into it when the parameters
// change (or at every run if the weights are not a parameter). Weight gradients are copied back to plain order.
#include "backend/cpu/onednn_conv.h"

#include <tuple>

#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {
namespace {

using dnnl::memory;
using Tag = dnnl::memory::format_tag;

/// Widest block that oneDNN's blocked formats have.
constexpr int kWidestBlock = 16;

bool wider_than_blocks(const graph::Output& image) {
  return image.layout.kind == graph::Layout::Kind::channel_blocked && image.layout.block > kWidestBlock;
}

}  // namespace

memory::desc plain_weights(const Shape& weights) { return {dims_of(weights), kF32, Tag::oihw}; }

std::pair<memory::desc, memory::desc> describe_images(const graph::Output& a, const graph::Output& b) {
  if (wider_than_blocks(a) || wider_than_blocks(b)) return {describe_channels_last(a), describe_channels_last(b)};
  return {describe(a), describe(b)};
}

ConvolutionSpec convolution(const graph::Window& w, const graph::Output& src, const Shape& weights,
                            memory::data_type weights_type, const graph::Output& dst, bool bias) {
  ConvolutionSpec spec;
  std::tie(spec.src, spec.dst) = describe_images(src, dst);
  spec.weights = memory::desc(dims_of(weights), weights_type, Tag::any);
  if (bias) spec.bias = memory::desc({weights[0]}, kF32, Tag::x);
  spec.stride = {w.stride_h, w.stride_w};
  spec.padding_before = {w.pad_top, w.pad_left};
  spec.padding_after = {w.pad_bottom, w.pad_right};
  return spec;
}

namespace {

memory::data_type compute_type(const graph::Output& operand) {
  return operand.type.dtype == DType::bf16 ? memory::data_type::bf16 : kF32;
}

/// A blocked copy of plain weights in the kernel's own memory.
class BlockedWeights {
 public:
  BlockedWeights(const OneDnn& dnn, const Shape& shape, const memory::desc& blocked, bool refreshed)
      : plain_(dnn.unbound(plain_weights(shape))),
        blocked_(dnn.unbound(blocked)),
        reorder_(dnn, reorder(dnn.engine, plain_weights(shape), blocked),
                 {{DNNL_ARG_FROM, plain_}, {DNNL_ARG_TO, blocked_}}),
        refreshed_(refreshed) {}

  [[nodiscard]] size_t bytes() const { return blocked_.get_desc().get_size(); }
  [[nodiscard]] size_t scratch_bytes() const { return reorder_.scratch_bytes(); }
  [[nodiscard]] const memory& blocked() const { return blocked_; }
  /// Returns true if the owner's refresh() keeps the copy up to date.
  [[nodiscard]] bool refreshed() const { return refreshed_; }

  void update(const OneDnn& dnn, const Binding& m) {
    plain_.set_data_handle(input(m, 1));
    blocked_.set_data_handle(m.state());
    reorder_.run(dnn.stream, m.workspace());
  }

 private:
  memory plain_;
  memory blocked_;
  Prepared reorder_;
  bool refreshed_;
};

/// Forward pass and gradient of the input: computes one tensor from another and the weights.
class OneDnnConv final : public Kernel {
 public:
  OneDnnConv(const OneDnn& dnn, const KernelRequest& request, const dnnl::convolution_forward::primitive_desc& desc)
      : dnn_(dnn),
        from_(dnn_.unbound(desc.src_desc())),
        to_(dnn_.unbound(desc.dst_desc())),
        weights_(dnn_, request.in_shape(1), desc.weights_desc(), request.is_parameter(1)),
        conv_(dnn_, desc, {{DNNL_ARG_SRC, from_}, {DNNL_ARG_WEIGHTS, weights_.blocked()}, {DNNL_ARG_DST, to_}}) {
    if (!request.node.as<graph::ConvAttrs>().bias) return;
    bias_ = dnn_.unbound(desc.bias_desc());
    conv_.add(DNNL_ARG_BIAS, bias_);
  }
  OneDnnConv(const OneDnn& dnn, const KernelRequest& request,
             const dnnl::convolution_backward_data::primitive_desc& desc)
      : dnn_(dnn),
        from_(dnn_.unbound(desc.diff_dst_desc())),
        to_(dnn_.unbound(desc.diff_src_desc())),
        weights_(dnn_, request.in_shape(1), desc.weights_desc(), request.is_parameter(1)),
        conv_(dnn_, desc,
              {{DNNL_ARG_DIFF_DST, from_}, {DNNL_ARG_WEIGHTS, weights_.blocked()}, {DNNL_ARG_DIFF_SRC, to_}}) {}

  [[nodiscard]] size_t workspace_bytes() const override {
    return std::max(conv_.scratch_bytes(), weights_.scratch_bytes());
  }
  [[nodiscard]] size_t state_bytes() const override { return weights_.bytes(); }
  [[nodiscard]] std::string detail() const override { return conv_.implementation(); }
  void refresh() override {
    if (weights_.refreshed()) weights_.update(dnn_, operands());
  }
  void run(const StepContext&) override {
    const Binding& m = operands();
    if (!weights_.refreshed()) weights_.update(dnn_, m);
    from_.set_data_handle(input(m, 0));
    to_.set_data_handle(output(m));
    if (bias_) bias_.set_data_handle(input(m, 2));
    conv_.run(dnn_.stream, m.workspace());
  }

 private:
  OneDnn dnn_;
  memory from_, to_, bias_;
  BlockedWeights weights_;
  Prepared conv_;
};

class OneDnnConvGradWeights final : public Kernel {
 public:
  OneDnnConvGradWeights(const OneDnn& dnn, const KernelRequest& request,
                        const dnnl::convolution_backward_weights::primitive_desc& desc)
      : dnn_(dnn),
        src_(dnn_.unbound(desc.src_desc())),
        diff_dst_(dnn_.unbound(desc.diff_dst_desc())),
        blocked_(dnn_.unbound(desc.diff_weights_desc())),
        plain_(dnn_.unbound(plain_weights(request.out_shape()))),
        conv_(dnn_, desc, {{DNNL_ARG_SRC, src_}, {DNNL_ARG_DIFF_DST, diff_dst_}, {DNNL_ARG_DIFF_WEIGHTS, blocked_}}),
        to_plain_(dnn_, reorder(dnn_.engine, blocked_.get_desc(), plain_.get_desc()),
                  {{DNNL_ARG_FROM, blocked_}, {DNNL_ARG_TO, plain_}}),
        blocked_bytes_(aligned(blocked_.get_desc().get_size())) {
    if (!request.node.as<graph::ConvAttrs>().bias) return;
    diff_bias_ = dnn_.unbound(desc.diff_bias_desc());
    conv_.add(DNNL_ARG_DIFF_BIAS, diff_bias_);
  }

  [[nodiscard]] size_t workspace_bytes() const override {
    return blocked_bytes_ + std::max(conv_.scratch_bytes(), to_plain_.scratch_bytes());
  }
  [[nodiscard]] std::string detail() const override { return conv_.implementation(); }
  void run(const StepContext&) override {
    const Binding& m = operands();
    auto* const scratch = m.workspace<std::byte>() + blocked_bytes_;
    src_.set_data_handle(input(m, 0));
    diff_dst_.set_data_handle(input(m, 1));
    blocked_.set_data_handle(m.workspace());
    if (diff_bias_) diff_bias_.set_data_handle(output(m, 1));
    conv_.run(dnn_.stream, scratch);
    plain_.set_data_handle(output(m));
    to_plain_.run(dnn_.stream, scratch);
  }

 private:
  OneDnn dnn_;
  memory src_, diff_dst_, diff_bias_, blocked_, plain_;
  Prepared conv_;
  Prepared to_plain_;
  size_t blocked_bytes_;
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
  if (!takes(request)) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const OneDnn dnn;
  ConvolutionSpec spec = convolution(attrs.window, request.input(0), request.in_shape(1),
                                     compute_type(request.input(0)), request.output(), attrs.bias);
  spec.activation = attrs.activation;
  const auto desc = convolution_forward(dnn.engine, spec);
  return desc ? std::make_unique<OneDnnConv>(dnn, request, desc) : nullptr;
}

std::unique_ptr<Kernel> onednn_conv2d_grad_input(const KernelRequest& request, const CpuOptions&) {
  if (!takes(request)) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const OneDnn dnn;
  const ConvolutionSpec spec = convolution(attrs.window, request.output(), request.in_shape(1),
                                           compute_type(request.input(0)), request.input(0), false);
  const auto desc = convolution_backward_data(dnn.engine, spec);
  return desc ? std::make_unique<OneDnnConv>(dnn, request, desc) : nullptr;
}

std::unique_ptr<Kernel> onednn_conv2d_grad_weights(const KernelRequest& request, const CpuOptions&) {
  if (!takes(request)) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const OneDnn dnn;
  const ConvolutionSpec spec =
      convolution(attrs.window, request.input(0), request.out_shape(), kF32, request.input(1), attrs.bias);
  const auto desc = convolution_backward_weights(dnn.engine, spec);
  return desc ? std::make_unique<OneDnnConvGradWeights>(dnn, request, desc) : nullptr;
}

}  // namespace lockstep::backend::cpu
