// Reads a lab's database.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/suggest.h"
#include "lab/database_impl.h"
#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

using Json = nlohmann::ordered_json;

Values as_values(const std::string& text) {
  const Json object = base::parse_json_or_discard<Json>(text);
  Values values;
  if (!object.is_object()) return values;
  for (const auto& [name, value] : object.items())
    values.emplace_back(name, value.is_string() ? value.get<std::string>() : "");
  return values;
}

Environment environment_of(const std::string& text) {
  const Json object = base::parse_json_or_discard<Json>(text);
  Environment e;
  if (!object.is_object()) return e;
  const auto string = [&](const char* key) {
    return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
  };
  const auto number = [&](const char* key) {
    return object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0;
  };
  e.program = string("program");
  e.host = string("host");
  e.system = string("system");
  e.processor = string("processor");
  e.cores = static_cast<int>(number("cores"));
  e.memory_bytes = number("memory_bytes");
  e.compiler = string("compiler");
  return e;
}

RunState state_of(const std::string& text) {
  for (const RunState state : {RunState::planned, RunState::running, RunState::done, RunState::failed}) {
    if (name(state) == text) return state;
  }
  return RunState::planned;
}

/// Returns whether a lab runs the experiment of that folder now. A killed lab leaves runs marked "running".
bool has_lab(const std::string& folder) {
  const base::FileHandle lock(::open((folder + "/.lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock.open() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

std::vector<ExperimentRow> Database::experiments() const {
  Statement all(impl_->db(),
                "SELECT e.id, e.name, e.scale, e.title, e.folder, e.started, coalesce(max(r.ended), 0), "
                "sum(r.state = 'planned'), sum(r.state = 'running'), sum(r.state = 'done'), sum(r.state = 'failed'), "
                "sum(r.state = 'running' AND EXISTS (SELECT 1 FROM measured m WHERE m.run = r.id)) "
                "FROM experiment e LEFT JOIN run r ON r.experiment = e.id AND r.place IS NOT NULL "
                "GROUP BY e.id ORDER BY e.name, e.scale");
  std::vector<ExperimentRow> rows;
  while (all.row()) {
    const auto count = [&](int column) { return static_cast<int>(all.whole(column)); };
    rows.push_back({all.whole(0), all.text(1), all.text(2), all.text(3), impl_->found(all.text(4)), all.number(5),
                    all.number(6), count(7), count(8), count(9), count(10)});
    ExperimentRow& row = rows.back();
    if (row.running == 0 || has_lab(row.folder)) continue;
    const int kept = count(11);  // finished runs that were to be made again
    row.done += kept;
    row.planned += std::exchange(row.running, 0) - kept;
  }
  return rows;
}

ExperimentRow Database::find(const std::string& wanted, const std::string& scale) const {
  const std::vector<ExperimentRow> all = experiments();
  const ExperimentRow* best = nullptr;
  std::vector<std::string> names;
  for (const ExperimentRow& row : all) {
    const std::string full = row.scale.empty() ? row.name : row.name + "-" + row.scale;
    names.push_back(full);
    const bool fits =
        (row.name == wanted && (scale.empty() || scale == row.scale)) || (full == wanted && scale.empty());
    if (fits && (best == nullptr || full == wanted || row.ended > best->ended)) best = &row;
  }
  if (best != nullptr) return *best;
  const std::string asked = scale.empty() ? wanted : wanted + "-" + scale;
  if (names.empty()) throw UsageError(fmt::format("no experiment '{}': this lab has none", asked));
  throw UsageError(fmt::format("no experiment '{}' in this lab{}", asked, base::hint(asked, names)));
}

void Database::Impl::read_measured(int64_t experiment, std::map<int64_t, RunMeasured>& all) const {
  std::map<std::pair<int64_t, std::string>, size_t> places;
  Statement roles(db_,
                  "SELECT o.run, o.role, o.node FROM role o JOIN run r ON r.id = o.run WHERE r.experiment = ? "
                  "ORDER BY o.run, o.place");
  roles.bind(experiment);
  while (roles.row()) {
    RunMeasured& run = all[roles.whole(0)];
    places[{roles.whole(0), roles.text(1)}] = run.roles.size();
    run.roles.push_back({roles.text(1), roles.text(2), {}});
  }
  Statement values(db_,
                   "SELECT m.run, m.role, m.field, m.value FROM measured m JOIN run r ON r.id = m.run "
                   "WHERE r.experiment = ?");
  values.bind(experiment);
  while (values.row()) {
    RunMeasured& run = all[values.whole(0)];
    const auto place = places.find({values.whole(0), values.text(1)});
    Measured& into = place == places.end() ? run.values : run.roles[place->second].values;
    into[values.text(2)] = values.number(3);
  }
}

std::vector<RunResult> Database::Impl::runs(int64_t experiment) const {
  std::map<int64_t, RunMeasured> measured;
  read_measured(experiment, measured);
  Statement all(
      db_,
      "SELECT id, key, run_group, label, repeat, settings, varied, tags, emulate, faults, hosts, state, reason, "
      "folder, started, ended FROM run WHERE experiment = ? AND place IS NOT NULL ORDER BY place");
  all.bind(experiment);
  std::vector<RunResult> results;
  while (all.row()) {
    RunResult run;
    run.plan.key = all.text(1);
    run.plan.group = all.text(2);
    run.plan.label = all.text(3);
    run.plan.repeat = static_cast<int>(all.whole(4));
    run.plan.settings = as_values(all.text(5));
    run.plan.varied = as_values(all.text(6));
    run.plan.tags = as_values(all.text(7));
    run.plan.cluster = {all.text(8), all.text(9), all.text(10)};
    run.state = state_of(all.text(11));
    run.reason = all.text(12);
    run.folder = found(all.text(13));
    run.started = all.number(14);
    run.ended = all.number(15);
    run.measured = measured[all.whole(0)];
    results.push_back(std::move(run));
  }
  return results;
}

Results Database::results(int64_t experiment) const {
  const Sqlite& db = impl_->db();
  Statement row(db, "SELECT scale, folder, file, text, command, environment, started FROM experiment WHERE id = ?");
  if (!row.bind(experiment).row()) throw UsageError(fmt::format("{}: has no experiment {}", db.path(), experiment));
  Values reported;
  Statement texts(db, "SELECT name, text FROM reported WHERE experiment = ?");
  texts.bind(experiment);
  while (texts.row()) reported.emplace_back(texts.text(0), texts.text(1));
  Results results;
  try {
    results.experiment = parse_experiment(row.text(3), row.text(2), row.text(0), {.reported = &reported});
  } catch (const UsageError& error) {
    throw DataError(fmt::format("{}: a stored experiment cannot be read: {}", db.path(), error.what()));
  }
  results.folder = impl_->found(row.text(1));
  results.command = row.text(4);
  results.environment = environment_of(row.text(5));
  results.started = row.number(6);
  results.runs = impl_->runs(experiment);
  const bool running = has_lab(results.folder);
  for (RunResult& run : results.runs) {
    if (run.state != RunState::running || running) continue;
    run.state = run.measured.values.empty() ? RunState::planned : RunState::done;
  }
  for (const RunResult& run : results.runs) results.ended = std::max(results.ended, run.ended);
  return results;
}

}  // namespace lockstep::lab
