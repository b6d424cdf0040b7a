#include "lab/estimate.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "cluster/cluster_file.h"
#include "inspect/describe.h"
#include "lab/run_check.h"
#include "lockstep/error.h"
#include "settings/model_catalog.h"
#include "train/programs.h"

namespace lockstep::lab {
namespace {

// Time of one core and of one message on the machines used for calibration.
constexpr double kFlopsPerSecond = 80e9;
constexpr double kLargeFlopsPerSecond = 300e9;  ///< of wide convolutions
constexpr double kLargeExample = 1e9;           ///< operations of an example from which on most are of that kind
constexpr double kSecondsPerExample = 5e-7;
constexpr double kSecondsPerStep = 40e-6;
constexpr double kSecondsPerExchange = 300e-6;
constexpr double kBytesPerSecond = 1e9;
constexpr double kSecondsToStart = 0.3;
constexpr double kSecondsToEmulate = 0.7;
constexpr double kSecondsToStartRole = 0.15;
constexpr double kSecondsOfAGuest = 30;  ///< of a program that is not ours, until its first run has ended
constexpr double kStepsToALoss = 8000;   ///< assumed steps until a stop rule is met, if nothing else ends the training

double training_examples(const settings::Settings& s) {
  double count = s.dataset == "images" || s.dataset == "synthetic" ? 10'000 : 60'000;
  if (s.dataset == "cluttered-mnist") count = 10'000;
  if (s.train_size > 0) count = static_cast<double>(s.train_size);
  count = std::max(1.0, count - static_cast<double>(s.holdout));
  if (s.train_limit > 0) count = std::min(count, static_cast<double>(s.train_limit));
  return count * s.data_scale;
}

double test_examples(const settings::Settings& s) {
  double count = s.dataset == "images" ? 1000 : 10'000;
  if (s.test_size > 0) count = static_cast<double>(s.test_size);
  return s.test_limit > 0 ? std::min(count, static_cast<double>(s.test_limit)) : count;
}

/// The length of a training in batches of one worker.
struct Length {
  double batches = 0;
  double updates = 0;
  double evaluations = 1;
};

Length length_of(const settings::Settings& s, double trainers) {
  const double batch = static_cast<double>(s.batch);
  const double per_update = s.mode == settings::Mode::async ? 1 : trainers;
  Length length;
  const double epoch_updates = s.steps_per_epoch > 0 ? static_cast<double>(s.steps_per_epoch)
                                                     : std::ceil(training_examples(s) / (batch * per_update));
  length.updates = s.epochs > 0 ? epoch_updates * static_cast<double>(s.epochs) : INFINITY;
  if (s.steps > 0) length.updates = std::min(length.updates, static_cast<double>(s.steps));
  if (s.stop_loss || s.stop_accuracy) length.updates = std::min(length.updates, kStepsToALoss);
  if (!std::isfinite(length.updates)) length.updates = kStepsToALoss;
  length.batches = length.updates * per_update;
  length.evaluations = std::max(1.0, length.updates / epoch_updates);
  if (s.eval_every > 0) length.evaluations += length.updates / static_cast<double>(s.eval_every);
  return length;
}

/// Returns the cores in an --emulate text such as "cores=0.5"; 0 if it does not say.
double emulated_cores(const std::string& text) {
  const size_t at = text.starts_with("cores=") ? 0 : text.find(",cores=");
  if (at == std::string::npos) return 0;
  return std::atof(text.c_str() + text.find('=', at) + 1);
}

}  // namespace

Roles roles_of(const RunPlan& plan) {
  const auto number = [&](const char* name, size_t otherwise) {
    const std::string text = value_of(plan.settings, name);
    return text.empty() ? otherwise : static_cast<size_t>(std::stoull(text));
  };
  const std::string layout = value_of(plan.settings, "layout");
  const std::string strategy = value_of(plan.settings, "strategy");
  std::vector<cluster::Role> all;
  if (!plan.cluster.hosts.empty()) {
    for (const cluster::Task& task : cluster::load_cluster_file(plan.cluster.hosts).spec.tasks()) {
      all.push_back(task.role);
    }
  } else if (!layout.empty()) {
    for (const auto& node : cluster::parse_layout(layout)) all.insert(all.end(), node.begin(), node.end());
  } else if (const size_t workers = number("workers", 0); workers > 0) {
    all.assign(workers, cluster::Role::worker);
    all.insert(all.end(), strategy == "allreduce" ? 0 : number("ps", plan.is_guest() ? 0 : 1), cluster::Role::ps);
  }
  Roles roles;
  roles.cluster = !all.empty();
  roles.servers = static_cast<size_t>(std::count(all.begin(), all.end(), cluster::Role::ps));
  roles.others = static_cast<size_t>(std::count(all.begin(), all.end(), cluster::Role::evaluator));
  if (roles.cluster) roles.trainers = std::max<size_t>(1, all.size() - roles.servers - roles.others);
  roles.all_reduce = strategy == "allreduce" || (roles.cluster && roles.servers == 0);
  return roles;
}

Estimator::Cost Estimator::cost_of(const RunPlan& plan) {
  std::string key = value_of(plan.settings, "model");
  for (const auto& [name, value] : plan.settings) {
    if (name.starts_with("options.") || name == "image-size") key += "," + name + "=" + value;
  }
  const auto found = costs_.find(key);
  if (found != costs_.end()) return found->second;
  const settings::ModelCatalog catalog(models_);
  const nn::ModelDef& model = catalog.find(value_of(plan.settings, "model"));
  const settings::Settings settings = resolved(plan, models_);
  const int64_t size = settings.image_size;
  const Shape image = size > 0 ? Shape{model.image[0], size, size} : model.image;
  const train::ModelSpec spec{&model, settings.options, image, model.classes};
  const graph::Graph graph = train::training_graph(spec, 1);
  Cost cost;
  for (const graph::Node& node : graph.nodes()) cost.flops += static_cast<double>(inspect::flops(graph, node));
  cost.parameter_bytes = 4.0 * static_cast<double>(graph.parameter_count());
  costs_[key] = cost;
  return cost;
}

double Estimator::seconds(const RunPlan& plan) {
  if (plan.is_guest()) return kSecondsOfAGuest;
  const settings::Settings s = resolved(plan, models_);
  const Cost cost = cost_of(plan);
  const double host = base::available_cores();
  const Roles roles = roles_of(plan);
  const auto trainers = static_cast<double>(roles.trainers);
  double cores = host;  // assumes that all hosts together have as many cores
  if (!plan.cluster.emulate.empty()) {
    const double each = emulated_cores(plan.cluster.emulate);
    cores = (each > 0 ? each : host / static_cast<double>(nodes_of(s))) * trainers;
  }
  if (s.cpu_quota > 0) cores = std::min(host, s.cpu_quota * trainers);
  if (!roles.cluster && s.threads > 0) cores = std::min(cores, static_cast<double>(s.threads));
  cores = std::min(cores, host);

  const Length length = length_of(s, trainers);
  const double batch = static_cast<double>(s.batch);
  const double speed = cost.flops < kLargeExample ? kFlopsPerSecond : kLargeFlopsPerSecond;
  const double example = cost.flops / speed + kSecondsPerExample;
  double total = length.batches * (batch * example + kSecondsPerStep) / cores;
  total += length.evaluations * test_examples(s) * example / 3 /
           (s.evaluate == settings::WhoEvaluates::all ? cores / trainers : cores);
  if (roles.cluster) {
    const double exchanges = s.mode == settings::Mode::async && !roles.all_reduce
                                 ? length.batches
                                 : length.batches / std::min(2.0, trainers);
    total +=
        exchanges * (kSecondsPerExchange + 2 * cost.parameter_bytes / kBytesPerSecond) / std::max(0.5, cores / host);
  }
  if (s.seconds > 0) total = std::min(total, s.seconds);
  const size_t started = roles.cluster ? roles.trainers + roles.servers + roles.others : 0;
  if (!plan.cluster.emulate.empty()) total += kSecondsToEmulate;
  return total + kSecondsToStart + static_cast<double>(started) * kSecondsToStartRole / std::max(0.25, cores / host);
}

}  // namespace lockstep::lab
