// The gradient of a bfloat16 convolution's input, computed as a forward convolution. With stride 1 it is the
// convolution of the result's gradient with the weights turned by 180 degrees, input and output channels exchanged.
// oneDNN's forward kernels are about 15 % faster than its backward ones.
#include <algorithm>
#include <tuple>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/onednn_conv.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {
namespace {

using dnnl::memory;
using Tag = dnnl::memory::format_tag;

/// Weights for which one more thread to turn them pays off.
constexpr int64_t kPayingWeights = 1 << 16;

/// Turns each kernel of weights [out][in][taps] by 180 degrees.
void turn(const float* weights, float* turned, int64_t kernels, int64_t taps, int threads) {
  base::parallel(base::split_for(kernels * taps, kPayingWeights, threads), [&](int part, int parts) {
    const base::Range mine = base::share(kernels, part, parts);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      std::reverse_copy(weights + i * taps, weights + (i + 1) * taps, turned + i * taps);
    }
  });
}

class TurnedConv final : public Kernel {
 public:
  TurnedConv(const OneDnn& dnn, const KernelRequest& request, const memory::desc& turned,
             const dnnl::convolution_forward::primitive_desc& desc, int threads)
      : dnn_(dnn),
        shape_(request.in_shape(1)),
        refreshed_(request.is_parameter(1)),
        threads_(threads),
        diff_dst_(dnn_.unbound(desc.src_desc())),
        diff_src_(dnn_.unbound(desc.dst_desc())),
        turned_(dnn_.unbound(turned)),
        blocked_(dnn_.unbound(desc.weights_desc())),
        to_blocked_(dnn_, reorder(dnn_.engine, turned, desc.weights_desc()),
                    {{DNNL_ARG_FROM, turned_}, {DNNL_ARG_TO, blocked_}}),
        conv_(dnn_, desc, {{DNNL_ARG_SRC, diff_dst_}, {DNNL_ARG_WEIGHTS, blocked_}, {DNNL_ARG_DST, diff_src_}}) {}

  [[nodiscard]] size_t workspace_bytes() const override {
    return std::max(turned_bytes() + to_blocked_.scratch_bytes(), conv_.scratch_bytes());
  }
  [[nodiscard]] size_t state_bytes() const override { return blocked_.get_desc().get_size(); }
  [[nodiscard]] std::string detail() const override { return conv_.implementation(); }
  void refresh() override {
    if (refreshed_) update();
  }
  void run(const StepContext&) override {
    const Binding& m = operands();
    if (!refreshed_) update();
    blocked_.set_data_handle(m.state());
    diff_dst_.set_data_handle(input(m, 0));
    diff_src_.set_data_handle(output(m));
    conv_.run(dnn_.stream, m.workspace());
  }

 private:
  [[nodiscard]] size_t turned_bytes() const { return (turned_.get_desc().get_size() + 63) / 64 * 64; }

  void update() {
    const Binding& m = operands();
    turn(m.in(1), m.workspace(), shape_.elements(0, 2), shape_.elements(2, 4), threads_);
    turned_.set_data_handle(m.workspace());
    blocked_.set_data_handle(m.state());
    to_blocked_.run(dnn_.stream, m.workspace<std::byte>() + turned_bytes());
  }

  OneDnn dnn_;
  Shape shape_;
  bool refreshed_;
  int threads_;
  memory diff_dst_, diff_src_, turned_, blocked_;
  Prepared to_blocked_;
  Prepared conv_;
};

}  // namespace

std::unique_ptr<Kernel> onednn_turned_conv2d_grad_input(const KernelRequest& request, const CpuOptions& options) {
  const graph::Window& w = request.node.as<graph::ConvAttrs>().window;
  const int64_t padding[]{w.kernel_h - 1 - w.pad_top, w.kernel_w - 1 - w.pad_left, w.kernel_h - 1 - w.pad_bottom,
                          w.kernel_w - 1 - w.pad_right};
  const bool fits = w.stride_h == 1 && w.stride_w == 1 && *std::min_element(padding, padding + 4) >= 0;
  if (request.input(0).type.dtype != DType::bf16 || !fits || request.in_shape(0).elements() == 0) return nullptr;
  const OneDnn dnn;
  const memory::dims weights = dims_of(request.in_shape(1));
  ConvolutionSpec spec;
  std::tie(spec.src, spec.dst) = describe_images(request.input(0), request.output());
  spec.weights = memory::desc({weights[1], weights[0], weights[2], weights[3]}, memory::data_type::bf16, Tag::any);
  spec.stride = {1, 1};
  spec.padding_before = {padding[0], padding[1]};
  spec.padding_after = {padding[2], padding[3]};
  const auto desc = convolution_forward(dnn.engine, spec);
  if (!desc) return nullptr;
  const memory::desc turned({weights[1], weights[0], weights[2], weights[3]}, memory::data_type::f32, Tag::iohw);
  return std::make_unique<TurnedConv>(dnn, request, turned, desc, options.threads);
}

}  // namespace lockstep::backend::cpu
