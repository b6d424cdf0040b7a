#include "lab/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/memory.h"
#include "base/parallel.h"
#include "cluster/cluster_file.h"
#include "emulate/cluster.h"
#include "emulate/faults.h"
#include "guest/guest_run.h"
#include "guest/usage_log.h"
#include "lab/guest_layer.h"
#include "lockstep/error.h"
#include "role/group_member.h"
#include "settings/configuration.h"
#include "train/data_options.h"

namespace lockstep::lab {
namespace {

bool has_cluster(const settings::Settings& settings) { return settings.workers > 0 || !settings.layout.empty(); }

/// Returns the cluster that a launcher on this machine would make, with unused addresses.
cluster::Spec spec_of(const RunPlan& plan, const settings::Settings& settings) {
  const bool all_reduce = settings.strategy == settings::Strategy::all_reduce;
  if (all_reduce && !value_of(plan.settings, "ps").empty()) {
    throw UsageError(fmt::format("ps: {} with strategy allreduce, which has no parameter servers", settings.ps));
  }
  std::vector<std::vector<cluster::Role>> nodes(1);
  if (settings.layout.empty()) {
    nodes[0].assign(static_cast<size_t>(all_reduce ? 0 : settings.ps), cluster::Role::ps);
    nodes[0].insert(nodes[0].end(), static_cast<size_t>(settings.workers), cluster::Role::worker);
  } else {
    nodes = cluster::parse_layout(settings.layout);
  }
  cluster::Spec spec;
  int port = cluster::kFirstPort;
  for (const auto& node : nodes) {
    for (const cluster::Role role : node) spec.of(role).push_back(fmt::format("127.0.0.1:{}", port++));
  }
  if (settings.evaluator && spec.evaluator.empty()) spec.evaluator.push_back(fmt::format("127.0.0.1:{}", port));
  if (const auto problem = cluster::find_problem(spec)) throw UsageError(problem->text);
  const auto members = static_cast<int64_t>(spec.members().size());
  if (!settings.layout.empty() && settings.workers != 0 && settings.workers != members) {
    throw UsageError(fmt::format("workers: {} does not fit the layout '{}', which has {}; give only one of them",
                                 settings.workers, settings.layout, members));
  }
  return spec;
}

/// Returns the settings that place the roles of a foreign program; it has no servers unless they are given.
settings::Settings guest_places(const RunPlan& plan) {
  settings::Settings places;
  places.ps = 0;
  for (const auto& [name, text] : plan.settings) {
    if (name != "workers" && name != "ps" && name != "layout" && name != "evaluator") continue;
    settings::assign(places, *settings::find_setting(name), text, name);
  }
  return places;
}

/// Returns whether the lab itself uses a setting of a foreign program, or it only says what the program is.
bool is_of_lab(std::string_view name) {
  constexpr std::array<std::string_view, 12> kOfLab{"workers", "ps",     "layout",  "evaluator",
                                                    "seed",    "model",  "dataset", "command",
                                                    "emulate", "faults", "hosts",   "monitor-every"};
  return std::find(kOfLab.begin(), kOfLab.end(), name) != kOfLab.end();
}

size_t guest_nodes(const settings::Settings& places) {
  if (!places.layout.empty()) return cluster::parse_layout(places.layout).size();
  return std::max<size_t>(1, places.workers == 0 ? 1 : static_cast<size_t>(places.workers + places.ps));
}

/// Refuses names in braces that nothing fills in, and settings that vary without a place in the command.
void check_words(const RunPlan& plan) {
  Values values = guest_values(plan, "data");
  for (const std::string& name : guest::role_names()) values.emplace_back(name, name);
  std::vector<std::string> words = plan.guest.command;
  words.insert(words.end(), plan.guest.figures.begin(), plan.guest.figures.end());
  (void)guest::filled_in(plan.guest.command, values);
  for (const auto& [name, text] : plan.varied) {
    if (is_of_lab(name)) continue;
    const std::string braces = "{" + yaml_name(name) + "}";
    const bool used = std::any_of(words.begin(), words.end(),
                                  [&](const std::string& word) { return word.find(braces) != std::string::npos; });
    if (!used) throw UsageError(fmt::format("{} varies, but the command does not have {}", yaml_name(name), braces));
  }
}

/// Refuses cluster settings for a single process.
void check_alone(const RunPlan& plan, const settings::Settings& settings) {
  constexpr std::array<std::string_view, 12> kOfOne{"workers",      "restarts",   "insecure", "replicas",
                                                    "strategy",     "collective", "wire",     "bucket-mb",
                                                    "global-batch", "reduce",     "shard",    "patience"};
  const settings::Settings defaults;
  for (const auto& [name, text] : plan.settings) {
    const settings::SettingDef* def = settings::find_setting(name);
    if (def == nullptr || def->group != "Cluster") continue;
    if (settings::value_text(settings, *def) == settings::value_text(defaults, *def)) continue;
    const bool of_one = std::find(kOfOne.begin(), kOfOne.end(), name) != kOfOne.end();
    if (of_one && (settings.replicas > 1 || name == "insecure" || name == "restarts" || name == "replicas")) continue;
    throw UsageError(fmt::format("{}: {} applies only to clusters; add workers or a layout", name, text));
  }
}

void check_hosts(const RunPlan& plan) {
  for (const auto& [name, text] : plan.settings) {
    if (!is_place(name)) continue;
    throw UsageError(fmt::format("{}: the cluster file already assigns the roles to hosts; leave it out", name));
  }
}

void check_faults(const RunPlan& plan, const cluster::Spec* spec, size_t nodes) {
  for (const emulate::Fault& fault : emulate::parse_faults(plan.cluster.faults)) {
    const bool of_role = fault.kind == emulate::Fault::Kind::kill || fault.kind == emulate::Fault::Kind::stop;
    if (of_role) {
      const bool there = spec != nullptr && spec->contains(cluster::parse_task(fault.target));
      if (!there) throw UsageError(fmt::format("faults: '{}': the run has no {}", fault.text(), fault.target));
      continue;
    }
    if (plan.cluster.emulate.empty())
      throw UsageError(fmt::format("faults: '{}' needs emulate: only such nodes can be cut or slowed", fault.text()));
    bool there = false;
    for (size_t node = 1; node <= nodes; ++node) there = there || fault.target == fmt::format("node{}", node);
    if (!there) throw UsageError(fmt::format("faults: '{}': the run has node1 to node{}", fault.text(), nodes));
  }
}

void check_emulation(const RunPlan& plan, size_t nodes, bool machine) {
  if (plan.cluster.emulate.empty()) return;
  const std::vector<emulate::NodeSpec> specs = emulate::parse_nodes(plan.cluster.emulate, nodes);
  if (!machine) return;
  try {
    emulate::check_fits(specs, base::available_cores(), base::machine_memory());
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("{} (--local runs processes of this machine instead)", e.what()));
  }
}

/// Throws UsageError; `place` is then the place of that part of the cluster in the file, if given.
void check_cluster(const Variation& variation, const settings::Settings& settings, bool machine,
                   const YamlNode*& place) {
  const RunPlan& plan = variation.plan;
  const auto at = [&](const YamlNode* part, const auto& look) {
    const YamlNode* before = std::exchange(place, part == nullptr ? place : part);
    look();
    place = before;
  };
  if (!plan.cluster.hosts.empty()) {
    check_hosts(plan);
    if (!machine) return;
    cluster::Spec spec;
    at(variation.cluster.hosts, [&] {
      spec = cluster::load_cluster_file(plan.cluster.hosts).spec;
      role::check_cluster_settings(settings, spec, true);
    });
    at(variation.cluster.faults, [&] { check_faults(plan, &spec, 0); });
    return;
  }
  const size_t nodes = nodes_of(settings);
  at(variation.cluster.emulate, [&] { check_emulation(plan, nodes, machine); });
  std::optional<cluster::Spec> spec;
  if (has_cluster(settings)) {
    spec = spec_of(plan, settings);
    role::check_cluster_settings(settings, *spec, true);
  } else {
    check_alone(plan, settings);
  }
  at(variation.cluster.faults, [&] { check_faults(plan, spec ? &*spec : nullptr, nodes); });
}

/// Throws UsageError; `place` is then the place in the file.
void check_guest(const Variation& variation, bool machine, const YamlNode*& place) {
  const RunPlan& plan = variation.plan;
  if (!plan.guest.logs.empty()) {
    place = variation.guest.logs;
    for (const std::string& log : plan.guest.logs) {
      const guest::LogSource source = guest::parse_log(log);
      if (machine) (void)guest::read_usage_log(source.file, source.every);
    }
    return;
  }
  check_words(plan);
  if (!plan.cluster.hosts.empty()) {
    if (!plan.cluster.faults.empty()) {
      place = variation.cluster.faults;
      throw UsageError("faults: not allowed with a command on hosts");
    }
    check_hosts(plan);
    place = variation.cluster.hosts;
    if (machine) (void)cluster::load_cluster_file(plan.cluster.hosts);
    return;
  }
  const settings::Settings places = guest_places(plan);
  place = variation.at;
  std::optional<cluster::Spec> spec;
  if (has_cluster(places)) spec = spec_of(plan, places);
  if (variation.cluster.emulate != nullptr) place = variation.cluster.emulate;
  check_emulation(plan, guest_nodes(places), machine);
  if (variation.cluster.faults != nullptr) place = variation.cluster.faults;
  check_faults(plan, spec ? &*spec : nullptr, guest_nodes(places));
}

}  // namespace

settings::Settings resolved(const RunPlan& plan, std::span<const nn::ModelDef> models) {
  settings::Configuration configuration(models);
  for (const auto& [name, text] : plan.settings) {
    if (name.starts_with("options.")) {
      configuration.set("options", name.substr(8) + "=" + text, "options");
    } else {
      configuration.set(name, text, name);
    }
  }
  return configuration.resolve();
}

bool is_place(std::string_view setting) {
  constexpr std::array<std::string_view, 5> kPlaces{"workers", "layout", "cpu-quota", "ps", "replicas"};
  return std::find(kPlaces.begin(), kPlaces.end(), setting) != kPlaces.end();
}

size_t nodes_of(const settings::Settings& settings) {
  if (!settings.layout.empty()) return cluster::parse_layout(settings.layout).size();
  if (settings.workers == 0) return 1;
  return static_cast<size_t>(settings.workers +
                             (settings.strategy == settings::Strategy::all_reduce ? 0 : settings.ps));
}

std::vector<emulate::NodeSpec> largest_cluster(const std::vector<const RunPlan*>& plans,
                                               std::span<const nn::ModelDef> models) {
  const auto sum = [](const std::vector<emulate::NodeSpec>& nodes, double emulate::NodeSpec::*member) {
    double all = 0;
    for (const emulate::NodeSpec& node : nodes) all += node.*member;
    return all;
  };
  std::vector<emulate::NodeSpec> largest;
  double memory = 0;
  for (const RunPlan* plan : plans) {
    if (plan->cluster.emulate.empty()) continue;
    std::vector<emulate::NodeSpec> nodes = emulate::parse_nodes(
        plan->cluster.emulate, plan->is_guest() ? guest_nodes(guest_places(*plan)) : nodes_of(resolved(*plan, models)));
    emulate::share_cores(nodes, base::available_cores());
    memory = std::max(memory, sum(nodes, &emulate::NodeSpec::memory_bytes));
    if (sum(nodes, &emulate::NodeSpec::cores) > sum(largest, &emulate::NodeSpec::cores)) largest = std::move(nodes);
  }
  if (!largest.empty()) largest.front().memory_bytes += memory - sum(largest, &emulate::NodeSpec::memory_bytes);
  return largest;
}

void check_run(const Reader& reader, const Variation& variation, std::span<const nn::ModelDef> models, bool machine) {
  const RunPlan& plan = variation.plan;
  const auto fail = [&](const YamlNode& at, const Error& error) {
    reader.fail(at, fmt::format("run {}: {}", plan.key, error.what()));
  };
  if (plan.is_guest()) {
    const YamlNode* at = variation.guest.logs != nullptr ? variation.guest.logs : variation.guest.command;
    try {
      check_guest(variation, machine, at);
    } catch (const Error& error) {
      fail(*at, error);
    }
    return;
  }
  const std::string model = value_of(plan.settings, "model");
  if (model.empty()) reader.fail(*variation.at, fmt::format("run {}: has no model; give one in `base`", plan.key));
  try {
    (void)settings::ModelCatalog(models).find(model);
  } catch (const Error& error) {
    reader.fail(variation.model == nullptr ? *variation.at : *variation.model, error.what());
  }
  const YamlNode* place = variation.at;
  try {
    const settings::Settings settings = resolved(plan, models);
    (void)train::data_options(settings, settings::ModelCatalog(models).find(model).image);
    check_cluster(variation, settings, machine, place);
  } catch (const Error& error) {
    fail(*place, error);
  }
}

}  // namespace lockstep::lab
