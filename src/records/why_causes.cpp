// Rules about the time of the training threads, one rule per part of it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "records/format.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

/// A batch is small if fixed costs are this share of a step.
constexpr double kMostlyFixed = 2.0 / 3;
/// CPU of a server at its limit, in percent of one core.
constexpr double kBusyServer = 80;

std::string per_step(const RunFacts& facts, double part) {
  return fmt::format("{} of {} per {}", time_text(facts.all.per_step(part)), time_text(facts.step_seconds), facts.step);
}

Finding computing(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  Finding finding{"compute", all.share(all.compute()), "Computing limited this run.",
                  fmt::format("Computing took {} of the time, {}: forward {}, backward {}, optimizer {}.",
                              share_text(all.share(all.compute())), per_step(facts, all.compute()),
                              share_text(all.share(all.forward)), share_text(all.share(all.backward)),
                              share_text(all.share(all.optimizer)))};
  finding.evidence = {share_evidence("computing", finding.weight),
                      time_evidence("computing, per step", all.per_step(all.compute()))};
  const ResourceUse node = run.chief().resource("node_cpu_percent");
  if (in_step(run) && !slow_one(run, facts).role.empty())
    return finding;  // more cores for everybody would not help the straggler
  if (run.chief().samples >= kEnoughSamples && node.mean < 60) {
    const std::string now = known(run.threads()) ? fmt::format(" (now {})", count_text(run.threads())) : "";
    finding.suggestions.push_back(fmt::format(
        "The node's CPU was {} busy: more --threads{} or workers would use the rest.", percent_text(node.mean), now));
  } else {
    finding.suggestions.emplace_back("More workers on other machines, a faster machine, or a smaller model.");
  }
  return finding;
}

Finding data_wait(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  Finding finding{"data", all.share(all.data), "Waiting for data limited this run.",
                  fmt::format("Waiting for batches took {} of the time, {}", share_text(all.share(all.data)),
                              per_step(facts, all.data))};
  finding.evidence = {share_evidence("waiting for data", finding.weight)};
  const auto most = std::max_element(facts.workers.begin(), facts.workers.end(),
                                     [](const Pace& a, const Pace& b) { return a.share(a.data) < b.share(b.data); });
  if (facts.workers.size() > 1) {
    finding.sentence += fmt::format("; most at {}, {}", most->role, share_text(most->share(most->data)));
  }
  finding.sentence += ".";
  const RoleRecord* role = run.role(most->role);
  const ResourceUse read = role == nullptr ? ResourceUse{} : role->resource("disk_read");
  if (read.mean > 1e6) {
    finding.evidence.push_back({"read from disk", read.mean, speed_text(read.mean)});
    finding.suggestions.push_back(fmt::format(
        "{} were read from the disk meanwhile. Data that fits into memory is read only once.", speed_text(read.mean)));
  } else {
    finding.suggestions.emplace_back("A separate thread makes the batches: leave it a core, with fewer --threads.");
  }
  return finding;
}

const RoleRecord* busiest_server(const RunRecord& run) {
  const RoleRecord* busiest = nullptr;
  for (const RoleRecord& role : run.roles) {
    if (!role.serves() || role.samples < kEnoughSamples || !known(role.resource("cpu_percent").mean)) continue;
    if (busiest == nullptr || role.resource("cpu_percent").mean > busiest->resource("cpu_percent").mean)
      busiest = &role;
  }
  return busiest;
}

/// Describes a link that is full: a link of 1 Gbit/s carries 0.94 Gbit/s. Empty if the speed fits no link.
std::string full_link(double bytes_per_second) {
  const double gigabits = bytes_per_second * 8 / 1e9;
  for (const int link : {1, 10, 25, 40, 100}) {
    if (gigabits > 0.75 * link && gigabits < 1.02 * link) {
      return fmt::format("{:.2f} Gbit/s, about what a link of {} Gbit/s carries", gigabits, link);
    }
  }
  return "";
}

/// Suggests settings that send fewer bytes, unless the run has them already.
void suggest_fewer_bytes(const RunRecord& run, Finding& finding) {
  if (run.setting("wire") != "bf16") finding.suggestions.emplace_back("Halve the bytes: --wire bf16.");
}

void judge_server(const RunRecord& run, const RoleRecord& server, Finding& finding) {
  const double cpu = server.resource("cpu_percent").mean;
  const double in = server.resource("wire_received").mean;
  const double out = server.resource("wire_sent").mean;
  const double net = std::max(server.resource("net_received").p95, server.resource("net_sent").p95);
  finding.evidence.push_back({server.role + ", CPU (100 %: one core)", cpu, percent_text(cpu)});
  if (known(in)) finding.evidence.push_back({server.role + ", received", in, speed_text(in)});
  if (known(out)) finding.evidence.push_back({server.role + ", sent", out, speed_text(out)});
  const std::string traffic =
      known(in + out) ? fmt::format(", {} in and {} out", speed_text(in), speed_text(out)) : std::string();
  if (cpu >= kBusyServer) {
    finding.cause = "servers";
    finding.headline = fmt::format("The parameter server {} limited this run.", server.role);
    finding.sentence += fmt::format(" {} used {} of a core{}: the server is the limit, rather than the network.",
                                    server.role, percent_text(cpu), traffic);
    finding.suggestions = {
        fmt::format("Use more servers (--ps {}), or --strategy allreduce, which needs none.", run.servers() + 1)};
    suggest_fewer_bytes(run, finding);
  } else if (const std::string link = full_link(net); !link.empty()) {
    finding.cause = "network";
    finding.headline = "The network to the parameter servers limited this run.";
    finding.sentence +=
        fmt::format(" The network of {} carried up to {}, at {} of a core.", server.role, link, percent_text(cpu));
    finding.suggestions = {fmt::format("Spread the servers over several hosts: --ps {}.", run.servers() + 1)};
    suggest_fewer_bytes(run, finding);
  } else {
    finding.sentence += fmt::format(" {} was not busy ({} of a core{}): the round trip takes the time.", server.role,
                                    percent_text(cpu), traffic);
  }
}

Finding server_exchange(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  const double part = all.push + all.pull;
  Finding finding{"exchange", all.share(part), "Exchanging with the parameter servers limited this run.",
                  fmt::format("Exchanging with the parameter servers took {} of the time, {}: push {}, pull {}.",
                              share_text(all.share(part)), per_step(facts, part), share_text(all.share(all.push)),
                              share_text(all.share(all.pull)))};
  finding.evidence = {share_evidence("push", all.share(all.push)), share_evidence("pull", all.share(all.pull))};
  finding.suggestions = {"Make fewer, larger exchanges: a larger --batch, or --accumulate."};
  if (const RoleRecord* server = busiest_server(run)) judge_server(run, *server, finding);
  return finding;
}

/// Returns bytes per second while a member was sending, whether hidden behind computing or not.
double all_reduce_speed(const RunRecord& run, const RunFacts& facts) {
  const double bytes = run.summary().number("communication.bytes_per_step");
  const double sending = run.summary().number("communication.transfer_seconds");
  if (sending > 0) return bytes * facts.workers.front().steps / sending;
  return bytes / facts.all.per_step(facts.all.transfer);
}

Finding all_reduce_transfer(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  Finding finding{"network", all.share(all.transfer), "Exchanging gradients by all-reduce limited this run.",
                  fmt::format("All-reduce took {} of the time, {}, without the part hidden behind computing",
                              share_text(all.share(all.transfer)), per_step(facts, all.transfer))};
  finding.evidence = {share_evidence("all-reduce", finding.weight)};
  const double bytes = run.summary().number("communication.bytes_per_step");
  const double overlapped = run.summary().number("communication.overlapped");
  if (known(bytes)) {
    finding.sentence += fmt::format("; {} were {} per step, at {}", amount_text(bytes),
                                    run.in_process() ? "summed" : "sent", speed_text(all_reduce_speed(run, facts)));
    finding.evidence.push_back({run.in_process() ? "summed per step" : "sent per step", bytes, amount_text(bytes)});
  }
  if (known(overlapped)) finding.evidence.push_back(share_evidence("of the transfer behind computing", overlapped));
  finding.sentence += ".";
  if (run.in_process()) {
    finding.headline = "Adding up the replicas' gradients limited this run.";
    finding.suggestions = {"Use a larger --batch, or fewer --replicas with more --threads each."};
  } else {
    finding.suggestions = {"Try other buckets (--autotune), fewer bytes (--top-k), or a larger --batch."};
    suggest_fewer_bytes(run, finding);
  }
  return finding;
}

/// Blames a straggler that is slow in every step.
void blame(const RunRecord& run, const RunFacts& facts, const SlowOne& slow, Finding& finding) {
  finding.headline = fmt::format("Waiting for {} limited this run.", slow.role);
  finding.sentence += fmt::format(" They waited for {}, which {} {} as long as the others: {} against {} per step.",
                                  slow.role, slow.data ? "waits for data and takes" : "takes", times_text(slow.factor),
                                  time_text(slow.own), time_text(slow.others));
  finding.suggestions = {
      fmt::format("Check what else runs on the machine of {}, and give it less work or a faster machine.", slow.role)};
  if (!run.all_reduce() && facts.workers.size() > 1) {
    finding.suggestions.emplace_back(
        fmt::format("Update without the last worker (--aggregate {}), or use --mode async.", facts.workers.size() - 1));
  }
  // The share of the step that would be saved if the straggler were as fast as the others.
  const double whole_step = facts.all.per_step(facts.all.seconds);
  if (in_step(run) && whole_step > 0) finding.weight = std::max(finding.weight, (slow.own - slow.others) / whole_step);
}

/// Names the worker that the others wait for when none is slow by itself: the one that waits much less than the rest.
void say_who_waits(const RunRecord& run, const RunFacts& facts, Finding& finding) {
  const auto less = [](const Pace& a, const Pace& b) { return a.share(a.others) < b.share(b.others); };
  const auto [least, most] = std::minmax_element(facts.workers.begin(), facts.workers.end(), less);
  const double low = least->share(least->others);
  const double high = most->share(most->others);
  if (low >= 0.6 * high) {
    finding.sentence += fmt::format(" All of them waited about as much ({} to {}): they take turns at being last.",
                                    share_text(low), share_text(high));
  } else {
    finding.sentence += fmt::format(" {} waited least, {} of its time against up to {}: the others waited for it.",
                                    least->role, share_text(low), share_text(high));
    finding.headline = fmt::format("Waiting for other workers, mostly {}, limited this run.", least->role);
  }
  finding.suggestions = {run.all_reduce()
                             ? "Use larger batches: their times vary less."
                             : "Use larger batches, whose times vary less, or --mode async, which does not wait."};
}

Finding waiting_for_others(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  Finding finding{"others", all.share(all.others), "Waiting for other workers limited this run.",
                  fmt::format("Workers waited for each other for {} of the time, {}.",
                              share_text(all.share(all.others)), per_step(facts, all.others))};
  for (const Pace& pace : facts.workers) {
    finding.evidence.push_back(time_evidence(pace.role + ", own time per step", pace.own_per_step()));
  }
  if (const SlowOne slow = slow_one(run, facts); !slow.role.empty()) {
    blame(run, facts, slow, finding);
  } else if (facts.workers.size() > 1) {
    say_who_waits(run, facts, finding);
  }
  for (const std::string& line : run.summary().stragglers) finding.evidence.push_back({line, kUnknown, ""});
  return finding;
}

Finding aside(const RunRecord& run, const Pace& all) {
  Finding finding{"aside", all.share(all.aside()), "Evaluations and checkpoints limited this run.",
                  fmt::format("Evaluations took {} of the time and checkpoints {}, {} in all.",
                              share_text(all.share(all.evaluation)), share_text(all.share(all.checkpoint)),
                              time_text(all.aside()))};
  finding.evidence = {share_evidence("evaluation", all.share(all.evaluation)),
                      share_evidence("checkpoint", all.share(all.checkpoint))};
  const std::string elsewhere = run.servers() > 0 && !run.has_evaluator() ? ", or elsewhere (--evaluator)" : "";
  finding.suggestions = {all.evaluation >= all.checkpoint
                             ? fmt::format("Evaluate less often (--eval-every) or on less (--test-limit){}.", elsewhere)
                             : "Write checkpoints less often (--checkpoint-every)."};
  return finding;
}

Finding rest(const RunFacts& facts) {
  const Pace& all = facts.all;
  return {"rest",
          all.share(all.rest),
          "Overhead around the steps limited this run.",
          fmt::format("Logs, displays and everything else around the steps took {} of the time, {}.",
                      share_text(all.share(all.rest)), per_step(facts, all.rest)),
          {share_evidence("rest", all.share(all.rest))},
          {"Use a larger --batch, or write logs and summaries less often (--log-every, --summary-every)."}};
}

/// Finds a batch so small that fixed costs are most of a step, while nothing else is at its limit.
std::optional<Finding> small_batch(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  const bool waits = all.others > all.exchange() + all.rest;  // waits for other workers rather than for the exchange
  const double fixed = all.exchange() + all.rest + (waits ? 0 : all.others);
  const double scaling = all.compute() + all.data;
  const double share = fixed / (fixed + scaling);
  if ((in_step(run) && !slow_one(run, facts).role.empty()) || waits || !(share >= kMostlyFixed)) return std::nullopt;
  if (run.all_reduce() && !full_link(all_reduce_speed(run, facts)).empty()) return std::nullopt;
  const double larger = fixed / (fixed + 4 * scaling);
  const std::string batch = run.setting("batch");
  Finding finding{"batch", all.share(fixed) + 0.01, "The batch is too small for the fixed costs of each step.",
                  fmt::format("A {} takes {}, of which {} ({}) are fixed: exchanging, waiting and the rest, at any "
                              "batch{}. With four times the batch the fixed part would be about {}.",
                              facts.step, time_text(facts.step_seconds), time_text(all.per_step(fixed)),
                              share_text(share), batch.empty() ? "" : " (now " + batch + ")", share_text(larger))};
  finding.evidence = {time_evidence(facts.step, facts.step_seconds), share_evidence("fixed costs of a step", share),
                      share_evidence("fixed costs with four times the batch, estimated", larger)};
  finding.suggestions = {"Use a larger --batch (with a learning rate to match), or --accumulate."};
  return finding;
}

}  // namespace

std::vector<Finding> time_findings(const RunRecord& run, const RunFacts& facts) {
  const Pace& all = facts.all;
  std::vector<Finding> findings{computing(run, facts), data_wait(run, facts), aside(run, all), rest(facts)};
  if (all.push + all.pull > 0) findings.push_back(server_exchange(run, facts));
  if (all.transfer > 0) findings.push_back(all_reduce_transfer(run, facts));
  if (all.others > 0) findings.push_back(waiting_for_others(run, facts));
  const bool at_a_limit = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.cause == "servers" || (finding.cause == "network" && !run.all_reduce());
  });
  if (at_a_limit) return findings;
  if (auto small = small_batch(run, facts)) findings.push_back(std::move(*small));
  return findings;
}

}  // namespace lockstep::records
