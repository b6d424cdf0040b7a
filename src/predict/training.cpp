#include "predict/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "predict/exchange.h"

namespace lockstep::predict {
namespace {

void refuse(const std::string& what, double value, const char* allowed) {
  throw UsageError(fmt::format("plan: {} is {:g}; {}", what, value, allowed));
}

void check_node(const Node& node) {
  if (!(node.cores > 0)) refuse("cores of " + node.name, node.cores, "more than 0 is allowed");
  if (!(node.speed > 0)) refuse("speed of " + node.name, node.speed, "more than 0 is allowed");
  if (!(node.link.rate > 0)) refuse("rate of " + node.name, node.link.rate, "more than 0 is allowed");
  if (!(node.link.latency >= 0)) refuse("delay of " + node.name, node.link.latency, "0 or more is allowed");
}

bool finite(const Work& work) {
  const double sum =
      work.load + work.forward + work.backward + work.optimizer + work.rest + work.pause + work.spread + work.threads;
  return std::isfinite(sum) && work.threads > 0 && work.load >= 0 && work.forward >= 0 && work.backward >= 0;
}

}  // namespace

World::World(const Training& of)
    : training(of),
      machine(of.machine_cores),
      network(events, of.nodes),
      times(of.workers.size()),
      server_cpu(of.servers.size()) {
  for (const Node& node : of.nodes) cpus.emplace_back(events, node, of.machine_cores > 0 ? &machine : nullptr);
}

double kept_of_quota(double cores) { return std::min(0.008, cores / 2); }

double quota_period(double cores) {
  constexpr double kPeriod = 0.02;
  constexpr double kLongest = 1;
  constexpr double kLeastQuota = 0.001;
  return std::clamp(kLeastQuota / std::max(cores, 1e-9), kPeriod, kLongest);
}

std::vector<Tensor> even_tensors(size_t elements, size_t parts) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < parts; ++i) {
    const size_t begin = elements * i / parts;
    const size_t end = elements * (i + 1) / parts;
    if (end == begin) continue;
    tensors.push_back({end - begin, static_cast<double>(parts - i) / static_cast<double>(parts)});
  }
  return tensors;
}

void check(const Training& training) {
  if (training.workers.empty()) throw UsageError("plan: a training without workers; 1 or more is allowed");
  if (training.strategy == Strategy::servers && training.servers.empty()) {
    throw UsageError("plan: parameter servers without a server; 1 or more is allowed");
  }
  for (const Node& node : training.nodes) check_node(node);
  const auto there = [&](size_t node) { return node < training.nodes.size(); };
  for (const Worker& worker : training.workers) {
    if (!there(worker.node))
      throw UsageError(fmt::format("plan: a worker on node {}, which is not there", worker.node));
    if (!finite(worker.work)) throw UsageError("plan: the work of a step is not known");
  }
  for (const Server& server : training.servers) {
    if (!there(server.node))
      throw UsageError(fmt::format("plan: a server on node {}, which is not there", server.node));
  }
  if (!(training.batch > 0)) refuse("the batch", training.batch, "1 or more is allowed");
  if (training.aggregate < 0) refuse("aggregate", training.aggregate, "0 or more is allowed");
}

}  // namespace lockstep::predict
