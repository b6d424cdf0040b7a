// What a run's steps spend time on: the fitted model without one thing after the other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "predict/counterfactual.h"
#include "records/format.h"
#include "records/why_advice.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

using predict::Resource;
using predict::Training;

/// Other programs that use this share of the cores make threads wait for their turn.
constexpr double kManyPrograms = 0.15;
/// A share of a step that is worth naming if the model does not explain it.
constexpr double kMuchUnexplained = 0.1;

std::string rate_text(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (bits >= 1e9) return fmt::format("{:.3g} Gbit/s", bits / 1e9);
  return bits >= 1e6 ? fmt::format("{:.3g} Mbit/s", bits / 1e6) : fmt::format("{:.3g} kbit/s", bits / 1e3);
}

class Causes {
 public:
  Causes(const RunRecord& run, const RunFacts& facts, const Fit& fit)
      : run_(run), facts_(facts), fit_(fit), advice_(run, fit) {}

  std::vector<Finding> all() {
    network();
    servers();
    programs();
    stragglers();
    cores();
    threads();
    simple(Resource::data);
    for (Finding& finding : aside_findings(run_, facts_, fit_)) findings_.push_back(std::move(finding));
    simple(Resource::rest);
    own_work();
    unexplained();
    return std::move(findings_);
  }

 private:
  struct Freed {
    double step = 0;  ///< seconds of a step
    double cost = 0;  ///< share of a step
  };

  [[nodiscard]] Freed freed(const Training& changed) const {
    const double ratio = std::min(1.0, advice_.step_of(changed) / fit_.prediction.step);
    return {facts_.step_seconds * ratio, 1 - ratio};
  }

  /// Returns the same, with what the model does not explain, for causes that also delay at random: on a full machine
  /// threads wait for their turn.
  Freed freed_with_delays(const Training& changed, double before, bool full) {
    const double ratio = std::min(1.0, advice_.step_of(changed) / before);
    const double more = full && !delays_said_ && fit_.prediction.step < fit_.step ? fit_.unexplained : 0;
    delays_said_ = delays_said_ || more > 0;
    return {facts_.step_seconds * ratio * (1 - more), 1 - ratio * (1 - more)};
  }

  /// Returns the start of a headline: "The network cost 62 % of each step".
  static std::string cost_text(const std::string& what, const Freed& freed) {
    return fmt::format("{} cost {} of each step", what, share_text(freed.cost));
  }

  Finding& add(const char* cause, std::string who, const Freed& freed, std::string headline) {
    findings_.push_back(
        {.cause = {cause, std::move(who), of_time(freed.cost), freed.step}, .headline = std::move(headline)});
    return findings_.back();
  }

  /// Returns a share of a step as a share of the training's time, to which evaluations and checkpoints belong.
  [[nodiscard]] double of_time(double share) const { return share * fit_.step / fit_.whole(); }

  /// Returns the roles on a node, as text.
  [[nodiscard]] std::string roles_on(size_t node) const {
    std::string text;
    const auto add_role = [&](const std::string& role) { text += (text.empty() ? "" : " and ") + role; };
    for (size_t i = 0; i < fit_.workers.size(); ++i) {
      if (fit_.training.workers[i].node == node) add_role(fit_.workers[i]);
    }
    for (size_t i = 0; i < fit_.servers.size(); ++i) {
      if (fit_.training.servers[i].node == node) add_role(fit_.servers[i]);
    }
    return text.empty() ? fit_.training.nodes[node].name : text;
  }

  void network() {
    const Freed free = freed(without(fit_.training, Resource::network));
    if (free.cost < kLeastCost) return;
    const auto& nodes = fit_.training.nodes;
    const auto slower = [](const predict::Node& a, const predict::Node& b) { return a.link.rate < b.link.rate; };
    const auto slowest = std::min_element(nodes.begin(), nodes.end(), slower);
    std::vector<double> others;
    for (auto it = nodes.begin(); it != nodes.end(); ++it) {
      if (it != slowest) others.push_back(it->link.rate);
    }
    std::sort(others.begin(), others.end());
    const bool one = !others.empty() && slowest->link.rate < 0.6 * others[others.size() / 2];
    const std::string who = one ? roles_on(static_cast<size_t>(slowest - nodes.begin())) : "";
    std::string link = slowest->link.rate < 1e11 ? " at " + rate_text(slowest->link.rate) : "";
    if (slowest->link.latency >= 100e-6) link += fmt::format(", delayed by {}", time_text(slowest->link.latency));
    Finding& finding =
        add("network", who, free,
            fmt::format("{}: {} each way{}.", cost_text(one ? "The link of " + who : "The network", free),
                        amount_text(fit_.prediction.sent), link));
    if (!fit_.links_known) finding.sentence = "The rate is that of the model; the run did not record it.";
    finding.evidence = {share_evidence("network", free.cost),
                        {"sent by a worker per step", fit_.prediction.sent, amount_text(fit_.prediction.sent)}};
    finding.suggestions = advice_.fewer_bytes();
  }

  void servers() {
    if (fit_.servers.empty()) return;
    const Freed all = freed(without(fit_.training, Resource::servers));
    if (all.cost < kLeastCost) return;
    Freed most;
    size_t who = 0;
    for (size_t i = 0; i < fit_.servers.size(); ++i) {
      Training changed = fit_.training;
      changed.servers[i].cost = 0;
      const Freed free = freed(changed);
      if (i == 0 || free.cost > most.cost) {
        most = free;
        who = i;
      }
    }
    const bool one = fit_.servers.size() == 1 || most.cost > 0.7 * all.cost;
    const Freed& free = one ? most : all;
    const predict::Node& node = fit_.training.nodes[fit_.training.servers[who].node];
    const double work = fit_.prediction.servers[who] * fit_.prediction.step;
    const std::string name = one ? "The parameter server " + fit_.servers[who] : "The parameter servers";
    Finding& finding = add("servers", one ? fit_.servers[who] : "", free,
                           fmt::format("{}: {} of CPU time per step{}.", cost_text(name, free), time_text(work),
                                       node.quota_period > 0 ? fmt::format(" on {:.2g} cores", node.cores) : ""));
    finding.removable = busy(who);
    finding.evidence = {share_evidence(name.substr(4), free.cost)};
    if (const RoleRecord* role = run_.role(fit_.servers[who]); role != nullptr) {
      const double cpu = role->resource("cpu_percent").mean;
      if (known(cpu)) finding.evidence.push_back({role->role + ", CPU (100 %: one core)", cpu, percent_text(cpu)});
    }
    finding.suggestions = advice_.stronger_servers(who);
  }

  /// Returns whether a server is near its limit. Otherwise what it costs is part of an exchange's fixed costs.
  [[nodiscard]] bool busy(size_t server) const {
    constexpr double kBusy = 0.8;
    const predict::Node& node = fit_.training.nodes[fit_.training.servers[server].node];
    return fit_.prediction.servers[server] > kBusy * std::min(node.cores - node.kept, 1.0);
  }

  void programs() {
    Training changed = without(fit_.training, Resource::programs);
    const auto& nodes = fit_.training.nodes;
    const auto most = std::max_element(nodes.begin(), nodes.end(), [](const predict::Node& a, const predict::Node& b) {
      return a.others / a.cores < b.others / b.cores;
    });
    if (!(most->others > 0)) return;
    changed.costs.wake = std::min(changed.costs.wake, kPlainWake);
    const double busy = used_by_others(*most);
    const Freed free = freed_with_delays(changed, fit_.prediction.step, busy >= kManyPrograms * most->cores);
    if (free.cost < kLeastCost) return;
    const double aside = (fit_.evaluation + fit_.checkpoint) / fit_.whole();
    Finding& finding = add(
        "programs", most->name, free,
        fmt::format("{}: they used {:.2g} of its {:.3g} core{}.", cost_text("Other programs on " + most->name, free),
                    busy, most->cores, most->cores == 1 ? "" : "s"));
    if (fit_.training.workers.front().node == static_cast<size_t>(most - nodes.begin()))
      finding.cause.cost += free.cost * aside;  // evaluations are as slow
    finding.evidence = {share_evidence(most->name + ", CPU of other programs", busy / most->cores)};
    finding.suggestions = {
        fmt::format("Use a machine where nothing else runs: {}.", gain_text(facts_.step_seconds, free.step))};
  }

  [[nodiscard]] double used_by_others(const predict::Node& node) const {
    double busy = 0;
    double own = 0;
    for (const RoleRecord& role : run_.roles) {
      if ((role.host.empty() ? "the machine" : role.host) != node.name) continue;
      const double stolen = role.resource("node_steal_percent").mean;
      busy = std::max(busy, (role.resource("node_cpu_percent").mean + (known(stolen) ? stolen : 0)) / 100 * node.cores);
      if (known(role.resource("cpu_percent").mean)) own += role.resource("cpu_percent").mean / 100;
    }
    return std::clamp(busy - own, 0.0, node.cores);
  }

  /// Workers that differ in their work or cores, rather than in their links.
  [[nodiscard]] Training even(const Training& training) const {
    Training changed = without(training, Resource::stragglers);
    for (size_t i = 0; i < changed.nodes.size(); ++i) changed.nodes[i].link = training.nodes[i].link;
    return changed;
  }

  /// Returns ", on 0.2 cores" for a worker on a smaller node than the others; otherwise nothing.
  [[nodiscard]] std::string fewer_cores(const std::string& role) const {
    double own = 0;
    double others = 0;
    for (size_t i = 0; i < fit_.workers.size(); ++i) {
      const double cores = fit_.training.nodes[fit_.training.workers[i].node].cores;
      if (fit_.workers[i] == role) own = cores;
      if (fit_.workers[i] != role) others = std::max(others, cores);
    }
    return own > 0 && own < others ? fmt::format(", on {:.2g} cores instead of {:.2g}", own, others) : "";
  }

  void stragglers() {
    if (fit_.workers.size() < 2 || !in_step(run_)) return;
    const Freed free = freed(even(fit_.training));
    const Freed turns = freed(without(fit_.training, Resource::unevenness));
    const SlowOne slow = slow_one(run_, facts_);
    const auto& workers = fit_.training.workers;
    const auto stopped = std::max_element(workers.begin(), workers.end(),
                                          [](const auto& a, const auto& b) { return a.work.pause < b.work.pause; });
    if (free.cost >= kLeastCost && stopped->work.pause > 0) {
      // Stops are irregular; what they cost beyond their mean, the model does not see.
      const Freed all = freed_with_delays(even(fit_.training), fit_.prediction.step, true);
      const std::string& role = fit_.workers[static_cast<size_t>(stopped - workers.begin())];
      Finding& finding = add("others", role, all,
                             fmt::format("{}: it was stopped now and then, for {} per step on average.",
                                         cost_text("Waiting for " + role, all), time_text(stopped->work.pause)));
      finding.suggestions = advice_.without_straggler(role, 1 - all.cost);
    } else if (free.cost >= kLeastCost && !slow.role.empty()) {
      Finding& finding = add(
          "others", slow.role, free,
          fmt::format("{}: it {} {} as long as the others, {} against {} per step{}.",
                      cost_text("Waiting for " + slow.role, free), slow.data ? "waits for data and takes" : "takes",
                      times_text(slow.factor), time_text(slow.own), time_text(slow.others), fewer_cores(slow.role)));
      finding.suggestions = advice_.without_straggler(slow.role, 1 - free.cost);
    } else if (turns.cost >= kLeastCost) {
      Finding& finding = add("others", "", turns,
                             fmt::format("{}: they take turns at being last.",
                                         cost_text("Waiting for the slowest worker of a step", turns)));
      finding.removable = false;  // steps always vary
      finding.suggestions = {run_.all_reduce() ? "Use larger batches: their times vary less."
                                               : "Use larger batches, whose times vary less, or --mode async."};
    } else {
      return;
    }
    for (const Pace& pace : facts_.workers) {
      findings_.back().evidence.push_back(time_evidence(pace.role + ", own time per step", pace.own_per_step()));
    }
    for (const std::string& line : run_.summary().stragglers) {
      findings_.back().evidence.push_back({line, kUnknown, ""});
    }
  }

  /// More threads of the run than the machine has cores, in several roles.
  void cores() {
    if (!run_.nodes.empty() || run_.number_setting("cpu_quota") > 0) return;
    for (size_t n = 0; n < fit_.training.nodes.size(); ++n) {
      const predict::Node& node = fit_.training.nodes[n];
      double threads = 0;
      size_t roles = 0;
      for (const predict::Worker& worker : fit_.training.workers) {
        if (worker.node == n) threads += worker.work.threads;
        if (worker.node == n) ++roles;
      }
      for (const predict::Server& server : fit_.training.servers) {
        if (server.node == n) threads += 1;
        if (server.node == n) ++roles;
      }
      if (roles < 2 || threads <= node.cores) continue;
      Training alone = without(fit_.training, Resource::programs);
      const double before = advice_.step_of(alone);
      alone.nodes[n].cores = threads;
      alone.costs.wake = std::min(alone.costs.wake, kPlainWake);
      const Freed free = freed_with_delays(alone, before, true);
      if (free.cost < kLeastCost) continue;
      Finding& finding = add(
          "cpu", node.name, free,
          fmt::format("{}: {} roles with {} threads share {} core{}.", cost_text("Too few cores on " + node.name, free),
                      roles, count_text(threads), count_text(node.cores), node.cores == 1 ? "" : "s"));
      for (const RoleRecord& role : run_.roles) {
        const double cpu = role.resource("cpu_percent").mean;
        if (known(cpu)) finding.evidence.push_back({role.role + ", CPU (100 %: one core)", cpu, percent_text(cpu)});
      }
      finding.suggestions = {
          fmt::format("Use fewer roles or --threads on this machine, or more machines: {} with {} "
                      "cores.",
                      gain_text(facts_.step_seconds, free.step), count_text(threads))};
    }
  }

  /// One worker with more threads than cores. What that costs, no recorded number says; the bound is that all threads
  /// wait for one that has no core.
  void threads() {
    for (size_t i = 0; i < fit_.workers.size(); ++i) {
      const predict::Worker& worker = fit_.training.workers[i];
      const double cores = std::ceil(fit_.training.nodes[worker.node].cores);
      if (worker.work.threads <= cores) continue;
      const double bound = (1 - cores / worker.work.threads) * facts_.all.share_of_steps(facts_.all.compute());
      Finding& finding = add("threads", fit_.workers[i], {kUnknown, bound},
                             fmt::format("{} computes with {} threads on {} core{}, which can cost up to {} of each "
                                         "step.",
                                         fit_.workers[i], count_text(worker.work.threads), count_text(cores),
                                         cores == 1 ? "" : "s", share_text(bound)));
      finding.suggestions = {fmt::format("Use --threads {}.", count_text(cores))};
      return;
    }
  }

  void simple(Resource resource) {
    const Freed free = freed(without(fit_.training, resource));
    if (free.cost < kLeastCost) return;
    if (resource == Resource::data) return data(free);
    add("rest", "", free,
        fmt::format("{}, {}.", cost_text("Logs, displays and the like", free),
                    time_text(facts_.all.per_step(facts_.all.rest))))
        .suggestions = {"Use a larger --batch, or write logs and summaries less often (--log-every, --summary-every)."};
  }

  void data(const Freed& free) {
    const auto& workers = facts_.workers;
    const auto most = std::max_element(workers.begin(), workers.end(),
                                       [](const Pace& a, const Pace& b) { return a.share(a.data) < b.share(b.data); });
    Finding& finding =
        add("data", most->role, free,
            fmt::format("{}: a batch takes {} to make{}.", cost_text("Waiting for data", free),
                        time_text(fit_.training.workers[static_cast<size_t>(most - workers.begin())].work.load),
                        workers.size() > 1 ? ", most at " + most->role : ""));
    finding.evidence = {share_evidence("waiting for data", facts_.all.share_of_steps(facts_.all.data))};
    const RoleRecord* role = run_.role(most->role);
    const double read = role == nullptr ? kUnknown : role->resource("disk_read").mean;
    if (read > 1e6) {
      finding.evidence.push_back({"read from disk", read, speed_text(read)});
      finding.suggestions = {
          fmt::format("{} were read from the disk meanwhile. Data that fits into memory is read "
                      "only once.",
                      speed_text(read))};
    } else {
      finding.suggestions = {"A separate thread makes the batches: leave it a core, with fewer --threads."};
    }
  }

  /// Computing, and what is the same at any batch: what is left without all of the above.
  void own_work() {
    Training bare = fit_.training;
    for (const Resource resource : {Resource::network, Resource::programs, Resource::data, Resource::unevenness}) {
      bare = without(std::move(bare), resource);
    }
    for (size_t i = 0; i < bare.servers.size(); ++i) {
      if (busy(i)) bare.servers[i].cost = 0;
    }
    bare = even(bare);
    bare.costs.wake = std::min(bare.costs.wake, kPlainWake);
    const double once = advice_.step_of(bare);
    const double twice = advice_.step_of(advice_.doubled(bare));
    const double fixed = std::clamp(2 * once - twice, 0.0, once);
    const bool short_of_step = fit_.unexplained > kMuchUnexplained && fit_.prediction.step < fit_.step;
    const double whole = short_of_step ? fit_.step : fit_.prediction.step;
    const auto share = [&](double seconds) { return std::min(1.0, seconds / whole); };
    const auto time = [&](double seconds) { return time_text(share(seconds) * facts_.step_seconds); };
    const double batch_step = advice_.step_of(advice_.doubled(fit_.training)) / 2;  // for as many examples
    const double step = facts_.step_seconds;
    Finding batch{.cause = {"batch", "", of_time(share(fixed)), step * batch_step / fit_.prediction.step},
                  .removable = false};
    batch.headline = fmt::format("The batch is too small: {} of each step ({} of {}) are the same at any batch.",
                                 share_text(share(fixed)), time(fixed), time_text(step));
    batch.sentence = fmt::format("With twice the batch{} an example would take {} less time.",
                                 run_.setting("batch").empty() ? "" : " (now " + run_.setting("batch") + ")",
                                 share_text(std::max(0.0, 1 - batch_step / fit_.prediction.step)));
    batch.evidence = {share_evidence("the same at any batch", share(fixed))};
    batch.suggestions = {fmt::format("Use twice the --batch (with a learning rate to match), or --accumulate 2: {}.",
                                     gain_text(fit_.prediction.step, batch_step))};
    const double grows = share(once - fixed);
    Finding compute{.cause = {"compute", "", of_time(grows), (1 - grows) * step}, .removable = false};
    compute.headline = fmt::format("Computing limited this run: {} of each step, {} of {}.", share_text(grows),
                                   time(once - fixed), time_text(step));
    compute.mention = fmt::format("Computing alone takes {} of it ({}).", time(once - fixed), share_text(grows));
    compute.evidence = {share_evidence("computing", facts_.all.share_of_steps(facts_.all.compute())),
                        time_evidence("computing, per step", facts_.all.per_step(facts_.all.compute()))};
    compute.suggestions = advice_.more_compute();
    findings_.push_back(std::move(compute));
    if (batch.cause.cost >= kLeastCost) findings_.push_back(std::move(batch));
  }

  void unexplained() {
    if (!(fit_.unexplained > kMuchUnexplained) || fit_.prediction.step > fit_.step || delays_said_) return;
    const double more = fit_.unexplained * facts_.step_seconds;
    Finding& finding = add("unexplained", "", {facts_.step_seconds - more, fit_.unexplained},
                           fmt::format("{} of each step ({}) are not explained by its work, messages and links.",
                                       share_text(fit_.unexplained), time_text(more)));
    finding.suggestions = {"Train again with --trace, and look at the trace (`lockstep trace`)."};
  }

  const RunRecord& run_;
  const RunFacts& facts_;
  const Fit& fit_;
  Advice advice_;
  bool delays_said_ = false;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> model_findings(const RunRecord& run, const RunFacts& facts, const Fit& fit) {
  return Causes(run, facts, fit).all();
}

}  // namespace lockstep::records
