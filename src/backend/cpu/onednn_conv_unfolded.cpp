// First layers for which oneDNN generates no code (few channels in plain order, wide strides, AVX2). Computes the
// direct sum over unfolded images (kernels/unfold.h), a few at a time, so that they stay in the cache.
#include <algorithm>
#include <string_view>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/onednn_conv.h"
#include "backend/cpu/unfolded_plan.h"

namespace lockstep::backend::cpu {
namespace {

using dnnl::memory;

/// Most images unfolded together; their number divides the batch.
constexpr int64_t kMostImages = 8;

int64_t images_at_once(int64_t batch) {
  int64_t images = std::min(batch, kMostImages);
  while (batch % images != 0) --images;
  return images;
}

/// Returns the unfolded convolution of this many images.
ConvolutionSpec unfolded_spec(const UnfoldedPlan& plan, int64_t images, const graph::ConvAttrs& attrs) {
  const Unfold& u = plan.unfold;
  const Shape src{images, u.unfolded_channels(), u.h.unfolded, u.w.unfolded};
  ConvolutionSpec spec = convolution(plan.window, {{DType::f32, src}, plan.layout}, plan.weights, kF32,
                                     {{DType::f32, plan.dst.with(0, images)}, plan.layout}, attrs.bias);
  spec.activation = attrs.activation;
  return spec;
}

bool is_generated(const dnnl::primitive_desc_base& desc) {
  return desc && std::string_view(desc.impl_info_str()).starts_with("jit");
}

class UnfoldedConv final : public Kernel {
 public:
  UnfoldedConv(const OneDnn& dnn, const UnfoldedPlan& plan, const KernelRequest& request, int threads,
               const dnnl::convolution_forward::primitive_desc& desc)
      : dnn_(dnn),
        plan_(plan),
        images_(images_at_once(plan.batch)),
        threads_(threads),
        refreshed_(request.is_parameter(1)),
        src_(dnn_.unbound(desc.src_desc())),
        dst_(dnn_.unbound(desc.dst_desc())),
        plain_(dnn_.unbound(plain_weights(plan.weights))),
        blocked_(dnn_.unbound(desc.weights_desc())),
        to_blocked_(dnn_, reorder(dnn_.engine, plain_.get_desc(), blocked_.get_desc()),
                    {{DNNL_ARG_FROM, plain_}, {DNNL_ARG_TO, blocked_}}),
        conv_(dnn_, desc, {{DNNL_ARG_SRC, src_}, {DNNL_ARG_WEIGHTS, blocked_}, {DNNL_ARG_DST, dst_}}) {
    if (!request.node.as<graph::ConvAttrs>().bias) return;
    bias_ = dnn_.unbound(desc.bias_desc());
    conv_.add(DNNL_ARG_BIAS, bias_);
  }

  [[nodiscard]] size_t workspace_bytes() const override {
    return std::max(src_bytes() + conv_.scratch_bytes(), plain_bytes() + to_blocked_.scratch_bytes());
  }
  [[nodiscard]] size_t state_bytes() const override { return blocked_.get_desc().get_size(); }
  [[nodiscard]] std::string detail() const override { return conv_.implementation(); }
  void refresh() override {
    if (refreshed_) update_weights();
  }
  void run(const StepContext&) override {
    const Binding& m = operands();
    if (!refreshed_) update_weights();
    blocked_.set_data_handle(m.state());
    src_.set_data_handle(m.workspace());
    if (bias_) bias_.set_data_handle(input(m, 2));
    for (int64_t first = 0; first < plan_.batch; first += images_) {
      unfold(plan_.unfold, images_, m.in(0) + first * plan_.unfold.image_size(), m.workspace(), threads_);
      dst_.set_data_handle(m.out() + first * plan_.dst.elements(1, 4));
      conv_.run(dnn_.stream, m.workspace<std::byte>() + src_bytes());
    }
  }

 private:
  [[nodiscard]] size_t src_bytes() const { return aligned(src_.get_desc().get_size()); }
  [[nodiscard]] size_t plain_bytes() const { return aligned(plain_.get_desc().get_size()); }

  void update_weights() {
    const Binding& m = operands();
    unfold_weights(plan_.unfold, plan_.out_channels, m.in(1), m.workspace());
    plain_.set_data_handle(m.workspace());
    blocked_.set_data_handle(m.state());
    to_blocked_.run(dnn_.stream, m.workspace<std::byte>() + plain_bytes());
  }

  OneDnn dnn_;
  UnfoldedPlan plan_;
  int64_t images_;
  int threads_;
  bool refreshed_;
  memory src_, dst_, bias_, plain_, blocked_;
  Prepared to_blocked_;
  Prepared conv_;
};

}  // namespace

std::unique_ptr<Kernel> onednn_unfolded_conv2d(const KernelRequest& request, const CpuOptions& options) {
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  if (!request.input(0).layout.plain() || request.in_shape(0).elements() == 0) return nullptr;
  const auto plan = unfolded_plan(attrs.window, request.input(0), request.output(), options);
  if (!plan) return nullptr;
  const OneDnn dnn;
  const ConvolutionSpec original =
      convolution(attrs.window, request.input(0), request.in_shape(1), kF32, request.output(), attrs.bias);
  if (is_generated(convolution_forward(dnn.engine, original))) return nullptr;
  const auto desc = convolution_forward(dnn.engine, unfolded_spec(*plan, images_at_once(plan->batch), attrs));
  return is_generated(desc) ? std::make_unique<UnfoldedConv>(dnn, *plan, request, options.threads, desc) : nullptr;
}

}  // namespace lockstep::backend::cpu
