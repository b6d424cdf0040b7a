#include "role/group_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/address.h"
#include "base/hash.h"
#include "lockstep/error.h"
#include "role/all_reduce_member.h"
#include "role/ps_member.h"
#include "role/who_decides.h"
#include "run/run_end.h"
#include "settings/metrics_address.h"

namespace lockstep::role {
namespace {

/// Settings that may change when a run is resumed but must be equal in all roles.
constexpr std::array<std::string_view, 8> kAllActOn{"epochs",        "steps", "repeat", "aggregate",
                                                    "max-staleness", "apply", "wire",   "top-k"};

void check_ps_settings(const settings::Settings& settings, const cluster::Spec& spec) {
  const bool sync = settings.mode == settings::Mode::sync;
  const auto workers = static_cast<int64_t>(spec.members().size());
  if (settings.strategy == settings::Strategy::all_reduce) {
    throw UsageError(fmt::format(
        "strategy: allreduce has no parameter servers, and the cluster has {}; use ps, or auto", spec.ps.size()));
  }
  if (sync && settings.clip_norm > 0 && spec.ps.size() > 1) {
    throw UsageError("clip-norm: the norm of a synchronous update is not known with several ps; use one ps, or async");
  }
  if (!sync && settings.aggregate > 0)
    throw UsageError("aggregate: applies only to sync; async applies each gradient alone");
  if (sync && settings.apply == settings::Apply::lock_free) throw UsageError("apply: lock-free applies only to async");
  if (sync && settings.aggregate > 0 && settings.aggregate < workers && settings.accumulate > 1) {
    throw UsageError("accumulate: not together with backup workers (aggregate below the number of workers)");
  }
  if (settings.top_k > 0) throw UsageError("top-k: only for all-reduce; with parameter servers use --wire");
  if (!spec.loopback_only() && settings.tls.empty() && !settings.insecure) {
    throw UsageError(
        "the cluster has addresses beyond this machine: give --tls DIR (see `lockstep keys new`), or --insecure");
  }
}

/// Refuses limits with which two groups could train at once, or none.
void check_group_size(const settings::Settings& settings, int64_t most, bool authority) {
  const auto refuse = [&](const char* name, int64_t value, const char* why) {
    throw UsageError(fmt::format("{}: {} is less than half of the {} workers of the cluster, {}; at least {} is needed",
                                 name, value, most, why, (most + 1) / 2));
  };
  if (settings.min_workers > most) {
    throw UsageError(
        fmt::format("min-workers: {} is more than the {} workers of the cluster", settings.min_workers, most));
  }
  if (settings.max_workers > 0 && settings.max_workers < settings.min_workers) {
    throw UsageError(fmt::format("max-workers: {} is less than min-workers, which is {}", settings.max_workers,
                                 settings.min_workers));
  }
  if (settings.allow_split || authority) return;
  if (settings.min_workers > 0 && 2 * settings.min_workers < most)
    refuse("min-workers", settings.min_workers, "so two groups could train at once (see --allow-split)");
  if (settings.max_workers > 0 && 2 * settings.max_workers < most)
    refuse("max-workers", settings.max_workers, "which may not train without the others (see --allow-split)");
}

void check_all_reduce_settings(const settings::Settings& settings, const cluster::Spec& spec, bool launched) {
  const auto refuse = [](const std::string& what) {
    throw UsageError(what + " needs parameter servers; this cluster has none and trains by all-reduce");
  };
  if (settings.strategy == settings::Strategy::parameter_servers) refuse("strategy: ps");
  if (settings.mode != settings::Mode::sync) refuse("mode: " + value_text(settings, "mode"));
  if (settings.aggregate > 0) refuse(fmt::format("aggregate: {}", settings.aggregate));
  if (settings.apply != settings::Apply::locked) refuse("apply: " + value_text(settings, "apply"));
  if (settings.contributions) refuse("contributions:");
  if (settings.collective == settings::Engine::in_process) {
    throw UsageError("collective: inprocess is for --replicas, which are in one process; a cluster takes gloo or mpi");
  }
  if (settings.top_k > 0 && settings.wire != settings::WireElement::f32) {
    throw UsageError(fmt::format("top-k: cannot be combined with wire {}; choose one", value_text(settings, "wire")));
  }
  check_who_decides(settings);
  const bool authority = etcd_decides(settings) || (launched && launcher_decides(settings, spec));
  check_group_size(settings, static_cast<int64_t>(spec.members().size()), authority);
  // The ranks of an MPI job on one machine have addresses; on several machines they are unknown.
  const bool unknown = spec.address(spec.chief_task()).empty();
  if ((unknown || !spec.loopback_only()) && !settings.insecure) {
    throw UsageError(
        "the cluster has addresses beyond this machine, and gradients of an all-reduce are not encrypted: give "
        "--insecure where the network is trusted (docs/allreduce.md)");
  }
}

}  // namespace

std::string job_digest(const settings::Settings& settings, const cluster::Spec& spec) {
  uint64_t hash = base::kDigestStart;
  const auto add = [&hash](std::string_view text) { hash = base::hashed(base::hashed(hash, text), uint64_t{0xFF}); };
  for (const settings::SettingDef& def : settings::settings_table()) {
    const bool acted_on = std::find(kAllActOn.begin(), kAllActOn.end(), def.name) != kAllActOn.end();
    if ((def.keep != settings::Keep::fixed && !acted_on) || def.name == "name" || def.name == "run-dir") continue;
    add(def.name);
    add(settings::value_text(settings, def));
  }
  add(fmt::format("{} {} {}", spec.members().size(), spec.ps.size(), value_text(settings, "placement")));
  return fmt::format("{:016x}", hash);
}

void check_cluster_settings(const settings::Settings& settings, const cluster::Spec& spec, bool launched) {
  const auto workers = static_cast<int64_t>(spec.members().size());
  if (settings.replicas > 1) {
    throw UsageError(
        fmt::format("replicas: {} replicas train in one process; not allowed in a cluster", settings.replicas));
  }
  (void)settings::metrics_address(settings, static_cast<int>(spec.tasks().size()) - 1);
  if (settings.global_batch > 0 && settings.global_batch % workers != 0) {
    throw UsageError(
        fmt::format("global-batch: {} cannot be shared evenly among {} workers", settings.global_batch, workers));
  }
  if (spec.ps.empty()) {
    check_all_reduce_settings(settings, spec, launched);
  } else {
    check_ps_settings(settings, spec);
  }
}

exchange::LookForEnding look_in(const std::string& run) {
  return [end = std::make_shared<run::RunEnd>(run)] { return end->look(); };
}

transport::Security security_of(const settings::Settings& settings, const ClusterProcess& process) {
  if (settings.tls.empty()) return {};
  const std::string& address = process.spec.address(process.task);
  const std::string machine = address.empty() ? "" : settings.tls + "/" + base::parse_address(address).host;
  std::error_code ignored;
  const bool own_folder = !machine.empty() && !std::filesystem::exists(settings.tls + "/node.pem", ignored) &&
                          std::filesystem::exists(machine + "/node.pem", ignored);
  return {own_folder ? machine : settings.tls, process.task.str()};
}

void check_keys(const settings::Settings& settings, const ClusterProcess& process) {
  const std::string warning = transport::expiry_warning(security_of(settings, process));
  if (!warning.empty() && process.log) process.log("warning", warning);
}

GroupMember::GroupMember(ClusterProcess process, const settings::Settings& settings, std::string job,
                         const std::atomic<bool>* interrupt)
    : process_(std::move(process)), settings_(settings), job_(std::move(job)), interrupt_(interrupt) {
  check_cluster_settings(settings, process_.spec, process_.tell_launcher != nullptr);
  check_keys(settings, process_);
}

std::string GroupMember::folder(const std::string& run) const {
  return chief() ? run : run + "/" + process_.task.folder();
}

run::ObservedRole observed_role(const ClusterProcess& process, const std::string& folder) {
  const std::vector<cluster::Task> tasks = process.spec.tasks();
  run::ObservedRole role;
  role.name = process.task.str();
  role.folder = folder;
  if (std::filesystem::path(folder).filename() == process.task.folder()) role.subfolder = process.task.folder();
  role.position = static_cast<int>(std::find(tasks.begin(), tasks.end(), process.task) - tasks.begin());
  role.traffic = process.meter;
  role.log = process.log;
  return role;
}

train::Shown GroupMember::shown(const program::ParameterStore& parameters) const {
  const std::string name = process_.task.str();
  train::Shown shown;
  shown.parameters = &parameters;
  shown.compares_runs = chief();
  shown.devices.compute =
      fmt::format("/job:{}/task:{}/device:CPU:0", name.substr(0, name.find(':')), process_.task.index);
  return shown;
}

int64_t GroupMember::batch() const {
  return settings_.global_batch > 0 ? settings_.global_batch / members() : settings_.batch;
}

std::unique_ptr<GroupMember> make_member(ClusterProcess process, const settings::Settings& settings, std::string job,
                                         const std::atomic<bool>* interrupt) {
  if (!process.spec.ps.empty())
    return std::make_unique<PsMember>(std::move(process), settings, std::move(job), interrupt);
  return std::make_unique<AllReduceMember>(std::move(process), settings, std::move(job), interrupt);
}

}  // namespace lockstep::role
