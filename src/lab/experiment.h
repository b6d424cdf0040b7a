// An experiment: what to train, in which variations, on what cluster, and what to report. Read from a YAML file
// (docs/experiments.md) at one of its scales and checked as a whole before anything runs: settings against the table of
// `lockstep train`, fields of tables and plots against the list of fields, clusters against this machine. Errors are
// UsageErrors "file:line:column: ..." that name the value seen and what is allowed. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/nn.h"

namespace lockstep::lab {

/// Names with their values as text, in the order of the file.
using Values = std::vector<std::pair<std::string, std::string>>;
/// Empty where the name is not there.
std::string value_of(const Values& values, std::string_view name);

/// Where the roles of a run are.
struct ClusterPlan {
  std::string emulate;  ///< as --emulate takes it; empty: this machine's processes
  std::string faults;   ///< as --faults takes it
  std::string hosts;    ///< a cluster file for `lockstep launch`; empty: this machine
  /// Of hosts: the command that reaches them and the program there, where they are not what `launch` takes by itself.
  /// The training is the same whatever they are.
  std::string ssh = {};
  std::string program = {};
};

/// One training to make.
struct RunPlan {
  std::string key;  ///< unique in the experiment, readable, fit for a folder: "lenet-workers=3-mode=sync-r1"
  std::string group;
  std::string label;  ///< of its case; empty without one
  Values settings;    ///< by the names of the settings table (hyphens), all that the file gives
  Values varied;      ///< those of `settings` that differ within the group
  Values tags;        ///< free names of the file: nodes, deploy, ...
  ClusterPlan cluster;
  int repeat = 1;  ///< from 1
};

/// Which runs: each field must have one of its values. An empty filter takes all.
struct Filter {
  std::vector<std::string> groups;  ///< empty: all
  std::vector<std::pair<std::string, std::vector<std::string>>> where;
};

struct TableSpec {
  std::string name;
  std::string title;
  std::string text;
  Filter filter;
  bool per_worker = false;           ///< a row for each worker, `rows` may name `worker`
  std::vector<std::string> rows;     ///< fields that tell rows apart; repeats are averaged
  std::vector<std::string> columns;  ///< measured fields
  std::string reported;              ///< a CSV file beside the experiment; empty: none
  std::vector<std::pair<std::string, std::string>> reported_columns;  ///< field -> column of the file; rows likewise
  std::vector<std::pair<std::string, std::string>> reported_where;    ///< column of the file -> the only value taken
};

enum class PlotKind : uint8_t {
  curves,    ///< y over steps, epochs or seconds within runs, a band over repeats
  lines,     ///< y (and y2) of runs over a numeric field
  bars,      ///< y of runs by a field's values
  speed_up,  ///< speed-up and efficiency over workers, with the ideal line
  usage,     ///< a column of the monitor over time, per node or role
  phases,    ///< stacks: where the time of steps went
  timeline,  ///< from when to when each worker trained, with faults
};

struct PlotSpec {
  std::string name;
  std::string title;
  std::string text;
  PlotKind kind = PlotKind::lines;
  Filter filter;
  std::string x;                    ///< curves: step, epoch or seconds; lines and bars: a field
  std::vector<std::string> y;       ///< curves: loss, accuracy, train_loss; usage: monitor columns; else fields
  std::vector<std::string> y2;      ///< on a second axis (lines)
  std::vector<std::string> series;  ///< fields that tell series apart
  std::vector<std::string> facets;  ///< fields: a plot for each combination of their values
  bool per_worker = false;          ///< curves, bars, usage: a series for each worker, else merged
  std::vector<std::string> roles;   ///< usage: only of these ("worker:0", "ps:0"); empty: all
  bool log_x = false;
  bool log_y = false;
  std::string reported;  ///< as in TableSpec: reported figures as dashed series (lines, bars)
  std::vector<std::pair<std::string, std::string>> reported_columns;
  std::vector<std::pair<std::string, std::string>> reported_where;
};

enum class TestKind : uint8_t {
  compare,  ///< field in `first` against field in `second`, matched by `by`: less, greater, same, different
  trend,    ///< field over `over` within each `by`: grows, falls, flat, saturates (growth that slows to below `within`)
  ratio,    ///< field in `first` over field in `second`, matched by `by`: at_least, at_most
  value,    ///< field in `first`: at_least, at_most
  spread,   ///< of a worker's field within a run of `first`, (max - min) / max: together (at most within), apart
  most,     ///< the value of `over` with the largest mean of field, within each `by`, is `is`
  least,    ///< likewise the smallest
};

struct FindingTest {
  TestKind kind = TestKind::compare;
  std::string field;
  Filter first;
  Filter second;
  std::string over;
  std::vector<std::string> by;
  std::string is;  ///< less, greater, same, different, grows, falls, flat, saturates, together, apart, or a value
  std::optional<double> at_least;
  std::optional<double> at_most;
  double within = 0.05;  ///< relative difference that counts as none
  int line = 0;          ///< in the file
};

struct FindingSpec {
  std::string name;
  std::string says;  ///< what the study found, a sentence
  std::vector<FindingTest> tests;
  std::vector<std::string> explain;  ///< fields whose measured values say why
};

struct ReportSpec {
  std::vector<TableSpec> tables;
  std::vector<PlotSpec> plots;
  std::vector<FindingSpec> findings;
};

struct Group {
  std::string name;
  std::string title;
  std::vector<RunPlan> runs;  ///< all repeats of a variation follow each other
  int warm_up = 1;            ///< short trainings that are thrown away before the first run
};

struct Experiment {
  std::string name;
  std::string title;
  std::string about;
  std::string scale;  ///< "quick", "full" or another of the file's; empty: it has none
  std::string file;   ///< its path
  std::string text;   ///< of the file
  Values reported;    ///< texts of the CSV files that the report names, by the names in the file
  std::vector<Group> groups;
  ReportSpec report;

  [[nodiscard]] size_t runs() const;
};

/// What the caller wants otherwise than the file.
struct Overrides {
  Values settings = {};  ///< of all runs; none that the file varies
  bool local = false;    ///< processes of this machine instead of emulated nodes and hosts
};

struct ParseOptions {
  std::span<const nn::ModelDef> models = {};  ///< besides the zoo's and files; borrowed
  /// Of an experiment that was checked before and kept: its reported texts. Neither other files nor this machine are
  /// looked at then. Borrowed.
  const Values* reported = nullptr;
  Overrides overrides = {};
};

/// `scale` "" takes the file's first one, where it has any. All scales are checked.
Experiment load_experiment(const std::string& path, const std::string& scale, const ParseOptions& options = {});
Experiment parse_experiment(const std::string& text, const std::string& file, const std::string& scale,
                            const ParseOptions& options = {});

}  // namespace lockstep::lab
