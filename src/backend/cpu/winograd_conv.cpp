// Convolutions by Winograd's algorithm (kernels/winograd.h), directly or unfolded into 3x3 ones (kernels/unfold.h). It
// rounds differently, so it can be turned off.
#include <algorithm>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/winograd.h"
#include "backend/cpu/unfolded_plan.h"

namespace lockstep::backend::cpu {
namespace {

/// Tiles computed together: enough for large products, few enough for the cache.
constexpr int64_t kTilesAtOnce = 128;

/// A convolution by Winograd's algorithm, possibly over unfolded images.
struct Job {
  UnfoldedPlan plan;
  bool unfolded = false;
  Winograd conv;
  int threads = 1;

  [[nodiscard]] int64_t images_at_once() const {
    return std::clamp<int64_t>(kTilesAtOnce / conv.tiles(), 1, plan.batch);
  }
  /// Returns the floats of one image in the graph.
  [[nodiscard]] int64_t image_size() const { return unfolded ? plan.unfold.image_size() : conv.image_size(); }
  [[nodiscard]] int64_t unfolded_images_size() const {
    return unfolded ? images_at_once() * plan.unfold.unfolded_size() : 0;
  }
  /// Returns the floats of the weights in the kernels' form.
  [[nodiscard]] int64_t weights_size() const { return plan.weights.elements(); }
};

/// Returns the convolution unchanged, if its images and results are blocked alike.
std::optional<UnfoldedPlan> same_plan(const graph::Window& w, const graph::Output& src, const graph::Output& dst,
                                      const CpuOptions& options) {
  const Shape& image = src.type.shape;
  const Shape& result = dst.type.shape;
  if (src.type.dtype != DType::f32 || dst.type.dtype != DType::f32 || src.layout != dst.layout) return std::nullopt;
  if (src.layout.kind != graph::Layout::Kind::channel_blocked) return std::nullopt;
  if (image[1] % src.layout.block != 0 || result[1] % src.layout.block != 0) return std::nullopt;
  UnfoldedPlan plan;
  plan.window = w;
  plan.weights = {result[1], image[1], w.kernel_h, w.kernel_w};
  plan.batch = image[0];
  plan.out_channels = result[1];
  plan.dst = result;
  plan.layout = dst.layout;
  plan.winograd = !options.exact_conv && winograd_pays(w, result);
  return plan;
}

/// Returns the job for a convolution from src to dst; nullopt if Winograd does not pay off.
std::optional<Job> make_job(const graph::Window& w, const graph::Output& src, const graph::Output& dst,
                            const CpuOptions& options) {
  if (src.type.shape.elements() == 0 || dst.type.shape.elements() == 0) return std::nullopt;
  Job job;
  job.threads = options.threads;
  auto plan = same_plan(w, src, dst, options);
  if (!plan || !plan->winograd) {
    plan = unfolded_plan(w, src, dst, options);
    job.unfolded = true;
  }
  if (!plan || !plan->winograd) return std::nullopt;
  const Shape& image = src.type.shape;
  const Unfold& u = plan->unfold;
  if (job.unfolded && u.unfolded_channels() % u.block != 0) return std::nullopt;
  job.conv.in_channels = plan->weights[1];
  job.conv.out_channels = plan->out_channels;
  job.conv.in_height = job.unfolded ? u.h.unfolded : image[2];
  job.conv.in_width = job.unfolded ? u.w.unfolded : image[3];
  job.conv.out_height = plan->dst[2];
  job.conv.out_width = plan->dst[3];
  job.conv.pad_top = plan->window.pad_top;
  job.conv.pad_left = plan->window.pad_left;
  job.conv.block = plan->layout.block;
  job.plan = *plan;
  return job;
}

/// Returns the bytes of memory that starts at whole cache lines.
size_t bytes_of(int64_t floats) { return (static_cast<size_t>(floats) * sizeof(float) + 63) / 64 * 64; }
float* floats_at(std::byte* at) { return reinterpret_cast<float*>(at); }

template <class Body>
void for_each_group(const Job& job, Body body) {
  for (int64_t first = 0; first < job.plan.batch; first += job.images_at_once()) {
    body(first, std::min(job.images_at_once(), job.plan.batch - first));
  }
}

/// Forward pass, and gradient of the input.
class WinogradConv final : public Kernel {
 public:
  WinogradConv(const Job& job, const KernelRequest& request)
      : job_(job),
        backward_(request.node.op == graph::Op::conv2d_grad_input),
        conv_(backward_ ? winograd_backward(job.conv) : job.conv),
        relu_(request.node.as<graph::ConvAttrs>().activation == graph::Activation::relu),
        bias_(!backward_ && request.node.as<graph::ConvAttrs>().bias),
        refreshed_(request.is_parameter(1)) {}

  [[nodiscard]] size_t workspace_bytes() const override {
    const size_t running =
        bytes_of(job_.unfolded_images_size()) + bytes_of(winograd_scratch(conv_, job_.images_at_once()));
    return std::max(running, bytes_of(job_.weights_size()));
  }
  [[nodiscard]] size_t state_bytes() const override { return bytes_of(winograd_weights_size(conv_)); }
  [[nodiscard]] std::string detail() const override { return job_.unfolded ? "unfolded" : ""; }
  void refresh() override {
    if (refreshed_) update_weights();
  }
  void run(const StepContext&) override {
    if (!refreshed_) update_weights();
    for_each_group(job_, [&](int64_t first, int64_t images) {
      if (backward_) {
        back(first, images);
      } else {
        forward(first, images);
      }
    });
  }

 private:
  void update_weights() {
    const Binding& m = operands();
    const float* weights = m.in(1);
    if (job_.unfolded) {
      unfold_weights(job_.plan.unfold, job_.plan.out_channels, weights, m.workspace());
      weights = m.workspace();
    }
    winograd_weights(conv_, backward_, weights, m.state(), job_.threads);
  }

  void forward(int64_t first, int64_t images) {
    const Binding& m = operands();
    const float* src = m.in(0) + first * job_.image_size();
    if (job_.unfolded) {
      unfold(job_.plan.unfold, images, src, m.workspace(), job_.threads);
      src = m.workspace();
    }
    winograd_forward(conv_, images, src, m.state(), bias_ ? m.in(2) : nullptr, relu_,
                     m.out() + first * conv_.result_size(), scratch(), job_.threads);
  }

  void back(int64_t first, int64_t images) {
    const Binding& m = operands();
    float* const dst = m.out() + first * job_.image_size();
    winograd_forward(conv_, images, m.in(0) + first * conv_.image_size(), m.state(), nullptr, false,
                     job_.unfolded ? m.workspace() : dst, scratch(), job_.threads);
    if (job_.unfolded) fold(job_.plan.unfold, images, m.workspace(), dst, job_.threads);
  }

  [[nodiscard]] float* scratch() const {
    return floats_at(operands().workspace<std::byte>() + bytes_of(job_.unfolded_images_size()));
  }

  Job job_;
  bool backward_;
  Winograd conv_;
  bool relu_;
  bool bias_;
  bool refreshed_;
};

class WinogradConvGradWeights final : public Kernel {
 public:
  WinogradConvGradWeights(const Job& job, bool bias) : job_(job), bias_(bias) {}

  [[nodiscard]] size_t workspace_bytes() const override {
    return transformed_bytes() + bytes_of(job_.unfolded_images_size()) +
           std::max(bytes_of(winograd_scratch(job_.conv, job_.images_at_once())), bytes_of(job_.weights_size()));
  }
  [[nodiscard]] std::string detail() const override { return job_.unfolded ? "unfolded" : ""; }
  void run(const StepContext&) override {
    const Binding& m = operands();
    float* const transformed = m.workspace();
    float* const unfolded = floats_at(m.workspace<std::byte>() + transformed_bytes());
    float* const scratch =
        floats_at(m.workspace<std::byte>() + transformed_bytes() + bytes_of(job_.unfolded_images_size()));
    for_each_group(job_, [&](int64_t first, int64_t images) {
      const float* src = m.in(0) + first * job_.image_size();
      if (job_.unfolded) {
        unfold(job_.plan.unfold, images, src, unfolded, job_.threads);
        src = unfolded;
      }
      winograd_grad_weights(job_.conv, images, src, m.in(1) + first * job_.conv.result_size(), first > 0, transformed,
                            scratch, job_.threads);
    });
    winograd_plain_gradients(job_.conv, transformed, job_.unfolded ? scratch : m.out(), job_.threads);
    if (job_.unfolded) fold_weights(job_.plan.unfold, job_.plan.out_channels, scratch, m.out());
    if (bias_) channel_sums(job_.conv, job_.plan.batch, m.in(1), m.out(1), job_.threads);
  }

 private:
  [[nodiscard]] size_t transformed_bytes() const { return bytes_of(winograd_weights_size(job_.conv)); }

  Job job_;
  bool bias_;
};

}  // namespace

std::unique_ptr<Kernel> winograd_conv2d(const KernelRequest& request, const CpuOptions& options) {
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  if (attrs.activation != graph::Activation::none && attrs.activation != graph::Activation::relu) return nullptr;
  const auto job = make_job(attrs.window, request.input(0), request.output(), options);
  return job ? std::make_unique<WinogradConv>(*job, request) : nullptr;
}

std::unique_ptr<Kernel> winograd_conv2d_grad_input(const KernelRequest& request, const CpuOptions& options) {
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const auto job = make_job(attrs.window, request.output(), request.input(0), options);
  if (!job) return nullptr;
  const bool foldable = !job->plan.unfold.plain_source && attrs.window.stride_h == 1 && attrs.window.stride_w == 1;
  return !job->unfolded || foldable ? std::make_unique<WinogradConv>(*job, request) : nullptr;
}

std::unique_ptr<Kernel> winograd_conv2d_grad_weights(const KernelRequest& request, const CpuOptions& options) {
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const auto job = make_job(attrs.window, request.input(0), request.input(1), options);
  return job ? std::make_unique<WinogradConvGradWeights>(*job, attrs.bias) : nullptr;
}

}  // namespace lockstep::backend::cpu
