// Measures a run, field by field. Unknown fields are left out.
#include <algorithm>
#include <cmath>
#include <set>

#include "lab/fields.h"
#include "records/statistics.h"

namespace lockstep::lab {
namespace {

using records::known;
using records::kUnknown;
using records::RoleRecord;
using records::RunRecord;

constexpr size_t kLeastPoints = 4;

void put(Measured& values, const char* name, double value) {
  if (known(value)) values[name] = value;
}

double get(const Measured& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? kUnknown : found->second;
}

/// Divides; NaN if the divisor is 0.
double over(double a, double b) { return b > 0 ? a / b : kUnknown; }

/// Returns whether nodes have their own interfaces, which count the traffic between roles.
bool has_nodes(const RunRecord& run) {
  if (!run.nodes.empty()) return true;
  std::set<std::string> hosts;
  for (const RoleRecord& role : run.roles) hosts.insert(role.host);
  hosts.erase("");
  return hosts.size() > 1;
}

/// Returns the mean bend of a curve relative to its mean: 0 for a straight line.
double roughness(const std::vector<double>& curve) {
  if (curve.size() < kLeastPoints) return kUnknown;
  double bends = 0;
  for (size_t i = 1; i + 1 < curve.size(); ++i) bends += std::abs(curve[i + 1] - 2 * curve[i] + curve[i - 1]);
  return over(bends / static_cast<double>(curve.size() - 2), records::mean(curve));
}

double loss_roughness(const records::CsvTable& evals, const records::CsvTable& steps) {
  const std::vector<double> evaluated = records::known_of(evals.column("loss"));
  return roughness(evaluated.size() >= kLeastPoints ? evaluated : records::known_of(steps.column("loss")));
}

/// Returns the time for which the role was monitored.
double watched_seconds(const RoleRecord& role, const RunRecord& run) {
  const double seconds = role.monitor.last("seconds");
  return known(seconds) ? seconds : run.seconds();
}

/// Returns the mean of a column while the run trained. Servers are monitored from before that time.
double mean_of(const RoleRecord& role, const RunRecord& run, std::string_view column) {
  const double begin = role.trains() ? 0 : watched_seconds(role, run) - run.seconds();
  const std::span<const double> times = role.monitor.column("seconds");
  const std::span<const double> values = role.monitor.column(column);
  if (!(begin > 0.2 * run.seconds()) || values.size() != times.size()) return role.resource(column).mean;
  std::vector<double> within;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > begin) within.push_back(values[i]);
  }
  const double mean = records::mean(within);
  return known(mean) ? mean : role.resource(column).mean;
}

double max_of(const RoleRecord& role, std::string_view column) {
  const double most = records::largest(role.monitor.column(column));
  return known(most) ? most : role.resource(column).max;
}

/// Returns the total that a rate of a role amounts to.
double total_of(const RoleRecord& role, const RunRecord& run, std::string_view column) {
  return role.resource(column).mean * watched_seconds(role, run);
}

void measure_phases(const RoleRecord& role, Measured& values) {
  const double all = role.all_phase_seconds();
  const auto share = [&](std::initializer_list<std::string_view> names) {
    double seconds = 0;
    for (const std::string_view name : names) seconds += role.phase_seconds(name);
    return over(seconds, all);
  };
  put(values, "wait_share", share({"others"}));
  put(values, "share_compute", share({"forward", "backward", "optimizer"}));
  put(values, "share_exchange", share({"push", "pull", "transfer"}));
  put(values, "share_data", share({"data"}));
  put(values, "share_evaluation", share({"evaluation", "checkpoint"}));
  put(values, "share_rest", share({"rest"}));
}

void measure_resources(const RoleRecord& role, const RunRecord& run, Measured& values) {
  const bool nodes = has_nodes(run);
  const auto mean = [&](std::string_view column) { return mean_of(role, run, column); };
  put(values, "cpu_percent", mean("node_cpu_percent"));
  put(values, "cpu_max", role.resource("node_cpu_percent").max);
  put(values, "process_cpu_percent", mean("cpu_percent"));
  put(values, "memory", role.peak_memory());
  const double received = mean(nodes ? "net_received" : "wire_received");
  const double sent = mean(nodes ? "net_sent" : "wire_sent");
  put(values, "network_received", received);
  put(values, "network_sent", sent);
  put(values, "network_per_second", received + sent);
  put(values, "loopback_received", mean("lo_received"));
  put(values, "loopback_sent", mean("lo_sent"));
  put(values, "packets_received", mean("net_packets_received"));
  put(values, "packets_sent", mean("net_packets_sent"));
  put(values, "disk_read", mean("disk_read"));
  put(values, "disk_written", mean("disk_written"));
}

double throttled_seconds(const RoleRecord& role, const RunRecord& run) {
  for (const records::NodeRecord& node : run.nodes) {
    if (std::find(node.roles.begin(), node.roles.end(), role.role) != node.roles.end()) return node.throttled_seconds;
  }
  if (run.nodes.size() == 1) return run.nodes.front().throttled_seconds;
  const auto found = run.throttling.find(role.role);
  return found == run.throttling.end() ? kUnknown : found->second.seconds;
}

void measure_trainer(const RoleRecord& role, const RunRecord& run, Measured& values) {
  const records::WorkerRow* row = run.worker(role.role);
  const auto of_row = [&](double records::WorkerRow::*member) { return row == nullptr ? kUnknown : row->*member; };
  const double own_steps = role.summary.number("steps");
  const double iterations = of_row(&records::WorkerRow::iterations);
  put(values, "iterations", known(iterations) ? iterations : own_steps);
  put(values, "examples", of_row(&records::WorkerRow::examples));
  const double finished = of_row(&records::WorkerRow::finished_seconds);
  put(values, "seconds", known(finished) ? finished : role.summary.number("seconds"));
  const bool alone = run.workers() <= 1;
  const double accuracy = of_row(&records::WorkerRow::accuracy);
  const double loss = of_row(&records::WorkerRow::loss);
  put(values, "accuracy", known(accuracy) ? accuracy : (alone ? run.test_accuracy() : role.evals.last("accuracy")));
  put(values, "loss", known(loss) ? loss : (alone ? run.test_loss() : role.evals.last("loss")));
  put(values, "loss_roughness", loss_roughness(role.evals, role.steps));
  put(values, "staleness", of_row(&records::WorkerRow::staleness_mean));
  put(values, "restarts", of_row(&records::WorkerRow::restarts));
  put(values, "examples_per_second", over(get(values, "examples"), get(values, "seconds")));
  measure_resources(role, run, values);
  measure_phases(role, values);
  const double wire = total_of(role, run, "wire_received") + total_of(role, run, "wire_sent");
  put(values, "network_per_step", over(wire, get(values, "iterations")));
  put(values, "throttled_share", over(throttled_seconds(role, run), watched_seconds(role, run)));
}

void measure_servers(const RunRecord& run, Measured& values) {
  std::map<std::string, std::vector<double>> all;
  std::vector<double> most_cpu;
  std::vector<double> most_received;
  double received = 0;
  double sent = 0;
  for (const RoleRecord& role : run.roles) {
    if (!role.serves()) continue;
    const auto mean = [&](std::string_view column) { return mean_of(role, run, column); };
    all["ps_cpu_percent"].push_back(mean("cpu_percent"));
    all["ps_node_cpu_percent"].push_back(mean("node_cpu_percent"));
    all["ps_memory"].push_back(role.peak_memory());
    all["ps_received"].push_back(mean("wire_received"));
    all["ps_sent"].push_back(mean("wire_sent"));
    all["ps_loopback_received"].push_back(mean("lo_received"));
    all["ps_seconds"].push_back(role.all_phase_seconds() - role.phase_seconds("wait"));
    all["ps_wait_share"].push_back(over(role.phase_seconds("wait"), role.all_phase_seconds()));
    most_cpu.push_back(max_of(role, "cpu_percent"));
    most_received.push_back(max_of(role, "wire_received"));
    received += total_of(role, run, "wire_received");
    sent += total_of(role, run, "wire_sent");
  }
  for (const auto& [name, numbers] : all) put(values, name.c_str(), records::mean(numbers));
  put(values, "ps_cpu_max", records::largest(most_cpu));
  put(values, "ps_received_max", records::largest(most_received));
  if (!all.empty()) put(values, "ps_received_over_sent", over(received, sent));
}

/// Returns the bytes that all roles receive, each byte once: by node of its interfaces, or between roles.
double received_by_all(const RunRecord& run) {
  const bool nodes = has_nodes(run);
  std::map<std::string, double> by_place;
  for (const RoleRecord& role : run.roles) {
    const double bytes = total_of(role, run, nodes ? "net_received" : "wire_received");
    double& place = by_place[nodes ? role.host : role.role];
    if (known(bytes)) place = std::max(place, bytes);
  }
  double total = 0;
  for (const auto& [place, bytes] : by_place) total += bytes;
  return total;
}

void measure_whole(const RunRecord& run, Measured& values) {
  const double aside = run.summary().number("aside_seconds");
  const double training = run.seconds() - (known(aside) ? aside : 0);
  const std::string reason = run.summary().text("stop_reason");
  put(values, "accuracy", run.test_accuracy());
  put(values, "loss", run.test_loss());
  put(values, "train_loss", run.train_loss());
  put(values, "best_accuracy", run.summary().number("best_accuracy"));
  put(values, "loss_roughness", loss_roughness(run.evals(), run.chief().steps));
  put(values, "seconds", run.seconds());
  put(values, "step_seconds", run.seconds_per_step());
  put(values, "steps", run.steps());
  put(values, "epochs", run.summary().number("epochs"));
  // If another rule ended the training, the last epoch is incomplete.
  if (reason == "epochs" || reason == "data ran out") {
    put(values, "epoch_seconds", over(training, run.summary().number("epochs")));
  }
  put(values, "examples", run.examples());
  put(values, "examples_per_second", run.examples_per_second());
  if (run.roles.size() > 1) {
    const double total = received_by_all(run);
    put(values, "network_total", over(total, run.seconds()));
    put(values, "network_per_update", over(total, run.steps()));
  }
}

/// Merges the trainers' values: means, or sums where that fits the field.
void merge_trainers(const std::vector<RoleMeasured>& roles, Measured& values) {
  std::map<std::string, std::vector<double>> all;
  for (const RoleMeasured& role : roles) {
    if (role.role.starts_with("ps:") || role.role.starts_with("evaluator:")) continue;
    for (const auto& [name, value] : role.values) all[name].push_back(value);
  }
  for (const auto& [name, numbers] : all) {
    if (name == "iterations" || name == "restarts") {
      put(values, name.c_str(), records::sum(numbers));
    } else if (name == "cpu_max") {
      put(values, "cpu_max", records::largest(numbers));
    } else if (!values.contains(name)) {
      put(values, name.c_str(), records::mean(numbers));
    }
  }
  if (all.contains("memory")) put(values, "memory_max", records::largest(all["memory"]));
  if (all["seconds"].size() > 1) {
    const auto [first, last] = std::minmax_element(all["seconds"].begin(), all["seconds"].end());
    put(values, "finish_spread", *last - *first);
  }
}

}  // namespace

RunMeasured measure(const records::RunRecord& run) {
  RunMeasured result;
  for (const RoleRecord& role : run.roles) {
    RoleMeasured measured{role.role, role.host, {}};
    if (role.trains()) {
      measure_trainer(role, run, measured.values);
    } else {
      measure_resources(role, run, measured.values);
    }
    result.roles.push_back(std::move(measured));
  }
  measure_whole(run, result.values);
  measure_servers(run, result.values);
  merge_trainers(result.roles, result.values);
  return result;
}

}  // namespace lockstep::lab
