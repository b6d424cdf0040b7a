#include "records/run_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::records {
namespace {

RunValue number_value(double number) { return {known(number) ? fmt::format("{}", number) : "", number, {}}; }

RunValue text_value(std::string text) { return {std::move(text), kUnknown, {}}; }

RunValue setting_value(const RunRecord& run, const std::string& key) {
  return {run.setting(key), run.number_setting(key), {}};
}

void add_results(RunValues& values, const RunRecord& run) {
  double best = run.summary().number("best_accuracy");
  if (!known(best)) best = largest(run.evals().column("accuracy"));
  values["accuracy"] = number_value(run.test_accuracy());
  values["best_accuracy"] = number_value(best);
  values["loss"] = number_value(run.test_loss());
  values["train_loss"] = number_value(known(run.train_loss()) ? run.train_loss() : run.chief().steps.last("loss"));
  values["steps"] = number_value(run.steps());
  values["epoch"] = number_value(std::fmax(run.chief().steps.last("epoch"), run.evals().last("epoch")));
  values["examples"] = number_value(run.examples());
  values["seconds"] = number_value(run.seconds());
  values["speed"] = number_value(run.examples_per_second());
  values["step_seconds"] = number_value(run.seconds_per_step());
}

/// Returns the start as "2026-11-16T00:30:17Z"; without a summary, the time of the monitor's first line.
std::string started_of(const RunRecord& run) {
  const std::string started = run.summary().text("started");
  const std::span<const double> times = run.chief().monitor.column("time");
  if (!started.empty() || times.empty() || !(times.front() > 0 && times.front() < 1e11)) return started;
  const auto seconds = static_cast<std::time_t>(times.front());
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

RunValues values_of(const RunRecord& run) {
  RunValues values;
  for (const auto& [key, text] : run.settings) values[key] = setting_value(run, key);
  values["name"] = text_value(run.name);
  values["model"] = text_value(run.model());
  values["dataset"] = text_value(run.dataset());
  values["state"] = state_value(run.state, run.summary().text("stop_reason"));
  values["end"] = text_value(run.summary().text("stop_reason"));
  values["how"] = text_value(how_text(run));
  values["workers"] = number_value(static_cast<double>(run.workers()));
  values["servers"] = number_value(static_cast<double>(run.servers()));
  values["started"] = text_value(started_of(run));
  values["host"] = text_value(run.chief().host);
  add_results(values, run);
  values["tag"] = text_value(fmt::format("{}", fmt::join(run.labels.tags, " ")));
  values["tag"].words = run.labels.tags;
  values["note"] = text_value(run.labels.note);
  return values;
}

const std::vector<RunKey>& run_keys() {
  static const std::vector<RunKey> keys{
      {"name", KeyKind::text, "run", "name of the run's folder"},
      {"model", KeyKind::text, "model", "model"},
      {"dataset", KeyKind::text, "data set", "data set"},
      {"state",
       KeyKind::text,
       "state",
       "ended, running, or broken: killed without a summary; also a bad end: interrupted, error, non-finite loss",
       {"ended", "running", "broken", "interrupted", "error", "non-finite loss"}},
      {"end", KeyKind::text, "end", "reason of its end, e.g. epochs, accuracy, interrupted, error"},
      {"how", KeyKind::text, "how", "one process, replicas, ps sync, ps async or all-reduce"},
      {"workers", KeyKind::number, "workers", "number of workers"},
      {"servers", KeyKind::number, "servers", "number of parameter servers"},
      {"accuracy", KeyKind::share, "accuracy", "test accuracy, from 0 to 1 or in %"},
      {"best_accuracy", KeyKind::share, "best", "best test accuracy of all evaluations"},
      {"loss", KeyKind::number, "loss", "test loss"},
      {"train_loss", KeyKind::number, "train loss", "training loss of the last epoch, or the newest one"},
      {"steps", KeyKind::number, "steps", "steps made"},
      {"epoch", KeyKind::number, "epoch", "epoch reached"},
      {"examples", KeyKind::number, "examples", "examples trained on"},
      {"seconds", KeyKind::number, "time", "training time in seconds"},
      {"speed", KeyKind::number, "examples/s", "examples per second"},
      {"step_seconds", KeyKind::number, "time per step", "seconds per step"},
      {"started", KeyKind::time, "started", "start in UTC, e.g. started>2026-11-17"},
      {"host", KeyKind::text, "host", "host of the chief"},
      {"tag", KeyKind::list, "tags", "tags of `lockstep runs tag`"},
      {"note", KeyKind::text, "note", "note of `lockstep runs note`"}};
  return keys;
}

const RunKey* find_run_key(std::string_view name) {
  const auto& keys = run_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const RunKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string known_key(const std::string& name, std::span<const RunValues> runs) {
  std::string key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  if (find_run_key(key) != nullptr) return key;
  const std::string option = "options." + name;
  std::set<std::string> all;
  for (const RunValues& values : runs) {
    if (values.contains(key)) return key;
    if (values.contains(option)) return option;
    for (const auto& [other, value] : values) all.insert(other);
  }
  std::vector<std::string> usual;
  for (const RunKey& one : run_keys()) usual.emplace_back(one.name);
  std::string nearest = base::nearest(key, usual);
  if (nearest.empty()) nearest = base::nearest(key, std::vector<std::string>(all.begin(), all.end()));
  throw UsageError(fmt::format("runs have no '{}'{}", printable(name),
                               nearest.empty() ? "; `lockstep runs --help` lists the keys, and any setting is one"
                                               : " (did you mean '" + nearest + "'?)"));
}

std::string state_text(RunState state) {
  return state == RunState::ended ? "ended" : state == RunState::running ? "running" : "broken";
}

RunValue state_value(RunState state, const std::string& end) {
  RunValue value = text_value(state_text(state));
  value.words = {value.text};
  const std::vector<std::string>& states = find_run_key("state")->choices;
  const bool shown = std::find(states.begin(), states.end(), end) != states.end();
  if (state == RunState::ended && shown && end != value.text) value.words.push_back(end);
  return value;
}

std::string how_text(const RunRecord& run) {
  if (run.all_reduce()) return "all-reduce";
  const std::string mode = run.setting("mode");
  if (run.servers() > 0) return mode.empty() ? "ps" : "ps " + mode;
  return run.workers() > 1 ? "replicas" : "one process";
}

}  // namespace lockstep::records
