// Sampling between pixels and normalisation over channels by our own vector kernels.
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/lrn.h"
#include "backend/cpu/kernels/sampling.h"
#include "backend/cpu/sampling.h"

namespace lockstep::backend::cpu {
namespace {

/// A grid with its coordinates, made once.
class GridCoordinates {
 public:
  GridCoordinates(const KernelRequest& request, int64_t images)
      : attrs_(request.node.as<graph::AffineGridAttrs>()), images_(images) {
    for (int64_t i = 0; i < attrs_.width; ++i) columns_.push_back(grid_coordinate(attrs_.sampling, i, attrs_.width));
    for (int64_t i = 0; i < attrs_.height; ++i) rows_.push_back(grid_coordinate(attrs_.sampling, i, attrs_.height));
  }
  [[nodiscard]] AffineGrid shape() const {
    return {images_, attrs_.height, attrs_.width, columns_.data(), rows_.data()};
  }

 private:
  graph::AffineGridAttrs attrs_;
  int64_t images_;
  std::vector<float> columns_;
  std::vector<float> rows_;
};

std::optional<BilinearSample> sample_of(const KernelRequest& request, const Shape& image, const Shape& grid) {
  if (!all_plain(request) || image[2] < 2 || image[3] < 2) return std::nullopt;
  const graph::Sampling sampling = request.node.as<graph::SampleAttrs>().sampling;
  const PixelScale x = pixel_scale(sampling, image[3]);
  const PixelScale y = pixel_scale(sampling, image[2]);
  const bool clipped = sampling == graph::Sampling::study;
  return BilinearSample{image[0], image[1], image[2], image[3], grid[1] * grid[2], x.scale, y.scale, x.shift, clipped};
}

std::optional<Lrn> lrn_of(const KernelRequest& request) {
  const graph::LrnAttrs attrs = request.node.as<graph::LrnAttrs>();
  const Shape& shape = request.out_shape();
  const graph::Layout& layout = request.output().layout;
  Lrn lrn{shape[0], shape[1], shape[2] * shape[3], 1, attrs.radius, attrs.alpha, attrs.beta, attrs.bias};
  if (layout.kind == graph::Layout::Kind::batch_blocked) {
    lrn.outer = (shape[0] + layout.block - 1) / layout.block;
    lrn.inner *= layout.block;
  }
  if (layout.kind == graph::Layout::Kind::channel_blocked) lrn.block = layout.block;
  if (!all_alike(request) || !lrn_takes_block(lrn.block)) return std::nullopt;
  return lrn;
}

size_t scratch_bytes(const Lrn& shape, int threads) {
  return static_cast<size_t>(lrn_scratch(shape, threads)) * sizeof(float);
}

}  // namespace

std::unique_ptr<Kernel> vector_affine_grid(const KernelRequest& request, const CpuOptions& options) {
  const GridCoordinates grid(request, request.out_shape()[0]);
  return make_kernel([grid, threads = options.threads](const Binding& m, const StepContext&) {
    affine_grid(grid.shape(), m.in(0), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_affine_grid_grad(const KernelRequest& request, const CpuOptions& options) {
  const GridCoordinates grid(request, request.out_shape()[0]);
  return make_kernel([grid, threads = options.threads](const Binding& m, const StepContext&) {
    affine_grid_backward(grid.shape(), m.in(0), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_bilinear_sample(const KernelRequest& request, const CpuOptions& options) {
  const auto sample = sample_of(request, request.in_shape(0), request.in_shape(1));
  if (!sample) return nullptr;
  return make_kernel([s = *sample, threads = options.threads](const Binding& m, const StepContext&) {
    bilinear_sample(s, m.in(0), m.in(1), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_bilinear_sample_grad_image(const KernelRequest& request, const CpuOptions& options) {
  const auto sample = sample_of(request, request.out_shape(), request.in_shape(0));
  if (!sample) return nullptr;
  return make_kernel([s = *sample, threads = options.threads](const Binding& m, const StepContext&) {
    bilinear_sample_backward_image(s, m.in(0), m.in(1), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_bilinear_sample_grad_grid(const KernelRequest& request, const CpuOptions& options) {
  const auto sample = sample_of(request, request.in_shape(0), request.in_shape(1));
  if (!sample) return nullptr;
  return make_kernel([s = *sample, threads = options.threads](const Binding& m, const StepContext&) {
    bilinear_sample_backward_grid(s, m.in(0), m.in(1), m.in(2), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_lrn(const KernelRequest& request, const CpuOptions& options) {
  const auto shape = lrn_of(request);
  if (!shape) return nullptr;
  return make_kernel([s = *shape, threads = options.threads](
                         const Binding& m, const StepContext&) { lrn(s, m.in(0), m.out(), m.workspace(), threads); },
                     scratch_bytes(*shape, options.threads));
}

std::unique_ptr<Kernel> vector_lrn_grad(const KernelRequest& request, const CpuOptions& options) {
  const auto shape = lrn_of(request);
  if (!shape) return nullptr;
  return make_kernel(
      [s = *shape, threads = options.threads](const Binding& m, const StepContext&) {
        lrn_backward(s, m.in(0), m.in(1), m.out(), m.workspace(), threads);
      },
      scratch_bytes(*shape, options.threads));
}

}  // namespace lockstep::backend::cpu
