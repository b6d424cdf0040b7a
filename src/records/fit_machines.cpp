#include "records/fit_machines.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::records {
namespace {

/// Longer steps hold many periods: then a quota is a slower processor, which is quicker to simulate.
constexpr double kLongStep = 2;
/// A token bucket of an emulated link passes this much at once.
constexpr double kBurstSeconds = 0.002;
/// Of a machine whose cores are not recorded: nothing waits for one.
constexpr double kManyCores = 1024;
constexpr double kLeastBurst = 128 * 1024;

struct HostUse {
  size_t node = 0;
  double busy = 0;  ///< cores in use by all programs
  double own = 0;   ///< by this run's roles
  double cores = 1;
  double threads = 0;  ///< computing threads of the run's roles
  bool known = true;   ///< its cores are recorded, and all roles were sampled
};

double threads_of_worker(const RunRecord& run, const RoleRecord& role) {
  const double own = role.summary.number("threads");
  const double threads = known(own) ? own : run.threads();
  return std::clamp(known(threads) ? threads : 1.0, 1.0, 4096.0);
}

class Machines {
 public:
  Machines(const RunRecord& run, const RunFacts& facts, Fit& fit) : run_(run), facts_(facts), fit_(fit) {}

  MachineNotes set() {
    fit_.links_known = !run_.nodes.empty();
    if (!run_.nodes.empty() && run_.nodes.front().machine_cores > 0) {
      fit_.training.machine_cores = std::clamp(run_.nodes.front().machine_cores, 1.0, 1e5);
    }
    longest_ = 0;
    for (const Pace& pace : facts_.workers) longest_ = std::max(longest_, pace.per_step(pace.seconds));
    for (const Pace& pace : facts_.workers) add_worker(*run_.role(pace.role));
    const size_t copies = run_.in_process() ? run_.workers() : 1;
    while (fit_.workers.size() < copies) add_worker(*run_.role(facts_.workers.front().role));
    if ((run_.workers() > 1 || run_.servers() > 0) && !run_.all_reduce()) add_servers();
    auto& training = fit_.training;
    training.strategy = !training.servers.empty()     ? predict::Strategy::servers
                        : training.workers.size() > 1 ? predict::Strategy::all_reduce
                                                      : predict::Strategy::local;
    if (run_.nodes.empty() && !quota()) add_other_programs();
    notes_.separate = run_.nodes.empty() && hosts_.size() > 1;
    if (notes_.separate) guess_links();
    return notes_;
  }

 private:
  [[nodiscard]] bool quota() const { return run_.number_setting("cpu_quota") > 0; }

  void add_worker(const RoleRecord& role) {
    const double threads = threads_of_worker(run_, role);
    predict::Worker worker;
    worker.node = place(role, threads);
    worker.work.threads = threads;
    fit_.training.workers.push_back(worker);
    fit_.workers.push_back(role.role);
    notes_.pace.push_back(pace_of_threads(role, threads));
  }

  void add_servers() {
    for (const RoleRecord& role : run_.roles) {
      if (!role.serves()) continue;
      fit_.training.servers.push_back({.node = place(role, 1)});
      fit_.servers.push_back(role.role);
    }
    if (!fit_.training.servers.empty()) return;
    fit_.training.servers.push_back({.node = 0});  // its folder is lost
    fit_.servers.emplace_back("ps:0");
  }

  /// Returns the progress of a worker's threads while they compute: below 1 if they wait for cores. Its CPU time is of
  /// all that it did: also of evaluations, checkpoints and logs; and while it waits for data, the loader computes.
  [[nodiscard]] double pace_of_threads(const RoleRecord& role, double threads) const {
    if (role.samples < kEnoughSamples) return 1;
    for (const Pace& pace : facts_.workers) {
      if (pace.role != role.role) continue;
      const double computing = pace.share(pace.compute());
      const double used = cores_used(role, began_steps(role, pace));
      if (!(computing > 0.5) || !known(used)) return 1;
      const double wanted =
          threads * pace.share(pace.compute() + pace.evaluation) + pace.share(pace.data + pace.checkpoint + pace.rest);
      return std::clamp(used / wanted, 0.05, 1.0);
    }
    return 1;
  }

  size_t place(const RoleRecord& role, double threads) {
    for (const NodeRecord& node : run_.nodes) {
      if (run_.nodes.size() == 1 || std::find(node.roles.begin(), node.roles.end(), role.role) != node.roles.end()) {
        return emulated(node);
      }
    }
    if (quota()) return add_quota(role.role, std::clamp(run_.number_setting("cpu_quota"), 0.01, 1e4));
    const auto [found, fresh] = hosts_.try_emplace(role.host);
    HostUse& host = found->second;
    if (fresh) {
      const double cores = role.summary.number("resources.cores");
      host.known = known(cores);
      host.cores = std::clamp(host.known ? cores : kManyCores, 0.01, 1e5);
      host.node = add_node(
          {.name = role.host.empty() ? "the machine" : role.host, .cores = host.cores, .link = {.latency = 0}});
    }
    add_use(role, threads, host);
    return host.node;
  }

  static void add_use(const RoleRecord& role, double threads, HostUse& host) {
    const double own = role.resource("cpu_percent").mean;
    const double node = role.resource("node_cpu_percent").mean;
    const double stolen = role.resource("node_steal_percent").mean;
    host.known = host.known && role.samples >= kEnoughSamples && known(own) && known(node);
    host.own += own / 100;
    host.busy = std::max(host.busy, (node + (known(stolen) ? stolen : 0)) / 100 * host.cores);
    host.threads += threads;
  }

  size_t add_quota(const std::string& name, double cores) {
    return add_node({.name = name,
                     .cores = cores,
                     .quota_period = predict::quota_period(cores),
                     .kept = predict::kept_of_quota(cores),
                     .link = {.latency = 0}});
  }

  size_t emulated(const NodeRecord& node) {
    if (const auto found = emulated_.find(node.name); found != emulated_.end()) return found->second;
    predict::Node made{.name = node.name, .cores = node.cores > 0 ? std::min(node.cores, 1e5) : 1};
    made.link.latency = known(node.delay_seconds) ? std::min(node.delay_seconds, 10.0) : 0;
    if (node.rate > 0) {
      made.link.rate = std::clamp(node.rate / 8, 100.0, 1e12);
      made.link.burst = std::max(kLeastBurst, made.link.rate * kBurstSeconds);
    }
    made.quota_period = predict::quota_period(made.cores);
    made.kept = predict::kept_of_quota(made.cores);
    return emulated_[node.name] = add_node(std::move(made));
  }

  size_t add_node(predict::Node node) {
    if (node.quota_period > 0) {
      notes_.limited = true;
      if (longest_ > kLongStep) {
        node.quota_period = 0;
        node.speed = std::min(1.0, node.cores);
        node.cores = std::max(1.0, node.cores);
      }
    }
    fit_.training.nodes.push_back(std::move(node));
    return fit_.training.nodes.size() - 1;
  }

  /// Other programs want more than they get if the machine is full; how much more, the pace of our threads says.
  void add_other_programs() {
    for (auto& [name, host] : hosts_) {
      notes_.busy = notes_.busy || host.threads > host.cores;
      if (!host.known) continue;
      const double used = std::max(0.0, host.busy - host.own);
      if (!(used > 0.05 * host.cores)) continue;
      double pace = 1;
      for (size_t i = 0; i < fit_.training.workers.size(); ++i) {
        if (fit_.training.workers[i].node == host.node) pace = std::min(pace, notes_.pace[i]);
      }
      const bool full = host.busy > 0.9 * host.cores;
      const double wanted = full ? used / std::max(pace, 0.1) : used;
      fit_.training.nodes[host.node].others = std::min(wanted, 20 * host.cores);
      notes_.busy = notes_.busy || host.busy > 0.7 * host.cores;
    }
  }

  /// A first guess for links that nothing is known about; the fit changes them.
  void guess_links() {
    for (predict::Node& node : fit_.training.nodes) {
      node.link.rate = 1.25e9;
      node.link.latency = 30e-6;
    }
  }

  const RunRecord& run_;
  const RunFacts& facts_;
  Fit& fit_;
  MachineNotes notes_;
  double longest_ = 0;
  std::map<std::string, HostUse> hosts_;
  std::map<std::string, size_t> emulated_;
};

}  // namespace

MachineNotes set_machines(const RunRecord& run, const RunFacts& facts, Fit& fit) {
  return Machines(run, facts, fit).set();
}

}  // namespace lockstep::records
