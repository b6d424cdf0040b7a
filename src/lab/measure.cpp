// Measures a run, field by field. Unknown fields are left out.
#include <algorithm>
#include <cmath>
#include <set>

#include "lab/fields.h"
#include "records/hardware.h"
#include "records/statistics.h"

namespace lockstep::lab {
namespace {

using records::known;
using records::kUnknown;
using records::RoleRecord;
using records::RunRecord;

constexpr size_t kLeastPoints = 4;
constexpr size_t kLeastSamples = 8;

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

/// Returns the median distance of a point from the line between its neighbours, relative to the curve's mean. Points
/// may lie at uneven places. The median leaves out the steep start of a training, which bends without noise.
double roughness(const records::Curve& curve) {
  if (curve.size() < kLeastPoints) return kUnknown;
  std::vector<double> distances;
  for (size_t i = 1; i + 1 < curve.size(); ++i) {
    const double width = curve.x[i + 1] - curve.x[i - 1];
    if (!(curve.x[i] > curve.x[i - 1] && curve.x[i + 1] > curve.x[i])) continue;  // a restarted worker steps back
    const double part = (curve.x[i] - curve.x[i - 1]) / width;
    distances.push_back(std::abs(curve.y[i] - (curve.y[i - 1] + part * (curve.y[i + 1] - curve.y[i - 1]))));
  }
  return over(records::median(distances), records::mean(curve.y));
}

/// Returns the points with a loss, in their order in the table.
records::Curve losses_of(const records::CsvTable& table) {
  const auto steps = table.column("step");
  const auto losses = table.column("loss");
  records::Curve curve;
  for (size_t i = 0; i < std::min(steps.size(), losses.size()); ++i) {
    if (!known(steps[i]) || !known(losses[i])) continue;
    curve.x.push_back(steps[i]);
    curve.y.push_back(losses[i]);
  }
  return curve;
}

double loss_roughness(const records::CsvTable& evals, const records::CsvTable& steps) {
  const records::Curve evaluated = losses_of(evals);
  return roughness(evaluated.size() >= kLeastPoints ? evaluated : losses_of(steps));
}

/// Returns the curve of the run's evaluated losses over a column, without points that are not known.
records::Curve loss_curve(const RunRecord& run, std::string_view column) {
  const auto x = run.evals().column(column);
  const auto y = run.evals().column("loss");
  return records::downsampled(x, y, std::max(x.size(), y.size()) + 2);
}

/// Returns the place at which a curve first falls to a height, on the line between its points; NaN if it never does.
double first_at_most(const records::Curve& curve, double height) {
  for (size_t i = 0; i < curve.size(); ++i) {
    if (curve.y[i] > height) continue;
    if (i == 0) return curve.x[i];
    const double part = (curve.y[i - 1] - height) / (curve.y[i - 1] - curve.y[i]);
    return curve.x[i - 1] + part * (curve.x[i] - curve.x[i - 1]);
  }
  return kUnknown;
}

/// Measures how fast the loss falls, apart from how far it falls.
void measure_convergence(const RunRecord& run, Measured& values) {
  constexpr double kWay = 0.9;
  const std::vector<double> accuracies = records::known_of(run.evals().column("accuracy"));
  if (accuracies.size() > 1) put(values, "accuracy_gain", accuracies.back() - accuracies.front());
  const records::Curve by_step = loss_curve(run, "step");
  if (by_step.size() > 1) put(values, "loss_fall", 1 - over(by_step.y.back(), by_step.y.front()));
  if (by_step.size() < kLeastPoints) return;
  double area = 0;
  for (size_t i = 1; i < by_step.size(); ++i)
    area += (by_step.x[i] - by_step.x[i - 1]) * (by_step.y[i] + by_step.y[i - 1]) / 2;
  put(values, "loss_area", over(area, by_step.x.back() - by_step.x.front()));
  const double lowest = *std::min_element(by_step.y.begin(), by_step.y.end());
  const double first = by_step.y.front();  // of asynchronous workers another one may have made the first step
  if (!(first > lowest)) return;
  const double height = first - kWay * (first - lowest);
  put(values, "converge_steps", first_at_most(by_step, height));
  put(values, "converge_seconds", first_at_most(loss_curve(run, "seconds"), height));
}

/// Returns the time for which the role was monitored.
double watched_seconds(const RoleRecord& role, const RunRecord& run) {
  const double seconds = role.monitor.last("seconds");
  return known(seconds) ? seconds : run.seconds();
}

/// Returns the moment of the role's monitor at which the training began. Servers are monitored from before that time.
double beginning_of(const RoleRecord& role, const RunRecord& run) {
  const double begin = role.trains() ? 0 : watched_seconds(role, run) - run.seconds();
  return begin > 0.2 * run.seconds() ? begin : 0;
}

/// Returns a column's samples while the run trained; empty if the monitor does not have them.
std::vector<double> samples_of(const RoleRecord& role, const RunRecord& run, std::string_view column) {
  const double begin = beginning_of(role, run);
  const std::span<const double> times = role.monitor.column("seconds");
  const std::span<const double> values = role.monitor.column(column);
  std::vector<double> within;
  if (values.size() != times.size()) return within;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > begin) within.push_back(values[i]);
  }
  return within;
}

/// Returns the mean of a column while the run trained.
double mean_of(const RoleRecord& role, const RunRecord& run, std::string_view column) {
  if (beginning_of(role, run) == 0) return role.resource(column).mean;
  const double mean = records::mean(samples_of(role, run, column));
  return known(mean) ? mean : role.resource(column).mean;
}

double max_of(const RoleRecord& role, std::string_view column) {
  const double most = records::largest(role.monitor.column(column));
  return known(most) ? most : role.resource(column).max;
}

/// Returns the total that a rate of a role amounts to.
double total_of(const RoleRecord& role, const RunRecord& run, std::string_view column) {
  const double mean = role.resource(column).mean;
  return (known(mean) ? mean : records::mean(role.monitor.column(column))) * watched_seconds(role, run);
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

/// Returns the largest fall from an earlier peak, relative to that peak.
double largest_fall(const std::vector<double>& samples) {
  double peak = 0;
  double fall = 0;
  for (const double sample : records::known_of(samples)) {
    peak = std::max(peak, sample);
    if (peak > 0) fall = std::max(fall, (peak - sample) / peak);
  }
  return peak > 0 ? fall : kUnknown;
}

/// Returns the standard deviation of the samples relative to their mean.
double variation_of(const std::vector<double>& samples) {
  const double mean = records::mean(samples);
  if (samples.size() < kLeastSamples) return kUnknown;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return over(std::sqrt(squares / static_cast<double>(samples.size() - 1)), mean);
}

/// Returns the strongest period of the samples, in samples: the highest peak of their autocorrelation. NaN if no peak
/// is high enough.
double period_of(const std::vector<double>& samples) {
  constexpr double kLeastCorrelation = 0.3;
  const size_t count = samples.size();
  if (count < kLeastSamples) return kUnknown;
  const double mean = records::mean(samples);
  const auto correlation = [&](size_t lag) {
    double products = 0;
    double squares = 0;
    for (size_t i = 0; i < count; ++i) squares += (samples[i] - mean) * (samples[i] - mean);
    for (size_t i = 0; i + lag < count; ++i) products += (samples[i] - mean) * (samples[i + lag] - mean);
    return over(products / static_cast<double>(count - lag), squares / static_cast<double>(count));
  };
  std::vector<double> all;
  for (size_t lag = 0; lag <= count / 2; ++lag) all.push_back(correlation(lag));
  double best = kLeastCorrelation;
  double period = kUnknown;
  for (size_t lag = 2; lag + 1 < all.size(); ++lag) {
    const bool peak = all[lag] > all[lag - 1] && all[lag] >= all[lag + 1];
    if (!peak || !(all[lag] > best)) continue;
    best = all[lag];
    period = static_cast<double>(lag);
  }
  return period;
}

void measure_network(const RoleRecord& role, const RunRecord& run, bool nodes, Measured& values) {
  const std::vector<double> received = samples_of(role, run, nodes ? "net_received" : "wire_received");
  const std::vector<double> sent = samples_of(role, run, nodes ? "net_sent" : "wire_sent");
  std::vector<double> both;
  for (size_t i = 0; i < std::min(received.size(), sent.size()); ++i) {
    if (known(received[i]) && known(sent[i])) both.push_back(received[i] + sent[i]);
  }
  put(values, "network_max", records::largest(both));
  put(values, "network_received_max", records::largest(received));
  put(values, "network_sent_max", records::largest(sent));
  put(values, "network_variation", variation_of(both));
  const std::span<const double> times = role.monitor.column("seconds");
  if (times.size() > 1)
    put(values, "network_period",
        period_of(both) * (times.back() - times.front()) / static_cast<double>(times.size() - 1));
}

void measure_resources(const RoleRecord& role, const RunRecord& run, Measured& values) {
  const bool nodes = has_nodes(run);
  const auto mean = [&](std::string_view column) { return mean_of(role, run, column); };
  put(values, "cpu_percent", mean("node_cpu_percent"));
  put(values, "cpu_max", role.resource("node_cpu_percent").max);
  put(values, "process_cpu_percent", mean("cpu_percent"));
  put(values, "memory", role.peak_memory());
  put(values, "node_memory", max_of(role, "node_memory_used"));
  put(values, "node_memory_drop", largest_fall(samples_of(role, run, "node_memory_used")));
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
  put(values, "disk_read_max", max_of(role, "disk_read"));
  put(values, "node_disk_read", mean("node_disk_read"));
  put(values, "node_disk_written", mean("node_disk_written"));
  put(values, "disk_over_network", over(mean("node_disk_read") + mean("node_disk_written"), received + sent));
  measure_network(role, run, nodes, values);
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

/// Returns what the servers' nodes receive, relative to what all other nodes send.
double server_intake(const RunRecord& run) {
  if (!has_nodes(run)) return kUnknown;
  std::set<std::string> serving;
  for (const RoleRecord& role : run.roles) {
    if (role.serves()) serving.insert(role.host);
  }
  std::map<std::string, double> received;
  std::map<std::string, double> sent;
  for (const RoleRecord& role : run.roles) {
    const bool serves = serving.contains(role.host);
    const double bytes = total_of(role, run, serves ? "net_received" : "net_sent");
    double& place = (serves ? received : sent)[role.host];
    if (known(bytes)) place = std::max(place, bytes);
  }
  const auto sum = [](const std::map<std::string, double>& places) {
    double all = 0;
    for (const auto& [host, bytes] : places) all += bytes;
    return all;
  };
  return received.empty() ? kUnknown : over(sum(received), sum(sent));
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
  measure_convergence(run, values);
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
    put(values, "server_intake", server_intake(run));
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
    } else if (name.ends_with("_max")) {
      put(values, name.c_str(), records::largest(numbers));
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
  if (const double cores = records::hardware_of(run).cores; cores > 0) put(result.values, "train_cores", cores);
  return result;
}

}  // namespace lockstep::lab
