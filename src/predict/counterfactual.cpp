#include "predict/counterfactual.h"

#include <algorithm>
#include <array>

namespace lockstep::predict {
namespace {

void free_links(Training& training) {
  for (Node& node : training.nodes) {
    node.link.rate = kUnlimited;
    node.link.latency = 0;
  }
}

void free_compute(Training& training) {
  for (Worker& worker : training.workers) {
    worker.work.forward = worker.work.backward = worker.work.optimizer = 0;
  }
}

void free_cores(Training& training) {
  training.machine_cores = 0;
  for (const Worker& worker : training.workers) {
    Node& node = training.nodes[worker.node];
    node.quota_period = 0;
    node.others = 0;
    node.cores = 1e6;
  }
}

/// Returns the value in the middle, the better one of two: a straggler of two workers is the slower one.
template <typename Less>
double better_middle(std::vector<double> values, Less better) {
  std::sort(values.begin(), values.end(), better);
  return values[(values.size() - 1) / 2];
}

template <typename Get, typename Less>
void make_even(Training& training, Get get, Less better) {
  std::vector<double> values;
  for (Worker& worker : training.workers) values.push_back(get(worker));
  const double middle = better_middle(values, better);
  for (Worker& worker : training.workers) {
    if (better(middle, get(worker))) get(worker) = middle;
  }
}

void even_workers(Training& training) {
  constexpr auto kLess = std::less<>();
  constexpr auto kMore = std::greater<>();
  for (double Work::*part :
       {&Work::load, &Work::forward, &Work::backward, &Work::optimizer, &Work::rest, &Work::pause, &Work::spread}) {
    make_even(
        training, [part](Worker& worker) -> double& { return worker.work.*part; }, kLess);
  }
  make_even(
      training, [](Worker& worker) -> double& { return worker.cost; }, kLess);
  const auto node = [&](double Node::*part) {
    return [&training, part](Worker& worker) -> double& { return training.nodes[worker.node].*part; };
  };
  make_even(training, node(&Node::cores), kMore);
  make_even(training, node(&Node::speed), kMore);
  make_even(training, node(&Node::others), kLess);
  const auto link = [&](double Link::*part) {
    return [&training, part](Worker& worker) -> double& { return training.nodes[worker.node].link.*part; };
  };
  make_even(training, link(&Link::rate), kMore);
  make_even(training, link(&Link::latency), kLess);
}

}  // namespace

std::string_view name(Resource resource) {
  constexpr std::array<std::string_view, 12> kNames{"network",    "servers",    "messages",   "compute",
                                                    "cores",      "programs",   "data",       "evaluation",
                                                    "checkpoint", "stragglers", "unevenness", "rest"};
  return kNames[static_cast<size_t>(resource)];
}

const std::vector<Resource>& all_resources() {
  static const std::vector<Resource> kAll{Resource::network,    Resource::servers,    Resource::messages,
                                          Resource::compute,    Resource::cores,      Resource::programs,
                                          Resource::data,       Resource::evaluation, Resource::checkpoint,
                                          Resource::stragglers, Resource::unevenness, Resource::rest};
  return kAll;
}

Training without(Training training, Resource resource) {
  switch (resource) {
    case Resource::network:
      free_links(training);
      break;
    case Resource::servers:
      for (Server& server : training.servers) server.cost = 0;
      break;
    case Resource::messages:
      training.costs.message = training.costs.byte = training.costs.wake = 0;
      for (Worker& worker : training.workers) worker.exchange = 0;
      break;
    case Resource::compute:
      free_compute(training);
      break;
    case Resource::cores:
      free_cores(training);
      break;
    case Resource::programs:
      for (Node& node : training.nodes) node.others = 0;
      break;
    case Resource::data:
      for (Worker& worker : training.workers) worker.work.load = 0;
      break;
    case Resource::evaluation:
      training.evaluation = 0;
      break;
    case Resource::checkpoint:
      training.checkpoint = 0;
      break;
    case Resource::stragglers:
      even_workers(training);
      break;
    case Resource::unevenness:
      for (Worker& worker : training.workers) worker.work.spread = 0;
      break;
    case Resource::rest:
      for (Worker& worker : training.workers) worker.work.rest = 0;
      break;
  }
  return training;
}

std::vector<Effect> effects(const Training& training, const Prediction& measured, const SimulationOptions& options) {
  std::vector<Effect> all;
  for (const Resource resource : all_resources()) {
    const Training changed = without(training, resource);
    const double step = simulate(changed, options).step;
    all.push_back({resource, step, std::max(0.0, 1 - step / measured.step)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Effect& a, const Effect& b) { return a.saved > b.saved; });
  return all;
}

}  // namespace lockstep::predict
