// An experiment: the trainings to run, their variations, their clusters, and the report. Read from a YAML file
// (docs/experiments.md) at one of its scales and checked as a whole before any run: settings against the table of
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

/// Names and their values as text, in the order of the file.
using Values = std::vector<std::pair<std::string, std::string>>;
/// Returns the value of a name; empty if it is absent.
std::string value_of(const Values& values, std::string_view name);

/// The place of a run's roles.
struct ClusterPlan {
  std::string emulate;  ///< text for --emulate; empty: plain processes of this machine
  std::string faults;   ///< text for --faults
  std::string hosts;    ///< a cluster file for `lockstep launch`; empty: this machine
  /// The command that reaches the hosts and the program there, if they are not the defaults of `launch`. They do not
  /// change the training.
  std::string ssh = {};
  std::string program = {};
};

/// A program that is not ours, to run in place of a training (guest/guest_run.h).
struct GuestPlan {
  std::vector<std::string> command = {};  ///< words; empty: a training
  std::vector<std::string> figures = {};  ///< FIGURE=SOURCE, as `lockstep guest --figure` takes them
  std::string deadline = {};              ///< "10m"; empty: the default of `lockstep guest`
  std::vector<std::string> logs = {};     ///< ROLE=FILE: an earlier run elsewhere, in place of a command
};

/// One training.
struct RunPlan {
  std::string key;  ///< unique in the experiment, readable, usable as a folder name: "lenet-workers=3-mode=sync-r1"
  std::string group;
  std::string label;  ///< label of its case; empty without a case
  Values settings;    ///< all settings in the file, by their names in the settings table (hyphens)
  Values varied;      ///< the part of `settings` that differs within the group
  Values tags;        ///< free names from the file: nodes, deploy, ...
  ClusterPlan cluster;
  int repeat = 1;  ///< number of the repeat, from 1
  GuestPlan guest = {};

  [[nodiscard]] bool is_guest() const { return !guest.command.empty() || !guest.logs.empty(); }
};

/// Selects runs: each field must have one of its values. An empty filter selects all.
struct Filter {
  std::vector<std::string> groups;  ///< empty: all
  std::vector<std::pair<std::string, std::vector<std::string>>> where;
};

/// What a row of a table, a series of a plot, or a side of a test is about.
enum class Per : uint8_t {
  run,
  worker,  ///< each role that trains
  machine  ///< each node, with all its roles
};

/// Returns whether the field tells workers or machines of a run apart.
bool of_part(std::string_view field);

struct TableSpec {
  std::string name;
  std::string title;
  std::string text;
  Filter filter;
  Per per = Per::run;                ///< worker, machine: `rows` may name worker, node and with_server
  std::vector<std::string> rows;     ///< fields that tell rows apart; repeats are averaged
  std::vector<std::string> columns;  ///< measured fields
  std::string reported;              ///< CSV file beside the experiment; empty: none
  std::vector<std::pair<std::string, std::string>> reported_columns;  ///< field -> column of the file; for rows too
  std::vector<std::pair<std::string, std::string>> reported_where;    ///< column of the file -> the only value used
};

enum class PlotKind : uint8_t {
  curves,    ///< y over steps, epochs or seconds within runs, a band over repeats
  lines,     ///< y (and y2) of runs over a numeric field
  bars,      ///< y of runs by the values of a field
  speed_up,  ///< speed-up and efficiency over workers, with the ideal line
  usage,     ///< a column of the monitor over time, per node or role
  phases,    ///< the time of steps by phase, as stacks
  timeline,  ///< when each worker trained, with faults
};

struct PlotSpec {
  std::string name;
  std::string title;
  std::string text;
  PlotKind kind = PlotKind::lines;
  Filter filter;
  std::string x;                    ///< curves: step, epoch, seconds, iteration; lines and bars: a field
  std::vector<std::string> y;       ///< curves: loss, accuracy, train_loss; usage: monitor columns; others: fields
  std::vector<std::string> y2;      ///< on a second axis (lines)
  std::vector<std::string> series;  ///< fields that tell series apart
  std::vector<std::string> facets;  ///< fields; one plot for each combination of their values
  Per per = Per::run;               ///< curves, lines, bars, phases: for each worker or machine, else merged
  std::vector<std::string> roles;   ///< usage: only these roles ("worker:0", "ps:0"); empty: all
  bool log_x = false;
  bool log_y = false;
  std::string reported;  ///< as in TableSpec; drawn as dashed series (lines, bars)
  std::vector<std::pair<std::string, std::string>> reported_columns;
  std::vector<std::pair<std::string, std::string>> reported_where;
};

enum class TestKind : uint8_t {
  compare,  ///< field in `first` against field in `second`, matched by `by`: less, greater, same, different
  trend,    ///< field over `over` within each `by`: grows, falls, flat, saturates (growth that slows to below `within`)
  ratio,    ///< field in `first` over field in `second`, matched by `by`: at_least, at_most
  value,    ///< field in `first`: at_least, at_most
  spread,   ///< a worker's field within each run of `first`, (max - min) / max: together (at most within), apart
  most,     ///< the value of `over` with the largest mean of field, within each `by`, is `is`
  least,    ///< the same for the smallest mean
  slope,    ///< log of field over log of `over` within each `by`: at_least, at_most (1: in proportion)
  curve,    ///< field over `over` (step, epoch, seconds) within runs of `first` and `second`: same, higher, lower
};

struct FindingTest {
  TestKind kind = TestKind::compare;
  std::string field;
  Filter first;
  Filter second;
  std::string over;
  std::vector<std::string> by;
  /// less, greater, same, different, grows, falls, flat, saturates, together, apart, higher, lower, or a value
  std::string is;
  std::optional<double> at_least;
  std::optional<double> at_most;
  double within = 0.05;  ///< relative difference that counts as none
  int line = 0;          ///< place in the file
  int column = 0;
  Per per = Per::run;
};

struct FindingSpec {
  std::string name;
  std::string says;  ///< the study's finding, as a sentence
  std::vector<FindingTest> tests;
  std::vector<std::string> explain;  ///< fields whose measured values explain the finding
  bool ours = false;                 ///< not a claim of the study
  std::string not_judged = {};       ///< why it cannot be judged here; empty: its tests judge it
  std::string note = {};             ///< sentences for the reader of the verdict; empty: none
};

struct ReportSpec {
  std::vector<TableSpec> tables;
  std::vector<PlotSpec> plots;
  std::vector<FindingSpec> findings;
};

struct Group {
  std::string name;
  std::string title;
  std::vector<RunPlan> runs;  ///< the repeats of a variation follow each other
  int warm_up = 1;            ///< short trainings before the first run; their results are discarded
};

/// Further tries of a disturbed run, unless the file says otherwise.
inline constexpr int kRetries = 2;
inline constexpr int kMostRetries = 20;

struct Experiment {
  std::string name;
  std::string title;
  std::string about;
  std::vector<std::string> cut;  ///< what this scale leaves out of the study's own settings
  std::string scale;             ///< "quick", "full" or another scale of the file; empty: it has none
  std::string file;              ///< path of the file
  std::string text;              ///< text of the file
  int retries = kRetries;        ///< further tries of a run that something else disturbed
  Values reported;               ///< texts of the CSV files for the report, by the names in the file
  std::vector<Group> groups;
  ReportSpec report;

  [[nodiscard]] size_t runs() const;
};

/// The caller's changes to the file.
struct Overrides {
  Values settings = {};  ///< settings of all runs; the file must not vary them
  bool local = false;    ///< use processes of this machine instead of emulated nodes and hosts
};

struct ParseOptions {
  std::span<const nn::ModelDef> models = {};  ///< known besides the zoo's and files; borrowed
  /// The stored CSV texts of an experiment that was checked earlier. If given, neither other files nor this machine are
  /// examined. Borrowed.
  const Values* reported = nullptr;
  Overrides overrides = {};
};

/// An empty `scale` selects the file's first scale, if it has any. All scales are checked.
Experiment load_experiment(const std::string& path, const std::string& scale, const ParseOptions& options = {});
Experiment parse_experiment(const std::string& text, const std::string& file, const std::string& scale,
                            const ParseOptions& options = {});

}  // namespace lockstep::lab
