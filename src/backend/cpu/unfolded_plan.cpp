#include "backend/cpu/unfolded_plan.h"

namespace lockstep::backend::cpu {
namespace {

using Kind = graph::Layout::Kind;

/// Fewest tiles for which the transforms of the weights cost less than the tiles save (measured for 16 to 384
/// channels).
constexpr int64_t kFewestTiles = 32;
constexpr int64_t kTile = 4;

/// Returns the share of the arithmetic on taps of the original kernel.
double useful_share(const UnfoldedPlan& plan) {
  const Unfold& u = plan.unfold;
  return static_cast<double>(u.h.kernel * u.w.kernel) / static_cast<double>(u.groups() * u.h.taps * u.w.taps);
}

}  // namespace

bool winograd_pays(const graph::Window& w, const Shape& dst) {
  if (w.kernel_h != 3 || w.kernel_w != 3 || w.stride_h != 1 || w.stride_w != 1) return false;
  const int64_t tiles = (dst[2] + kTile - 1) / kTile * ((dst[3] + kTile - 1) / kTile);
  const bool mostly_full = 2 * dst[2] * dst[3] > tiles * kTile * kTile;
  return mostly_full && dst[0] * tiles >= kFewestTiles;
}

std::optional<UnfoldedPlan> unfolded_plan(const graph::Window& w, const graph::Output& src, const graph::Output& dst,
                                          const CpuOptions& options) {
  constexpr double kLeastUsefulShare = 0.65;
  const Shape& image = src.type.shape;
  const Shape& result = dst.type.shape;
  if (src.type.dtype != DType::f32 || dst.type.dtype != DType::f32) return std::nullopt;
  if (dst.layout.kind != Kind::channel_blocked || result[1] % dst.layout.block != 0) return std::nullopt;
  UnfoldedPlan plan;
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
  plan.winograd = !options.exact_conv && useful_share(plan) >= kLeastUsefulShare && winograd_pays(plan.window, result);
  return plan;
}

}  // namespace lockstep::backend::cpu
