// Shortages of the machines, as the monitors saw them, and incidents of the run.
#include <fmt/format.h>

#include <algorithm>

#include "records/format.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

/// Reports roles held back by --cpu-quota. The cores of an emulated node are its intended size: there the phases
/// decide.
void add_quota(const RunRecord& run, const RunFacts& facts, std::vector<Finding>& findings) {
  if (!run.nodes.empty()) return;
  constexpr double kHeldBack = 0.05;
  double trained = kUnknown;  // seconds that throttling.json covers: the last session
  for (const Pace& pace : facts.workers) trained = std::fmax(trained, pace.seconds);
  Finding finding{.cause = {"quota", "", 0}, .headline = ""};
  for (const auto& [role, held] : run.throttling) {
    if (!(held.seconds / trained >= kHeldBack)) continue;  // nor if the time is not known
    const double share = std::min(1.0, held.seconds / trained);
    finding.evidence.push_back(share_evidence(role + ", held back by its quota", share));
    if (share > finding.cause.cost) finding.cause.who = role;
    finding.cause.cost = std::max(finding.cause.cost, share);
  }
  if (finding.cause.who.empty()) return;
  const Throttling& held = run.throttling.find(finding.cause.who)->second;
  const std::string quota = run.setting("cpu_quota");
  finding.headline = fmt::format("The CPU quota cost {} of each step.", share_text(finding.cause.cost));
  finding.sentence =
      fmt::format("{} was held back by its CPU quota{} for {} of the time, in {} of {} periods.", finding.cause.who,
                  quota.empty() ? "" : fmt::format(" of {} cores", quota), share_text(finding.cause.cost),
                  count_text(held.throttled_periods), count_text(held.periods));
  finding.suggestions = {fmt::format("Use a larger --cpu-quota{}, or none.", quota.empty() ? "" : " than " + quota)};
  findings.push_back(std::move(finding));
}

void add_memory(const RoleRecord& role, std::vector<Finding>& findings) {
  constexpr double kManyFaults = 20;  // per second; each is a wait for the disk
  constexpr double kNearlyFull = 0.92;
  const double faults = role.resource("major_faults").mean;
  if (faults >= kManyFaults) {
    findings.push_back({.cause = {"memory", role.role, 1},
                        .headline = fmt::format("{} was short of memory.", role.role),
                        .sentence = fmt::format("{} waited for {} pages a second to come from the disk (major faults).",
                                                role.role, count_text(faults)),
                        .evidence = {{role.role + ", major faults per second", faults, count_text(faults)}},
                        .suggestions = {"Keep less in memory (a smaller --batch or --train-limit), or use a machine "
                                        "with more."}});
  }
  const double used = role.resource("node_memory_used").max;
  const double total = role.summary.number("resources.memory_bytes");
  if (known(total) && total > 0 && used / total >= kNearlyFull) {
    findings.push_back(
        {.cause = {"memory", role.role, 0.12},
         .headline = fmt::format("Memory was nearly full ({}).", share_text(used / total)),
         .sentence = fmt::format("{} of the {} of memory where {} ran were in use at the peak, {} by it.",
                                 share_text(used / total), amount_text(total), role.role,
                                 amount_text(role.resource("rss_bytes").max)),
         .evidence = {share_evidence("memory of the node in use", used / total)}});
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
  add_quota(run, facts, findings);
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
