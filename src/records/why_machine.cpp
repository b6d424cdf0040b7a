// Shortages of the machines, as the monitors saw them, and incidents of the run.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "records/format.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

struct Host {
  std::string name;
  std::vector<const RoleRecord*> roles;
  double busy = kUnknown;  ///< percent of the whole node
  double steal = kUnknown;
  double cores = kUnknown;  ///< cores of the node
  double own = 0;           ///< CPU of the roles, 100: one core; NaN if one of them is unknown
  double threads = 0;       ///< computing threads: those given to workers, one for any other role
};

double threads_of(const RunRecord& run, const RoleRecord& role) {
  if (!role.trains()) return 1;
  const double own = role.summary.number("threads");
  return known(own) ? own : known(run.threads()) ? run.threads() : 1;
}

/// Returns the hosts, as roles with enough samples saw them.
std::vector<Host> hosts_of(const RunRecord& run) {
  std::map<std::string, Host> hosts;
  for (const RoleRecord& role : run.roles) {
    Host& host = hosts[role.host];
    host.name = role.host.empty() ? "the machine" : role.host;
    host.own += role.resource("cpu_percent").mean;
    host.roles.push_back(&role);
    host.threads += threads_of(run, role);
    host.cores = std::fmax(host.cores, role.summary.number("resources.cores"));
    if (!(role.samples >= kEnoughSamples)) continue;
    host.busy = std::fmax(host.busy, role.resource("node_cpu_percent").mean);
    host.steal = std::fmax(host.steal, role.resource("node_steal_percent").mean);
  }
  std::vector<Host> result;
  for (auto& [name, host] : hosts) result.push_back(std::move(host));
  return result;
}

std::string cores_text(const Host& host) {
  if (!known(host.cores)) return fmt::format("The CPU of {} was", host.name);
  if (host.cores == 1) return fmt::format("The only core of {} was", host.name);
  return fmt::format("The {} cores of {} were", count_text(host.cores), host.name);
}

/// Attributes the part of a busy node's CPU that the run's roles did not use to other programs.
void add_other_programs(const Host& host, std::vector<Finding>& findings) {
  constexpr double kMuch = 0.15;
  const double share = (host.busy - host.own / host.cores) / 100;
  if (!(share >= kMuch)) return;
  Finding finding{"cpu", share, fmt::format("Other programs on {} limited this run.", host.name),
                  fmt::format("{} {} busy: other programs used {} of the node, the {} of this run {}.",
                              cores_text(host), percent_text(host.busy), share_text(share),
                              host.roles.size() == 1 ? "process" : fmt::format("{} roles", host.roles.size()),
                              percent_text(host.own / host.cores))};
  finding.evidence = {{host.name + ", CPU of the node", host.busy, percent_text(host.busy)},
                      share_evidence(host.name + ", CPU of other programs", share)};
  finding.suggestions = {"Use a machine where nothing else runs; timings on this one say little about the program."};
  findings.push_back(std::move(finding));
}

/// Reports more computing threads than the node has cores.
/// `said`: another sentence has said how busy the node was.
void add_crowd(const Host& host, double computing, bool said, std::vector<Finding>& findings) {
  constexpr double kFilled = 0.7;  // below this, other programs keep the node busy
  if (host.roles.size() < 2 || (known(host.cores) && host.threads <= host.cores)) return;
  const double own = host.own / host.cores / 100;
  if (own < kFilled) return;
  Finding finding{
      "cpu", known(own) ? std::min(own, 1.0) : computing + 0.01,
      fmt::format("The CPU of {}, shared by {} roles, limited this run.", host.name, host.roles.size()),
      said ? fmt::format("The run's {} roles have {} threads that compute, so roles also wait for a free core.",
                         host.roles.size(), count_text(host.threads))
           : fmt::format("{} {} busy with {} roles and {} threads that compute, so roles also wait for a free core.",
                         cores_text(host), percent_text(host.busy), host.roles.size(), count_text(host.threads))};
  finding.evidence.push_back({host.name + ", CPU of the node", host.busy, percent_text(host.busy)});
  for (const RoleRecord* role : host.roles) {
    const double cpu = role->resource("cpu_percent").mean;
    const double switches = role->resource("involuntary_switches").mean;
    finding.evidence.push_back({role->role + ", CPU (100 %: one core)", cpu, percent_text(cpu)});
    if (known(switches)) {
      finding.evidence.push_back({role->role + ", switched out per second", switches, count_text(switches)});
    }
  }
  finding.suggestions = {"Use fewer roles or --threads on this machine, or more machines."};
  findings.push_back(std::move(finding));
}

void add_cpu(const Host& host, double computing, std::vector<Finding>& findings) {
  constexpr double kBusy = 90;
  constexpr double kMuchSteal = 5;
  if (host.steal >= kMuchSteal) {
    findings.push_back(
        {"cpu",
         std::max(host.steal / 100, computing + 0.02),
         fmt::format("{} was given too little CPU.", host.name),
         fmt::format("Other virtual machines took {} of the CPU of {} (steal).", percent_text(host.steal), host.name),
         {{host.name + ", CPU stolen", host.steal, percent_text(host.steal)}},
         {"Use a machine that does not share its cores; timings on this one say little about the program."}});
  }
  if (!(host.busy >= kBusy)) return;
  const size_t before = findings.size();
  add_other_programs(host, findings);
  add_crowd(host, computing, findings.size() > before, findings);
}

/// Reports roles held back by --cpu-quota. The cores of an emulated node are its intended size: there the phases
/// decide.
void add_quota(const RunRecord& run, const RunFacts& facts, std::vector<Finding>& findings) {
  if (!run.nodes.empty()) return;
  constexpr double kHeldBack = 0.05;
  double trained = kUnknown;  // seconds that throttling.json covers: the last session
  for (const Pace& pace : facts.workers) trained = std::fmax(trained, pace.seconds);
  Finding finding{"quota", 0, "", ""};
  std::string worst;
  for (const auto& [role, held] : run.throttling) {
    const double share = std::min(1.0, held.seconds / trained);
    if (!(share >= kHeldBack)) continue;
    finding.evidence.push_back(share_evidence(role + ", held back by its quota", share));
    if (share > finding.weight) worst = role;
    finding.weight = std::max(finding.weight, share);
  }
  if (worst.empty()) return;
  const Throttling& held = run.throttling.find(worst)->second;
  const std::string quota = run.setting("cpu_quota");
  finding.headline = "The CPU quota limited this run.";
  finding.sentence = fmt::format("{} was held back by its CPU quota{} for {} of the time, in {} of {} periods.", worst,
                                 quota.empty() ? "" : fmt::format(" of {} cores", quota), share_text(finding.weight),
                                 count_text(held.throttled_periods), count_text(held.periods));
  finding.suggestions = {fmt::format("Use a larger --cpu-quota{}, or none.", quota.empty() ? "" : " than " + quota)};
  findings.push_back(std::move(finding));
}

void add_memory(const RoleRecord& role, std::vector<Finding>& findings) {
  constexpr double kManyFaults = 20;  // per second; each is a wait for the disk
  constexpr double kNearlyFull = 0.92;
  const double faults = role.resource("major_faults").mean;
  if (faults >= kManyFaults) {
    findings.push_back({"memory",
                        1.1,
                        fmt::format("{} was short of memory.", role.role),
                        fmt::format("{} waited for {} pages a second to come from the disk (major faults).", role.role,
                                    count_text(faults)),
                        {{role.role + ", major faults per second", faults, count_text(faults)}},
                        {"Keep less in memory (a smaller --batch or --train-limit), or use a machine with more."}});
  }
  const double used = role.resource("node_memory_used").max;
  const double total = role.summary.number("resources.memory_bytes");
  if (known(total) && total > 0 && used / total >= kNearlyFull) {
    findings.push_back(
        {"memory",
         0.12,
         "Memory was nearly full.",
         fmt::format("{} of the {} of memory where {} ran were in use at the peak, {} by it.", share_text(used / total),
                     amount_text(total), role.role, amount_text(role.resource("rss_bytes").max)),
         {share_evidence("memory of the node in use", used / total)},
         {}});
  }
}

void add_worker_remarks(const RunRecord& run, std::vector<std::string>& texts) {
  for (const WorkerRow& row : run.summary().workers) {
    if (row.restarts > 0) {
      texts.push_back(fmt::format("{} died and was restarted {}.", row.role,
                                  row.restarts == 1 ? "once" : count_text(row.restarts) + " times"));
    }
    if (row.dropped > 0 && row.dropped >= 0.02 * (row.dropped + row.updates)) {
      texts.push_back(fmt::format("{} of {} gradients of {} came too late and were dropped ({}).",
                                  count_text(row.dropped), count_text(row.dropped + row.updates), row.role,
                                  share_text(row.dropped / (row.dropped + row.updates))));
    }
  }
  if (run.state != RunState::ended) return;
  for (const RoleRecord& role : run.roles) {
    if (role.trains() && !role.has_summary && !role.steps.empty()) {
      texts.push_back(fmt::format("{} left no summary: it was killed or died after step {}.", role.role,
                                  count_text(role.steps.last("step"))));
    }
    if (role.trains() && came_too_late(role)) {
      texts.push_back(fmt::format("{} joined too late: it computed 0 steps.", role.role));
    }
  }
}

}  // namespace

std::vector<Finding> machine_findings(const RunRecord& run, const RunFacts& facts) {
  std::vector<Finding> findings;
  const double computing = facts.all.share(facts.all.compute());
  add_quota(run, facts, findings);
  for (const Host& host : hosts_of(run)) add_cpu(host, computing, findings);
  for (const RoleRecord& role : run.roles) {
    if (role.samples >= kEnoughSamples) add_memory(role, findings);
  }
  return findings;
}

std::vector<std::string> remarks(const RunRecord& run) {
  std::vector<std::string> texts;
  add_worker_remarks(run, texts);
  const double groups = run.summary().number("communication.groups");
  if (groups > 1) texts.push_back(fmt::format("Members joined or left {} times.", count_text(groups - 1)));
  const std::string reason = run.summary().text("stop_reason");
  if (run.failed()) {
    const std::string error = run.summary().text("error");
    texts.push_back(fmt::format("The run ended at step {} with {}{}.", count_text(run.steps()), reason,
                                error.empty() ? "" : ": " + error));
  }
  if (run.in_process()) {
    texts.push_back(fmt::format("The phases are those of replica 0 of {}; all compute alike.", run.workers()));
  }
  if (run.state == RunState::broken) {
    texts.push_back(fmt::format("The run left no summary{}: it was killed or its machine went down after step {}.",
                                run.went_on ? " since it was resumed" : "", count_text(run.steps())));
  }
  if (run.state == RunState::running)
    texts.push_back(fmt::format("The run is still training, at step {}.", count_text(run.steps())));
  return texts;
}

}  // namespace lockstep::records
