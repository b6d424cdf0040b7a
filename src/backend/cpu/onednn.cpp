#include "backend/cpu/onednn.h"

#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {

using dnnl::memory;
using Tag = dnnl::memory::format_tag;

memory::dims dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

memory::desc describe(const Shape& shape, const graph::Layout& layout) {
  Tag tag = Tag::nchw;
  if (layout.kind == graph::Layout::Kind::channel_blocked) tag = layout.block == 16 ? Tag::nChw16c : Tag::nChw8c;
  return {dims_of(shape), memory::data_type::f32, tag};
}

void Prepared::run(const dnnl::stream& stream) const {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data()),
      "could not execute a primitive");
}

namespace {

class OneDnnReorder final : public Kernel {
 public:
  OneDnnReorder(const memory::desc& from, const memory::desc& to)
      : src_(dnn_.unbound(from)),
        dst_(dnn_.unbound(to)),
        reorder_(dnnl::reorder(src_, dst_), {{DNNL_ARG_FROM, src_}, {DNNL_ARG_TO, dst_}}) {}

  void run(const StepContext&) override {
    src_.set_data_handle(const_cast<float*>(operands().in(0)));
    dst_.set_data_handle(operands().out());
    reorder_.run(dnn_.stream);
  }

 private:
  OneDnn dnn_;
  memory src_;
  memory dst_;
  Prepared reorder_;
};

class OneDnnMatmul final : public Kernel {
 public:
  OneDnnMatmul(const memory::desc& a, const memory::desc& b, const memory::desc& bias, const memory::desc& c,
               graph::Activation activation)
      : a_(dnn_.unbound(a)), b_(dnn_.unbound(b)), c_(dnn_.unbound(c)) {
    dnnl::primitive_attr attributes;
    dnnl::post_ops after;
    if (activation == graph::Activation::relu) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    if (activation == graph::Activation::tanh) after.append_eltwise(1, dnnl::algorithm::eltwise_tanh, 0, 0);
    if (activation == graph::Activation::sigmoid) after.append_eltwise(1, dnnl::algorithm::eltwise_logistic, 0, 0);
    attributes.set_post_ops(after);
    const bool biased = !bias.is_zero();
    const auto desc = biased ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    matmul_ = Prepared(dnnl::matmul(dnnl::matmul::primitive_desc(desc, attributes, dnn_.engine)),
                       {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
    if (biased) {
      bias_ = dnn_.unbound(bias);
      matmul_.add(DNNL_ARG_BIAS, bias_);
    }
  }

  void run(const StepContext&) override {
    const Binding& m = operands();
    a_.set_data_handle(const_cast<float*>(m.in(0)));
    b_.set_data_handle(const_cast<float*>(m.in(1)));
    if (bias_) bias_.set_data_handle(const_cast<float*>(m.in(2)));
    c_.set_data_handle(m.out());
    matmul_.run(dnn_.stream);
  }

 private:
  OneDnn dnn_;
  memory a_, b_, c_, bias_;
  Prepared matmul_;
};

}  // namespace

std::unique_ptr<Kernel> onednn_reorder(const KernelRequest& request, const CpuOptions&) {
  const auto supported = [](const graph::Layout& layout) { return layout.kind != graph::Layout::Kind::batch_blocked; };
  if (request.out_shape().rank() != 4 || !supported(request.input(0).layout) || !supported(request.output().layout)) {
    return nullptr;
  }
  return std::make_unique<OneDnnReorder>(describe(request.out_shape(), request.input(0).layout),
                                         describe(request.out_shape(), request.output().layout));
}

std::unique_ptr<Kernel> onednn_matmul(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request) || request.out_shape().elements() == 0 || request.in_shape(0).elements() == 0) return nullptr;
  const auto& attrs = request.node.as<graph::MatMulAttrs>();
  const auto f32 = memory::data_type::f32;
  const int64_t rows = request.out_shape()[0];
  const int64_t columns = request.out_shape()[1];
  const int64_t inner = request.in_shape(0)[attrs.trans_a ? 0 : 1];
  const memory::desc a({rows, inner}, f32, attrs.trans_a ? Tag::ba : Tag::ab);
  const memory::desc b({inner, columns}, f32, attrs.trans_b ? Tag::ba : Tag::ab);
  const memory::desc bias = attrs.bias ? memory::desc({1, columns}, f32, Tag::ab) : memory::desc();
  return std::make_unique<OneDnnMatmul>(a, b, bias, memory::desc({rows, columns}, f32, Tag::ab), attrs.activation);
}

}  // namespace lockstep::backend::cpu
