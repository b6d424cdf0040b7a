// The data of tables, plots and findings: the finished runs of an experiment, or the workers in them, sorted into cases
// by fields, with repeats averaged. Results are borrowed and must outlive these objects. Plain values; one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lab/results.h"

namespace lockstep::report {

/// Statistics over the repeats of a case; NaN if nothing is known.
struct Stat {
  double mean = 0;
  double deviation = 0;  ///< standard deviation of the sample; 0 for a single value
  double low = 0;
  double high = 0;
  size_t count = 0;
};
Stat stat_of(const std::vector<double>& values);

/// speed_up and efficiency (per core), which need a baseline: a run of the same group with the same varied settings,
/// except those of the cluster, with one trainer and, if possible, the same mode and strategy. They compare rates, so
/// that their means over repeats are the case's rate relative to the baseline's.
class Derived {
 public:
  explicit Derived(const lab::Results& results);
  /// Returns NaN if there is no baseline, or the field is not a derived one.
  [[nodiscard]] double number(const lab::RunResult& run, std::string_view field) const;
  /// Returns the examples per second of the baseline's runs, by repeat; empty without a baseline.
  [[nodiscard]] std::map<int, double> baseline(const lab::RunResult& run) const;
  /// Returns how many times the cores of its baseline the run's trainers use; NaN if that is not known.
  [[nodiscard]] double cores(const lab::RunResult& run) const;

 private:
  std::map<const lab::RunResult*, double> speed_up_;
  std::map<const lab::RunResult*, double> cores_;
  std::map<const lab::RunResult*, std::map<int, double>> baselines_;
};

/// Returns how many roles train together.
size_t trainers(const lab::RunResult& run);
bool is_trainer(const lab::RoleMeasured& role);

/// A finished run, or one of its workers or machines.
struct Observation {
  const lab::RunResult* run = nullptr;
  const lab::RoleMeasured* role = nullptr;
  const Derived* derived = nullptr;

  [[nodiscard]] std::string text(std::string_view field) const;
  [[nodiscard]] double number(std::string_view field) const;
};
using Observations = std::vector<Observation>;

using Fields = std::vector<std::string>;
using Key = std::vector<std::string>;  ///< values of fields

struct Case {
  Key key;
  Observations members;

  [[nodiscard]] Stat stat(std::string_view field) const;
};

class Material {
 public:
  explicit Material(const lab::Results& results);
  Material(const Material&) = delete;
  Material& operator=(const Material&) = delete;
  [[nodiscard]] const lab::Results& results() const { return results_; }
  /// Returns the finished runs that the filter selects, or their workers or machines.
  [[nodiscard]] Observations observations(const lab::Filter& filter, lab::Per per = lab::Per::run) const;
  /// Returns the group's title in the experiment.
  [[nodiscard]] std::string group_title(const std::string& group) const;
  /// Returns how many selected runs are not finished.
  [[nodiscard]] size_t missing(const lab::Filter& filter) const;
  [[nodiscard]] size_t failed(const lab::Filter& filter) const;
  /// Returns "3 runs are missing: 2 failed (async), 1 not run yet."; empty if none is missing.
  [[nodiscard]] std::string missing_text(const lab::Filter& filter) const;

 private:
  const lab::Results& results_;
  Derived derived_;
  std::map<const lab::RunResult*, std::vector<lab::RoleMeasured>> machines_;
};

/// Returns the observations without disturbed runs, if other programs can have changed the field: a time, a load, or
/// any result of a run whose course depends on time. A variation that has only disturbed runs keeps them.
Observations undisturbed(const Observations& observations, std::string_view field);
/// Says what `undisturbed` did: "2 disturbed runs are left out." or that the disturbed ones count; empty if none was
/// disturbed.
std::string disturbed_note(const Observations& observations, const Fields& fields);

/// Groups observations with the same values of the fields, in the order of the plan.
std::vector<Case> cases_by(const Observations& observations, const Fields& fields);
/// Groups observations by variation: each case holds the repeats of one. Its key tells it from the others.
std::vector<Case> variations(const Observations& observations);
/// Returns what differs within cases besides the seed, so that their means are not over repeats alone: "data scale 0.5,
/// 1". Empty if nothing does.
std::string pooled_text(const std::vector<Case>& cases);
/// Sorts by the values at this place of the key, if all are numbers.
void sort_by_number(std::vector<Case>& cases, size_t place);
/// Returns the nodes of a run, each with its roles ("ps:0, worker:0") and what was measured on it: the figures of
/// nodes, and sums of those of processes.
std::vector<lab::RoleMeasured> machines_of(const lab::RunResult& run);

/// Returns the number, if the whole text is one; otherwise NaN.
double number_of(std::string_view text);
/// Compares as numbers if both are numbers; "worker:0" equals "0".
bool same_value(std::string_view a, std::string_view b);

/// Returns "batch 32, mode sync"; a label stands for itself.
std::string describe(const Fields& fields, const Key& key);
/// Returns the title of a run among others: its label, or its varied settings.
std::string title_of(const lab::RunResult& run, bool with_group = false);
/// Returns whether the observations are of several groups, so that names need the group.
bool several_groups(const Observations& observations);

}  // namespace lockstep::report
