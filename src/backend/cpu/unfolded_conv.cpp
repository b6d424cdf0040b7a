// Convolutions of other kernels and strides as 3x3 convolutions of stride 1 over more channels (kernels/unfold.h), for
// Winograd's algorithm, and those first layers for which oneDNN has no generated code. A few images at a time, so that
// the unfolded ones stay in the cache.
#include <algorithm>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/unfold.h"
#include "backend/cpu/onednn_conv.h"

namespace lockstep::backend::cpu {
namespace {

using dnnl::memory;
using Kind = graph::Layout::Kind;

constexpr auto kF32 = memory::data_type::f32;
/// Images unfolded together.
constexpr int64_t kImages = 8;

/// A convolution of the graph and what it becomes.
struct Plan {
  Unfold unfold;
  graph::Window window;
  Shape weights;  ///< unfolded
  int64_t batch = 1;
  int64_t out_channels = 1;
  Shape dst;  ///< of the whole batch
  graph::Layout layout;
  bool winograd = false;

  [[nodiscard]] int64_t chunk() const { return std::min(batch, kImages); }
  [[nodiscard]] int64_t dst_size() const { return dst.elements(1, 4); }
  [[nodiscard]] size_t weights_bytes() const {
    return aligned(static_cast<size_t>(weights.elements()) * sizeof(float));
  }
  [[nodiscard]] size_t images_bytes() const {
    return aligned(static_cast<size_t>(chunk() * unfold.unfolded_size()) * sizeof(float));
  }

  /// The unfolded convolution of so many images.
  [[nodiscard]] ConvolutionSpec spec(int64_t images, bool bias) const {
    const Shape src{images, unfold.unfolded_channels(), unfold.h.unfolded, unfold.w.unfolded};
    return convolution(window, {{DType::f32, src}, layout}, weights, kF32, {{DType::f32, dst.with(0, images)}, layout},
                       bias);
  }
};

/// How much of the arithmetic is not on taps that were added.
double useful_share(const Plan& plan) {
  const Unfold& u = plan.unfold;
  return static_cast<double>(u.h.kernel * u.w.kernel) / static_cast<double>(u.groups() * u.h.taps * u.w.taps);
}

/// nullopt: the convolution cannot be unfolded.
std::optional<Plan> make_plan(const graph::Window& w, const graph::Output& src, const graph::Output& dst,
                              const CpuOptions& options) {
  constexpr double kLeastUsefulShare = 0.65;
  const Shape& image = src.type.shape;
  const Shape& result = dst.type.shape;
  if (src.type.dtype != DType::f32 || dst.type.dtype != DType::f32) return std::nullopt;
  if (dst.layout.kind != Kind::channel_blocked || result[1] % dst.layout.block != 0) return std::nullopt;
  Plan plan;
  plan.unfold = {unfolded_axis(image[2], w.kernel_h, w.stride_h, w.pad_top, result[2]),
                 unfolded_axis(image[3], w.kernel_w, w.stride_w, w.pad_left, result[3]), image[1], src.layout.plain(),
                 dst.layout.block};
  const Unfold& u = plan.unfold;
  if (!u.plain_source && (src.layout != dst.layout || image[1] % u.block != 0 || u.groups() == 1)) return std::nullopt;
  plan.window = {.kernel_h = u.h.taps, .kernel_w = u.w.taps};
  plan.weights = {result[1], u.unfolded_channels(), u.h.taps, u.w.taps};
  plan.batch = image[0];
  plan.out_channels = result[1];
  plan.dst = result;
  plan.layout = dst.layout;
  plan.winograd = !options.exact_conv && useful_share(plan) >= kLeastUsefulShare &&
                  winograd_pays(plan.window, result.with(0, plan.chunk()));
  return plan;
}

bool is_winograd(const dnnl::primitive_desc_base& desc) {
  return desc && std::string_view(desc.impl_info_str()).starts_with("jit_wino");
}
/// Whether this is generated code and not oneDNN's own last resort, or one that copies windows into matrices.
bool is_generated(const dnnl::primitive_desc_base& desc) {
  return desc && std::string_view(desc.impl_info_str()).starts_with("jit");
}

/// The unfolded weights in oneDNN's layout, made of the plain ones or the other way round.
class UnfoldedWeights {
 public:
  UnfoldedWeights(const OneDnn& dnn, const Plan& plan, const memory::desc& blocked, bool to_blocked)
      : plan_(plan), plain_(dnn.unbound(plain_weights(plan.weights))), blocked_(dnn.unbound(blocked)) {
    const memory& from = to_blocked ? plain_ : blocked_;
    const memory& to = to_blocked ? blocked_ : plain_;
    reorder_ =
        Prepared(dnn, reorder(dnn.engine, from.get_desc(), to.get_desc()), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  [[nodiscard]] const memory& blocked() const { return blocked_; }
  [[nodiscard]] size_t bytes() const { return aligned(blocked_.get_desc().get_size()); }
  /// Scratch of the two below.
  [[nodiscard]] size_t scratch_bytes() const { return plan_.weights_bytes() + reorder_.scratch_bytes(); }

  void unfold(const OneDnn& dnn, const float* plain, void* blocked, std::byte* scratch) {
    unfold_weights(plan_.unfold, plan_.out_channels, plain, reinterpret_cast<float*>(scratch));
    convert(dnn, blocked, scratch);
  }
  void fold(const OneDnn& dnn, void* blocked, float* plain, std::byte* scratch) {
    convert(dnn, blocked, scratch);
    fold_weights(plan_.unfold, plan_.out_channels, reinterpret_cast<float*>(scratch), plain);
  }

 private:
  void convert(const OneDnn& dnn, void* blocked, std::byte* scratch) {
    plain_.set_data_handle(scratch);
    blocked_.set_data_handle(blocked);
    reorder_.run(dnn.stream, scratch + plan_.weights_bytes());
  }

  Plan plan_;
  memory plain_;
  memory blocked_;
  Prepared reorder_;
};

/// oneDNN's convolution of one chunk: `unfolded` and `plain` are its two images.
struct Chunk {
  int64_t images = 0;
  memory unfolded, plain;
  Prepared conv;
};

/// Runs body(chunk, first image) for the full chunks and the rest.
template <class Body>
void for_each_chunk(std::vector<Chunk>& chunks, int64_t batch, Body body) {
  for (int64_t first = 0; first < batch;) {
    Chunk& chunk = batch - first >= chunks.front().images ? chunks.front() : chunks.back();
    body(chunk, first);
    first += chunk.images;
  }
}

/// The images of the chunks: full ones and, where the batch is no multiple, the rest.
std::vector<int64_t> chunk_sizes(const Plan& plan) {
  std::vector<int64_t> sizes{plan.chunk()};
  if (plan.batch % plan.chunk() != 0) sizes.push_back(plan.batch % plan.chunk());
  return sizes;
}

size_t largest_scratch(const std::vector<Chunk>& chunks) {
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes = std::max(bytes, chunk.conv.scratch_bytes());
  return bytes;
}

/// Forward pass, and gradient of the input.
class UnfoldedConv final : public Kernel {
 public:
  UnfoldedConv(const OneDnn& dnn, const Plan& plan, const CpuOptions& options, const KernelRequest& request,
               std::vector<Chunk> chunks, UnfoldedWeights weights, memory bias)
      : dnn_(dnn),
        plan_(plan),
        threads_(options.threads),
        backward_(request.node.op == graph::Op::conv2d_grad_input),
        refreshed_(request.is_parameter(1)),
        chunks_(std::move(chunks)),
        weights_(std::move(weights)),
        bias_(std::move(bias)) {}

  [[nodiscard]] size_t workspace_bytes() const override {
    return std::max(plan_.images_bytes() + largest_scratch(chunks_), weights_.scratch_bytes());
  }
  [[nodiscard]] size_t state_bytes() const override { return weights_.bytes(); }
  [[nodiscard]] std::string detail() const override { return chunks_.front().conv.implementation(); }
  void refresh() override {
    if (refreshed_) update_weights();
  }
  void run(const StepContext&) override {
    const Binding& m = operands();
    if (!refreshed_) update_weights();
    weights_.blocked().set_data_handle(m.state());
    if (bias_) bias_.set_data_handle(input(m, 2));
    auto* const unfolded = m.workspace();
    auto* const scratch = m.workspace<std::byte>() + plan_.images_bytes();
    for_each_chunk(chunks_, plan_.batch, [&](Chunk& chunk, int64_t first) {
      chunk.unfolded.set_data_handle(unfolded);
      if (backward_) {
        chunk.plain.set_data_handle(const_cast<float*>(m.in(0)) + first * plan_.dst_size());
        chunk.conv.run(dnn_.stream, scratch);
        fold(plan_.unfold, chunk.images, unfolded, m.out() + first * plan_.unfold.image_size(), threads_);
      } else {
        unfold(plan_.unfold, chunk.images, m.in(0) + first * plan_.unfold.image_size(), unfolded, threads_);
        chunk.plain.set_data_handle(m.out() + first * plan_.dst_size());
        chunk.conv.run(dnn_.stream, scratch);
      }
    });
  }

 private:
  void update_weights() {
    const Binding& m = operands();
    weights_.unfold(dnn_, m.in(1), m.state(), m.workspace<std::byte>());
  }

  OneDnn dnn_;
  Plan plan_;
  int threads_;
  bool backward_;
  bool refreshed_;
  std::vector<Chunk> chunks_;
  UnfoldedWeights weights_;
  memory bias_;
};

class UnfoldedConvGradWeights final : public Kernel {
 public:
  UnfoldedConvGradWeights(const OneDnn& dnn, const Plan& plan, const CpuOptions& options, std::vector<Chunk> chunks,
                          UnfoldedWeights weights, memory bias)
      : dnn_(dnn),
        plan_(plan),
        threads_(options.threads),
        chunks_(std::move(chunks)),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        bias_bytes_(aligned(static_cast<size_t>(plan.out_channels) * sizeof(float))) {}

  [[nodiscard]] size_t workspace_bytes() const override {
    return 2 * weights_.bytes() + bias_bytes_ +
           std::max(plan_.images_bytes() + largest_scratch(chunks_), weights_.scratch_bytes());
  }
  [[nodiscard]] std::string detail() const override { return chunks_.front().conv.implementation(); }

  void run(const StepContext&) override {
    const Binding& m = operands();
    auto* const sum = m.workspace<std::byte>();
    auto* const part = sum + weights_.bytes();
    auto* const bias_part = part + weights_.bytes();
    auto* const unfolded = bias_part + bias_bytes_;
    auto* const scratch = unfolded + plan_.images_bytes();
    for_each_chunk(chunks_, plan_.batch, [&](Chunk& chunk, int64_t first) {
      auto* const images = reinterpret_cast<float*>(unfolded);
      unfold(plan_.unfold, chunk.images, m.in(0) + first * plan_.unfold.image_size(), images, threads_);
      chunk.unfolded.set_data_handle(unfolded);
      chunk.plain.set_data_handle(const_cast<float*>(m.in(1)) + first * plan_.dst_size());
      weights_.blocked().set_data_handle(first == 0 ? sum : part);
      if (bias_) bias_.set_data_handle(first == 0 ? output(m, 1) : bias_part);
      chunk.conv.run(dnn_.stream, scratch);
      if (first == 0) return;
      add_to(sum, part, weights_.bytes());
      if (bias_) add_to(m.out<std::byte>(1), bias_part, static_cast<size_t>(plan_.out_channels) * sizeof(float));
    });
    weights_.fold(dnn_, sum, m.out(), unfolded);
  }

 private:
  void add_to(std::byte* sum, const std::byte* part, size_t bytes) const {
    auto* const to = reinterpret_cast<float*>(sum);
    binary(BinaryFn::add, to, reinterpret_cast<const float*>(part), to, static_cast<int64_t>(bytes / sizeof(float)),
           threads_);
  }

  OneDnn dnn_;
  Plan plan_;
  int threads_;
  std::vector<Chunk> chunks_;
  UnfoldedWeights weights_;
  memory bias_;
  size_t bias_bytes_;
};

/// oneDNN's descriptors for the chunks, which share one layout of weights; empty where unfolding does not pay. `direct`
/// says whether the original convolution can be left to oneDNN.
template <class Make, class WeightsOf>
auto chunk_descs(const OneDnn& dnn, const Plan& plan, ConvolutionSpec original, bool bias, Make make,
                 WeightsOf weights_of) {
  std::vector<decltype(make(dnn.engine, original))> descs;
  const bool needed = plan.unfold.plain_source && !is_generated(make(dnn.engine, original));
  for (const int64_t images : chunk_sizes(plan)) {
    ConvolutionSpec spec = plan.spec(images, bias);
    spec.activation = original.activation;
    if (!descs.empty()) spec.weights = weights_of(descs.front());
    const auto desc = choose(dnn, spec, plan.winograd, make);
    const bool pays = is_winograd(desc) || (needed && is_generated(desc));
    if (!pays) return decltype(descs){};
    descs.push_back(desc);
  }
  return descs;
}

bool has_elements(const KernelRequest& request) {
  return std::all_of(request.node.inputs.begin(), request.node.inputs.end(),
                     [&](graph::ValueId id) { return request.graph.output(id).type.shape.elements() > 0; });
}

}  // namespace

std::unique_ptr<Kernel> unfolded_conv2d(const KernelRequest& request, const CpuOptions& options) {
  if (!has_elements(request)) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const auto plan = make_plan(attrs.window, request.input(0), request.output(), options);
  if (!plan) return nullptr;
  const OneDnn dnn;
  ConvolutionSpec original =
      convolution(attrs.window, request.input(0), request.in_shape(1), kF32, request.output(), attrs.bias);
  original.activation = attrs.activation;
  const auto descs = chunk_descs(dnn, *plan, original, attrs.bias, convolution_forward,
                                 [](const auto& desc) { return desc.weights_desc(); });
  if (descs.empty()) return nullptr;
  UnfoldedWeights weights(dnn, *plan, descs.front().weights_desc(), true);
  const memory bias = attrs.bias ? dnn.unbound(descs.front().bias_desc()) : memory();
  const std::vector<int64_t> sizes = chunk_sizes(*plan);
  std::vector<Chunk> chunks;
  for (const auto& desc : descs) {
    Chunk chunk{sizes[chunks.size()], dnn.unbound(desc.src_desc()), dnn.unbound(desc.dst_desc()), {}};
    chunk.conv =
        Prepared(dnn, desc,
                 {{DNNL_ARG_SRC, chunk.unfolded}, {DNNL_ARG_WEIGHTS, weights.blocked()}, {DNNL_ARG_DST, chunk.plain}});
    if (bias) chunk.conv.add(DNNL_ARG_BIAS, bias);
    chunks.push_back(std::move(chunk));
  }
  return std::make_unique<UnfoldedConv>(dnn, *plan, options, request, std::move(chunks), std::move(weights), bias);
}

std::unique_ptr<Kernel> unfolded_conv2d_grad_input(const KernelRequest& request, const CpuOptions& options) {
  if (!has_elements(request)) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const auto plan = make_plan(attrs.window, request.output(), request.input(0), options);
  const bool foldable = plan && !plan->unfold.plain_source && attrs.window.stride_h == 1 && attrs.window.stride_w == 1;
  if (!foldable) return nullptr;
  const OneDnn dnn;
  const ConvolutionSpec original =
      convolution(attrs.window, request.output(), request.in_shape(1), kF32, request.input(0), false);
  const auto descs = chunk_descs(dnn, *plan, original, false, convolution_backward_data,
                                 [](const auto& desc) { return desc.weights_desc(); });
  if (descs.empty()) return nullptr;
  UnfoldedWeights weights(dnn, *plan, descs.front().weights_desc(), true);
  const std::vector<int64_t> sizes = chunk_sizes(*plan);
  std::vector<Chunk> chunks;
  for (const auto& desc : descs) {
    Chunk chunk{sizes[chunks.size()], dnn.unbound(desc.diff_src_desc()), dnn.unbound(desc.diff_dst_desc()), {}};
    chunk.conv = Prepared(
        dnn, desc,
        {{DNNL_ARG_DIFF_SRC, chunk.unfolded}, {DNNL_ARG_WEIGHTS, weights.blocked()}, {DNNL_ARG_DIFF_DST, chunk.plain}});
    chunks.push_back(std::move(chunk));
  }
  return std::make_unique<UnfoldedConv>(dnn, *plan, options, request, std::move(chunks), std::move(weights), memory());
}

std::unique_ptr<Kernel> unfolded_conv2d_grad_weights(const KernelRequest& request, const CpuOptions& options) {
  if (!has_elements(request)) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const auto plan = make_plan(attrs.window, request.input(0), request.input(1), options);
  if (!plan) return nullptr;
  const OneDnn dnn;
  const ConvolutionSpec original =
      convolution(attrs.window, request.input(0), request.out_shape(), kF32, request.input(1), attrs.bias);
  const auto descs = chunk_descs(dnn, *plan, original, attrs.bias, convolution_backward_weights,
                                 [](const auto& desc) { return desc.diff_weights_desc(); });
  if (descs.empty()) return nullptr;
  UnfoldedWeights weights(dnn, *plan, descs.front().diff_weights_desc(), false);
  const memory bias = attrs.bias ? dnn.unbound(descs.front().diff_bias_desc()) : memory();
  const std::vector<int64_t> sizes = chunk_sizes(*plan);
  std::vector<Chunk> chunks;
  for (const auto& desc : descs) {
    Chunk chunk{sizes[chunks.size()], dnn.unbound(desc.src_desc()), dnn.unbound(desc.diff_dst_desc()), {}};
    chunk.conv = Prepared(
        dnn, desc,
        {{DNNL_ARG_SRC, chunk.unfolded}, {DNNL_ARG_DIFF_WEIGHTS, weights.blocked()}, {DNNL_ARG_DIFF_DST, chunk.plain}});
    if (bias) chunk.conv.add(DNNL_ARG_DIFF_BIAS, bias);
    chunks.push_back(std::move(chunk));
  }
  return std::make_unique<UnfoldedConvGradWeights>(dnn, *plan, options, std::move(chunks), std::move(weights), bias);
}

}  // namespace lockstep::backend::cpu
