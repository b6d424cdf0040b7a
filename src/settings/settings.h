// All settings of a training run, in one struct and one visible table (settings_table.cpp). Flags, YAML keys,
// config.yaml and the documentation come from the table alone: a new setting is a member here and a line there. Plain
// values; the table is constant and may be read by any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace lockstep::settings {

using Options = std::map<std::string, std::string>;

// Settings with a fixed set of names. The names are in settings_table.cpp, in the same order.
enum class PixelValues : uint8_t { unit, standard };
enum class Generate : uint8_t { fresh, once };
enum class EvalSplit : uint8_t { test, validation };
enum class IdleThreads : uint8_t { automatic, spin, block };
enum class Precision : uint8_t { f32, bf16 };
enum class Strategy : uint8_t { automatic, parameter_servers, all_reduce };
enum class Engine : uint8_t { automatic, in_process, mpi, gloo };
enum class Mode : uint8_t { sync, async };
enum class Reduce : uint8_t { mean, sum };
enum class Apply : uint8_t { locked, lock_free };
enum class WhoEvaluates : uint8_t { chief, all };
enum class Sharding : uint8_t { by_example, none };
enum class Placement : uint8_t { balanced, round_robin };
enum class WireElement : uint8_t { f32, bf16, f16 };
enum class Durability : uint8_t { process, machine, checkpoint };
enum class ReportForm : uint8_t { text, json };

struct Settings {
  // Model.
  std::string model;
  Options options;

  // Data.
  std::string dataset = "mnist";
  std::string data;  ///< folder to look in first
  std::string label_column;
  PixelValues pixels = PixelValues::unit;
  int64_t batch = 64;
  int64_t accumulate = 1;
  std::string shuffle = "all";
  int64_t holdout = 0;
  int64_t train_limit = 0;
  int64_t test_limit = 0;
  double data_scale = 1;
  int64_t train_size = 0;
  int64_t test_size = 0;
  int64_t classes = 0;
  int64_t image_size = 0;
  Generate generate = Generate::fresh;
  uint64_t data_seed = 1;
  int64_t steps_per_epoch = 0;
  int64_t repeat = 0;

  // Optimizer.
  optim::Method optimizer = optim::Method::sgd;
  double lr = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;
  optim::Schedule::Kind schedule = optim::Schedule::Kind::constant;
  int64_t decay_steps = 0;
  double decay_rate = 0.1;
  double lr_end = 0;
  double power = 2;
  int64_t warmup_steps = 0;

  // When to stop; the first rule met wins.
  int64_t epochs = 10;
  int64_t steps = 0;
  double seconds = 0;
  std::optional<double> stop_loss;
  std::optional<double> stop_accuracy;

  // Evaluation and checkpoints.
  int64_t eval_every = 0;
  int64_t eval_batch = 500;
  EvalSplit eval_split = EvalSplit::test;
  int64_t checkpoint_every = 0;
  int64_t keep = 3;

  // The run.
  uint64_t seed = 1;
  std::string name;
  std::string runs_dir = "runs";
  std::string run_dir;
  int64_t log_every = 100;
  bool quiet = false;
  std::string resume;
  std::string checkpoint;

  // Observation.
  std::string summary_every = "100";
  std::string summary_dir;
  int64_t histograms_every = 0;
  double monitor_every = 0.5;
  bool trace = false;
  int64_t trace_steps = 100;
  std::string metrics;

  // Machine.
  std::string backend = "cpu";
  int64_t threads = 0;
  IdleThreads wait_policy = IdleThreads::automatic;
  bool exact_conv = false;
  Precision precision = Precision::f32;

  // Cluster.
  int64_t workers = 0;
  int64_t ps = 1;
  Strategy strategy = Strategy::automatic;
  int64_t replicas = 0;
  Engine collective = Engine::automatic;
  double bucket_mb = 25;
  bool autotune = false;
  double top_k = 0;
  int64_t min_workers = 0;
  int64_t max_workers = 0;
  bool allow_split = false;
  std::string membership = "auto";
  std::string etcd_ca;
  std::string etcd_cert;
  std::string etcd_key;
  std::string etcd_user;
  Mode mode = Mode::sync;
  int64_t max_staleness = -1;
  int64_t aggregate = 0;
  Reduce reduce = Reduce::mean;
  Apply apply = Apply::locked;
  bool evaluator = false;
  WhoEvaluates evaluate = WhoEvaluates::chief;
  int64_t global_batch = 0;
  Sharding shard = Sharding::by_example;
  Placement placement = Placement::balanced;
  WireElement wire = WireElement::f32;
  Durability durability = Durability::process;
  bool contributions = false;
  std::string layout;
  std::string cluster;
  std::string task;
  std::string tls;
  bool insecure = false;
  int64_t restarts = 10;
  double patience = 600;
  double start_wait = 60;
  double cpu_quota = 0;
  std::string emulate;
  std::string faults;
  ReportForm report = ReportForm::text;
};

/// Access to an enum member: its value is the position of its name in SettingDef::choices.
struct EnumMember {
  size_t (*get)(const Settings& settings);
  void (*set)(Settings& settings, size_t value);
};

using Member =
    std::variant<bool Settings::*, int64_t Settings::*, uint64_t Settings::*, double Settings::*,
                 std::optional<double> Settings::*, std::string Settings::*, Options Settings::*, EnumMember>;

/// The rule for a setting when a run is resumed.
enum class Keep : uint8_t {
  fixed,     ///< defines the run: cannot change on resume
  free,      ///< may change on resume
  call_only  ///< for one call: not in YAML, not in config.yaml
};

/// The help that lists a setting.
enum class In : uint8_t {
  help,     ///< `lockstep train --help`: about twenty flags that most people need
  help_all  ///< only `lockstep train --help-all`
};

struct SettingDef {
  std::string_view name;  ///< "eval-every": the flag is --eval-every, the YAML key eval_every or eval-every
  In shown;
  std::string_view group;  ///< heading in --help and the documentation
  std::string_view value;  ///< placeholder of the value in help: "N", "DIR", "all|none|N"
  std::string_view help;
  Member member;
  Keep keep = Keep::free;
  double least = 0;  ///< least number; `above` excludes it
  double most = 0;   ///< largest number; least == most: only the type's limits
  bool above = false;
  bool model_default = false;                ///< each model has its own default
  std::vector<std::string> choices = {};     ///< for texts, empty: any; for enums, in their order
  bool (*also)(std::string_view) = nullptr;  ///< accepts further texts besides the choices
  std::string_view also_text = "";           ///< description of those texts
};

/// Returns all settings, in the order of the help.
const std::vector<SettingDef>& settings_table();
/// Returns the setting of that name, hyphens and underscores alike, or nullptr.
const SettingDef* find_setting(std::string_view name);
/// Returns " (did you mean 'x'?)" for an unknown name.
std::string setting_hint(std::string_view name);
/// Returns the name as a YAML key: eval_every.
std::string yaml_key(const SettingDef& def);

/// Returns the value as text, as a user would give it; "" for an optional one that is unset.
std::string value_text(const Settings& settings, const SettingDef& def);
/// Returns the value of the setting of that name, which must exist.
std::string value_text(const Settings& settings, std::string_view name);
/// Sets the value from text; options add to existing ones. Throws UsageError "WHERE: 'text' is not ...; ALLOWED", where
/// WHERE names the setting.
void assign(Settings& settings, const SettingDef& def, std::string_view text, const std::string& where);
/// Returns true if the schedule ends after decay_steps, by default at the end of training.
bool decays_to_the_end(const Settings& settings);
/// Returns the allowed values: "a whole number from 1 to 1000000", "one of sgd, momentum, adam".
std::string allowed_text(const SettingDef& def);
/// Returns the default as text; a setting with a default per model says so.
std::string default_text(const SettingDef& def);

}  // namespace lockstep::settings
