// Fields of a run that need another run: speed-up and efficiency.
#include <algorithm>
#include <array>
#include <cmath>

#include "lab/noise.h"
#include "records/statistics.h"
#include "report/observations.h"

namespace lockstep::report {
namespace {

using lab::RunResult;
using records::known;
using records::kUnknown;

/// Settings of the cluster; a baseline may differ in them.
constexpr std::array<std::string_view, 12> kClusterSettings = {"workers",  "ps",       "layout",    "mode",
                                                               "strategy", "replicas", "evaluator", "emulate",
                                                               "hosts",    "tls",      "insecure",  "seed"};

bool of_cluster(std::string_view setting) {
  return std::find(kClusterSettings.begin(), kClusterSettings.end(), setting) != kClusterSettings.end();
}

lab::Values compared_settings(const RunResult& run) {
  lab::Values values;
  for (const auto& [name, value] : run.plan.varied) {
    if (!of_cluster(name) && name != "threads") values.emplace_back(name, value);
  }
  return values;
}

/// Returns whether the threads differ. Threads of a cluster's roles follow from its nodes; if both runs set them, they
/// must agree.
bool other_threads(const RunResult& a, const RunResult& b) {
  const std::string first = a.text("threads");
  const std::string second = b.text("threads");
  return !first.empty() && !second.empty() && first != second;
}

bool one_process(const RunResult& run) {
  return run.measured.roles.size() == 1 || (run.measured.roles.empty() && run.text("ps").empty());
}

bool same_exchange(const RunResult& a, const RunResult& b) {
  return a.text("mode") == b.text("mode") && a.text("strategy") == b.text("strategy");
}

/// Returns whether each trainer of both runs has the same hardware, as far as the settings say.
bool same_each(const RunResult& a, const RunResult& b) {
  const std::string& nodes = a.plan.cluster.emulate;
  const std::string threads = a.text("threads");
  return nodes == b.plan.cluster.emulate && threads == b.text("threads") && !(nodes.empty() && threads.empty());
}

/// Returns how many times the cores of the baseline the run's trainers use; NaN if that is not known.
double cores_over(const RunResult& run, const RunResult& baseline) {
  const double now = run.number("train_cores");
  const double before = baseline.number("train_cores");
  if (now > 0 && before > 0) return now / before;
  return same_each(run, baseline) ? static_cast<double>(trainers(run)) : kUnknown;
}

struct SpeedBaseline {
  std::map<int, double> rates;  ///< by repeat
  double cores = kUnknown;      ///< of the run, in those of the baseline
};

/// Returns the baseline of a run. One that exchanges in the same way is preferred, and one process to a worker with a
/// server.
SpeedBaseline speed_baseline_of(const lab::Results& results, const RunResult& run) {
  const lab::Values settings = compared_settings(run);
  std::array<std::map<int, std::vector<double>>, 4> rates;  // best kind of baseline first
  std::array<std::map<int, std::vector<double>>, 4> disturbed;
  std::array<double, 4> cores{kUnknown, kUnknown, kUnknown, kUnknown};
  for (const RunResult& other : results.runs) {
    if (other.state != lab::RunState::done || other.plan.group != run.plan.group || trainers(other) != 1) continue;
    if (compared_settings(other) != settings || other_threads(run, other)) continue;
    const size_t place = (same_exchange(run, other) ? 0 : 2) + (one_process(other) ? 0 : 1);
    const double rate = other.number("examples_per_second");
    auto& there = lab::is_disturbed(other.measured.values) ? disturbed : rates;
    if (known(rate)) there.at(place)[other.plan.repeat].push_back(rate);
    if (known(rate) && !known(cores.at(place))) cores.at(place) = cores_over(run, other);
  }
  for (size_t place = 0; place < rates.size(); ++place) {
    if (rates.at(place).empty()) rates.at(place) = disturbed.at(place);
  }
  SpeedBaseline baseline;
  const auto* const best = std::find_if(rates.begin(), rates.end(), [](const auto& some) { return !some.empty(); });
  if (best == rates.end()) return baseline;
  for (const auto& [repeat, all] : *best) baseline.rates[repeat] = records::mean(all);
  baseline.cores = cores.at(static_cast<size_t>(best - rates.begin()));
  return baseline;
}

double mean_of(const std::map<int, double>& rates) {
  std::vector<double> values;
  for (const auto& [repeat, rate] : rates) values.push_back(rate);
  return records::mean(values);
}

}  // namespace

bool is_trainer(const lab::RoleMeasured& role) {
  return !role.role.starts_with("ps:") && !role.role.starts_with("evaluator:");
}

size_t trainers(const RunResult& run) {
  const auto& roles = run.measured.roles;
  const auto count = static_cast<size_t>(std::count_if(roles.begin(), roles.end(), is_trainer));
  const double replicas = run.number("replicas");
  if (count == 1 && replicas > 1) return static_cast<size_t>(replicas);
  if (count > 0) return count;
  const double workers = run.number("workers");
  if (workers >= 1) return static_cast<size_t>(workers);
  const std::string layout = run.text("layout");
  return std::max<size_t>(1, static_cast<size_t>(std::count(layout.begin(), layout.end(), 'W')));
}

Derived::Derived(const lab::Results& results) {
  for (const RunResult& run : results.runs) {
    if (run.state != lab::RunState::done) continue;
    SpeedBaseline baseline = speed_baseline_of(results, run);
    const double ratio = run.number("examples_per_second") / mean_of(baseline.rates);
    if (known(ratio)) speed_up_[&run] = ratio;
    cores_[&run] = baseline.cores;
    baselines_[&run] = std::move(baseline.rates);
  }
}

double Derived::number(const RunResult& run, std::string_view field) const {
  const auto found = speed_up_.find(&run);
  if (found == speed_up_.end()) return kUnknown;
  if (field == "speed_up") return found->second;
  if (field == "efficiency") return found->second / cores(run);
  return kUnknown;
}

double Derived::cores(const RunResult& run) const {
  const auto found = cores_.find(&run);
  return found == cores_.end() ? kUnknown : found->second;
}

std::map<int, double> Derived::baseline(const lab::RunResult& run) const {
  const auto found = baselines_.find(&run);
  return found == baselines_.end() ? std::map<int, double>{} : found->second;
}

}  // namespace lockstep::report
