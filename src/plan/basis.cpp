#include "plan/basis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "records/hardware.h"

namespace lockstep::plan {
namespace {

/// Returns the line through points (batch, seconds) with the least sum of squared relative errors; neither part is
/// below 0.
PassTime line_through(const std::vector<std::pair<double, double>>& points) {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  for (const auto& [x, y] : points) {
    const double weight = 1 / std::max(y * y, 1e-18);
    w += weight;
    wx += weight * x;
    wy += weight * y;
    wxx += weight * x * x;
    wxy += weight * x * y;
  }
  const double spread = w * wxx - wx * wx;
  if (!(spread > 1e-9 * w * wxx)) return {0, wx > 0 ? wy / wx : 0};
  PassTime line{(wy * wxx - wx * wxy) / spread, (w * wxy - wx * wy) / spread};
  if (line.fixed < 0) line = {0, wxy / wxx};
  if (line.each < 0) line = {wy / w, 0};
  return line;
}

/// Returns the points with the number of threads nearest to `threads`.
std::vector<ComputePoint> points_with(const ModelProfile& model, double threads) {
  const auto distance = [&](const ComputePoint& point) { return std::fabs(point.threads - threads); };
  const auto nearest =
      std::min_element(model.points.begin(), model.points.end(),
                       [&](const ComputePoint& a, const ComputePoint& b) { return distance(a) < distance(b); });
  std::vector<ComputePoint> found;
  for (const ComputePoint& point : model.points) {
    if (point.threads == nearest->threads) found.push_back(point);
  }
  std::sort(found.begin(), found.end(), [](const ComputePoint& a, const ComputePoint& b) { return a.batch < b.batch; });
  return found;
}

/// Returns a pass that grows with the batch as profiled, and takes `seconds` at `batch`.
PassTime grown(const std::vector<ComputePoint>& points, double ComputePoint::*pass, double batch, double seconds) {
  PassTime time;
  for (const ComputePoint& point : points) {
    const auto at = static_cast<double>(point.batch);
    if (time.points.empty() || time.points.back().first < at) time.points.emplace_back(at, point.*pass);
  }
  const double profiled = time.of(batch);
  if (!(profiled > 0)) return {0, seconds / batch};
  for (auto& [at, each] : time.points) each *= seconds / profiled;
  return time;
}

constexpr const char* kNoGrowth = "How computing grows with the batch is not in the run: all of it is taken to.";

double error_of(const records::Fit& fit) { return std::clamp(fit.unexplained, 0.05, 0.9); }

}  // namespace

Basis basis_of(const records::RunRecord& run, const records::Fit& fit) {
  const predict::Training& training = fit.training;
  const predict::Work& work = training.workers.front().work;
  const predict::Node& node = training.nodes[training.workers.front().node];
  Basis basis;
  basis.name = run.name;
  basis.model = run.model();
  basis.dataset = run.dataset();
  basis.from_run = true;
  basis.tensors = training.tensors;
  basis.batch = training.batch;
  const double fixed = fit.fixed_compute;
  basis.forward = {work.forward * fixed, work.forward * (1 - fixed) / training.batch};
  basis.backward = {work.backward * fixed, work.backward * (1 - fixed) / training.batch};
  basis.optimizer = work.optimizer;
  basis.rest = work.rest;
  basis.load_each = work.load / training.batch;
  basis.spread = work.spread;
  basis.threads = work.threads;
  basis.node_cores = node.cores;
  basis.quota = node.quota_period > 0;
  basis.element_bytes = training.element_bytes;
  basis.all_reduce_bucket = training.all_reduce_bucket;
  basis.costs = training.costs;
  basis.worker_cost = training.workers.front().cost;
  basis.worker_exchange = training.workers.front().exchange;
  basis.costs.wake = std::min(basis.costs.wake, 2 * records::kPlainWake);
  basis.rate = fit.links_known ? node.link.rate : predict::kUnlimited;
  basis.delay = node.link.latency;
  const double examples = run.examples();
  const double aside = run.chief().phase_seconds("evaluation") + run.chief().phase_seconds("checkpoint");
  basis.aside_each = examples > 0 ? aside / examples : 0;
  const double epochs = run.summary().number("epochs");
  if (epochs >= 1 && examples > 0) basis.epoch_examples = examples / epochs;
  basis.epochs = epochs >= 1 ? epochs : kUnknown;
  basis.memory_fixed = run.chief().peak_memory();
  basis.node_memory = run.summary().number("resources.memory_bytes");
  basis.error = error_of(fit);
  if (fixed == 0) basis.notes.emplace_back(kNoGrowth);
  if (fit.unexplained > 0.1) {
    basis.notes.push_back(fmt::format("The model explains the run badly ({:.0f} % off), so the intervals are wide.",
                                      100 * fit.unexplained));
  }
  double others = 0;
  for (const predict::Node& each : training.nodes) others = std::max(others, each.others);
  if (others > 0.25)
    basis.notes.emplace_back("Other programs ran beside the run; the plan is for machines without them.");
  return basis;
}

double PassTime::of(double batch) const {
  if (points.empty()) return fixed + each * batch;
  const auto above = std::lower_bound(points.begin(), points.end(), batch,
                                      [](const auto& point, double value) { return point.first < value; });
  if (above == points.end()) return points.back().second * batch / points.back().first;
  if (above == points.begin()) return points.front().second * batch / points.front().first;
  const auto& [low, seconds] = *std::prev(above);
  return seconds + (above->second - seconds) * (batch - low) / (above->first - low);
}

void add_growth(const ModelProfile& profile, Basis& basis) {
  const auto count = [](const std::vector<predict::Tensor>& tensors) {
    size_t sum = 0;
    for (const predict::Tensor& tensor : tensors) sum += tensor.count;
    return sum;
  };
  if (count(profile.tensors) != count(basis.tensors)) {
    throw UsageError(
        fmt::format("plan: the profile's {} has {} parameters, that of {} has {}; `lockstep profile {}` "
                    "measures the run's model",
                    profile.model, count(profile.tensors), basis.name, count(basis.tensors), basis.name));
  }
  const std::vector<ComputePoint> points = points_with(profile, basis.threads);
  basis.forward = grown(points, &ComputePoint::forward, basis.batch, basis.forward.of(basis.batch));
  basis.backward = grown(points, &ComputePoint::backward, basis.batch, basis.backward.of(basis.batch));
  basis.memory_each = profile.memory_each;
  std::erase(basis.notes, kNoGrowth);
}

Basis basis_of(const Profile& profile, const ModelProfile& model, int threads) {
  std::vector<std::pair<double, double>> forward;
  std::vector<std::pair<double, double>> backward;
  Basis basis;
  double count = 0;
  basis.spread = 0;
  const std::vector<ComputePoint> points = points_with(model, threads);
  for (const ComputePoint& point : points) {
    forward.emplace_back(static_cast<double>(point.batch), point.forward);
    backward.emplace_back(static_cast<double>(point.batch), point.backward);
    basis.optimizer += point.optimizer;
    basis.spread += point.spread;
    count += 1;
  }
  basis.name = basis.model = model.model;
  basis.tensors = model.tensors;
  basis.forward = line_through(forward);
  basis.backward = line_through(backward);
  basis.optimizer /= count;
  basis.spread = std::clamp(basis.spread / count, 0.0, 0.5);
  basis.rest = 10e-6;
  basis.threads = points.front().threads;
  basis.node_cores = profile.cores;
  basis.costs = profile.costs;
  // The profile's messages are bare. Those of an exchange are also checked, counted and handed to another thread.
  constexpr double kHandling = 20e-6;
  constexpr double kLeastWake = 10e-6;
  basis.costs.message += kHandling;
  basis.costs.wake = std::max(basis.costs.wake, kLeastWake);
  basis.memory_fixed = model.memory_fixed;
  basis.memory_each = model.memory_each;
  basis.node_memory = profile.memory_bytes > 0 ? profile.memory_bytes : kUnknown;
  basis.error = 0.1;
  return basis;
}

}  // namespace lockstep::plan
