#include "backend/cpu/onednn.h"

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/onednn_api.h"
#include "base/loops.h"
#include "lockstep/error.h"

namespace lockstep::backend::cpu {

using dnnl::memory;
using Tag = dnnl::memory::format_tag;

namespace {

memory::data_type data_type_of(DType type) {
  switch (type) {
    case DType::f32:
      return memory::data_type::f32;
    case DType::bf16:
      return memory::data_type::bf16;
    default:
      throw Error("no oneDNN kernel takes tensors of " + std::string(name(type)));
  }
}

Tag tag_of(const Shape& shape, const graph::Layout& layout) {
  if (shape.rank() == 2) return Tag::ab;
  if (layout.kind != graph::Layout::Kind::channel_blocked) return Tag::nchw;
  if (layout.block == 16) return Tag::nChw16c;
  return layout.block == 8 ? Tag::nChw8c : Tag::nhwc;
}

}  // namespace

memory::dims dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

memory::desc describe(const graph::Output& output) {
  const Shape& shape = output.type.shape;
  return {dims_of(shape), data_type_of(output.type.dtype), tag_of(shape, output.layout)};
}

memory::desc describe_channels_last(const graph::Output& output) {
  return {dims_of(output.type.shape), data_type_of(output.type.dtype), Tag::nhwc};
}

Prepared::Prepared(const OneDnn& dnn, const dnnl::primitive_desc_base& desc,
                   std::initializer_list<std::pair<int, memory>> arguments)
    : primitive_(desc.get()), scratch_bytes_(desc.scratchpad_desc().get_size()), implementation_(desc.impl_info_str()) {
  for (const auto& [index, memory] : arguments) add(index, memory);
  if (scratch_bytes_ == 0) return;
  scratch_ = dnn.unbound(desc.scratchpad_desc());
  add(DNNL_ARG_SCRATCHPAD, scratch_);
}

void Prepared::run(const dnnl::stream& stream, void* scratch) {
  if (scratch_bytes_ > 0) scratch_.set_data_handle(scratch);
  base::follow_openmp();
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data()),
      "could not execute a primitive");
}

namespace {

class OneDnnReorder final : public Kernel {
 public:
  explicit OneDnnReorder(const dnnl::reorder::primitive_desc& desc, const OneDnn& dnn)
      : dnn_(dnn),
        src_(dnn_.unbound(desc.src_desc())),
        dst_(dnn_.unbound(desc.dst_desc())),
        reorder_(dnn_, desc, {{DNNL_ARG_FROM, src_}, {DNNL_ARG_TO, dst_}}) {}

  [[nodiscard]] size_t workspace_bytes() const override { return reorder_.scratch_bytes(); }
  [[nodiscard]] std::string detail() const override { return reorder_.implementation(); }
  void run(const StepContext&) override {
    src_.set_data_handle(input(operands(), 0));
    dst_.set_data_handle(output(operands()));
    reorder_.run(dnn_.stream, operands().workspace());
  }

 private:
  OneDnn dnn_;
  memory src_;
  memory dst_;
  Prepared reorder_;
};

class OneDnnMatmul final : public Kernel {
 public:
  OneDnnMatmul(const dnnl::matmul::primitive_desc& desc, const OneDnn& dnn)
      : dnn_(dnn),
        a_(dnn_.unbound(desc.src_desc())),
        b_(dnn_.unbound(desc.weights_desc())),
        c_(dnn_.unbound(desc.dst_desc())),
        matmul_(dnn_, desc, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}}) {
    if (desc.bias_desc().is_zero()) return;
    bias_ = dnn_.unbound(desc.bias_desc());
    matmul_.add(DNNL_ARG_BIAS, bias_);
  }

  [[nodiscard]] size_t workspace_bytes() const override { return matmul_.scratch_bytes(); }
  [[nodiscard]] std::string detail() const override { return matmul_.implementation(); }
  void run(const StepContext&) override {
    const Binding& m = operands();
    a_.set_data_handle(input(m, 0));
    b_.set_data_handle(input(m, 1));
    if (bias_) bias_.set_data_handle(input(m, 2));
    c_.set_data_handle(output(m));
    matmul_.run(dnn_.stream, m.workspace());
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
  const OneDnn dnn;
  const auto desc = reorder(dnn.engine, describe(request.input(0)), describe(request.output()));
  return desc ? std::make_unique<OneDnnReorder>(desc, dnn) : nullptr;
}

std::unique_ptr<Kernel> onednn_matmul(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request) || request.out_shape().elements() == 0 || request.in_shape(0).elements() == 0) return nullptr;
  const auto& attrs = request.node.as<graph::MatMulAttrs>();
  const OneDnn dnn;
  const auto operand = [&](size_t i, bool transposed) {
    const memory::desc desc = describe(request.input(i));
    return transposed ? desc.permute_axes({1, 0}) : desc;
  };
  MatmulSpec spec{
      operand(0, attrs.trans_a), operand(1, attrs.trans_b), {}, describe(request.output()), attrs.activation};
  if (attrs.bias) spec.bias = memory::desc({1, request.out_shape()[1]}, memory::data_type::f32, Tag::ab);
  const auto desc = matmul(dnn.engine, spec);
  return desc ? std::make_unique<OneDnnMatmul>(desc, dnn) : nullptr;
}

}  // namespace lockstep::backend::cpu
