// What tables, plots and findings are made of: the finished runs of an experiment, or the workers in them, sorted into
// cases by fields, repeats averaged. Results are borrowed and must outlive it all. Plain values; one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lab/results.h"

namespace lockstep::report {

/// Over the repeats of a case; NaN where nothing is known.
struct Stat {
  double mean = 0;
  double deviation = 0;  ///< standard deviation of the sample; 0 of a single value
  double low = 0;
  double high = 0;
  size_t count = 0;
};
Stat stat_of(const std::vector<double>& values);

/// speed_up and efficiency, which need another run: that of the same group whose varied settings are the same but for
/// those of the cluster, with one trainer and, where there is one, the same mode and strategy. Rates are compared, so
/// that means of them over repeats are the case's rate over the baseline's.
class Derived {
 public:
  explicit Derived(const lab::Results& results);
  /// NaN where there is no such run, or the field is no derived one.
  [[nodiscard]] double number(const lab::RunResult& run, std::string_view field) const;

 private:
  std::map<const lab::RunResult*, double> speed_up_;
};

/// How many train together.
size_t trainers(const lab::RunResult& run);
bool is_trainer(const lab::RoleMeasured& role);

/// A finished run, or one of its workers.
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
  explicit Material(const lab::Results& results) : results_(results), derived_(results) {}
  [[nodiscard]] const lab::Results& results() const { return results_; }
  /// Those that are done and pass.
  [[nodiscard]] Observations observations(const lab::Filter& filter, bool per_worker) const;
  /// As the experiment calls it.
  [[nodiscard]] std::string group_title(const std::string& group) const;
  /// How many of those that pass are not done.
  [[nodiscard]] size_t missing(const lab::Filter& filter) const;
  [[nodiscard]] size_t failed(const lab::Filter& filter) const;
  /// "3 runs are not in it: 2 failed (async), 1 not made yet."; empty where none is missing.
  [[nodiscard]] std::string missing_text(const lab::Filter& filter) const;

 private:
  const lab::Results& results_;
  Derived derived_;
};

/// Those with the same values of the fields, in the order of the plan.
std::vector<Case> cases_by(const Observations& observations, const Fields& fields);
/// One for each variation: repeats alone are together. Keys are what tells them apart.
std::vector<Case> variations(const Observations& observations);
/// What differs within cases besides the seed, so that their means are not over repeats alone: "data scale 0.5, 1".
/// Empty where nothing does.
std::string pooled_text(const std::vector<Case>& cases);
/// By the numbers that the values at this place of the key are, if all are.
void sort_by_number(std::vector<Case>& cases, size_t place);
/// Whether fields are of workers: "worker", "role", "node".
bool of_worker(std::string_view field);

/// A number, if the text is one as a whole; else NaN.
double number_of(std::string_view text);
/// As numbers where both are; "worker:0" is also "0".
bool same_value(std::string_view a, std::string_view b);

/// "batch 32, mode sync"; a label stands for itself.
std::string describe(const Fields& fields, const Key& key);
/// What a run is called among others: its label, or what varies.
std::string title_of(const lab::RunResult& run, bool with_group = false);
/// Whether what stands beside each other is of more than one group, so that names need it.
bool several_groups(const Observations& observations);

}  // namespace lockstep::report
