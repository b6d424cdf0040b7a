// Merges a plan with the runs of a lab: a run whose training is unchanged keeps its result, even under a new key.
#include <algorithm>
#include <set>

#include "lab/database_impl.h"
#include "lab/digest.h"

namespace lockstep::lab {
namespace {

std::vector<PlannedRow> planned_rows(const Experiment& experiment) {
  std::vector<PlannedRow> all;
  for (const Group& group : experiment.groups) {
    for (const RunPlan& plan : group.runs) all.push_back({&plan, digest_of(plan), nullptr});
  }
  return all;
}

}  // namespace

std::vector<KeptRow> Database::Impl::kept_rows(int64_t experiment) const {
  // A run that was to be made again keeps its earlier result until there is a new one.
  Statement all(db_, R"(
    SELECT id, key, digest, CASE WHEN state <> 'running' THEN state
      WHEN EXISTS (SELECT 1 FROM measured m WHERE m.run = run.id) THEN 'done' ELSE 'planned' END
    FROM run WHERE experiment = ? ORDER BY place IS NULL, place, id)");
  all.bind(experiment);
  std::vector<KeptRow> rows;
  while (all.row()) rows.push_back({all.whole(0), all.text(1), all.text(2), all.text(3)});
  return rows;
}

std::vector<PlannedRow> Database::Impl::matched(const Experiment& experiment, const std::vector<KeptRow>& kept) {
  std::vector<PlannedRow> planned = planned_rows(experiment);
  std::set<const KeptRow*> taken;
  const auto take = [&](const auto& name_of_row, const auto& name_of_run) {
    std::multimap<std::string, const KeptRow*> left;
    for (const KeptRow& row : kept) {
      const std::string name = name_of_row(row);
      if (!name.empty() && !taken.contains(&row)) left.emplace(name, &row);
    }
    for (PlannedRow& run : planned) {
      const auto found = run.row == nullptr ? left.find(name_of_run(run)) : left.end();
      if (found == left.end()) continue;
      run.row = found->second;
      taken.insert(run.row);
      left.erase(found);
    }
  };
  take([](const KeptRow& row) { return row.state == "done" ? row.key + " " + row.digest : ""; },
       [](const PlannedRow& run) { return run.plan->key + " " + run.digest; });
  take([](const KeptRow& row) { return row.state == "done" ? row.digest : ""; },
       [](const PlannedRow& run) { return run.digest; });
  take([](const KeptRow& row) { return row.key; }, [](const PlannedRow& run) { return run.plan->key; });
  return planned;
}

/// Renames runs whose keys change or that another run now needs: keys are unique.
void Database::Impl::free_keys(const std::vector<KeptRow>& kept, const std::vector<PlannedRow>& planned) const {
  std::map<std::string, const KeptRow*> owners;
  for (const PlannedRow& run : planned) owners[run.plan->key] = run.row;
  std::set<const KeptRow*> renamed;
  for (const PlannedRow& run : planned) {
    if (run.row != nullptr && run.row->key != run.plan->key) renamed.insert(run.row);
  }
  for (const KeptRow& row : kept) {
    const auto owner = owners.find(row.key);
    const bool lost = owner != owners.end() && owner->second != &row;
    if (!lost && !renamed.contains(&row)) continue;
    Statement(db_, "UPDATE run SET key = key || '~' || id WHERE id = ?").bind(row.id).run();
  }
}

void Database::Impl::plan_run(int64_t experiment, const PlannedRow& run, int64_t place, bool chosen) const {
  const bool same = run.row != nullptr && run.row->digest == run.digest;
  const bool ended = run.row != nullptr && (run.row->state == "done" || run.row->state == "failed");
  if (ended && !same && !chosen) {
    // The row stays as it was made.
    Statement(db_, "UPDATE run SET place = ?, state = ? WHERE id = ?")
        .bind(place)
        .bind(run.row->state)
        .bind(run.row->id)
        .run();
    return;
  }
  const RunPlan& plan = *run.plan;
  const std::string state = same && ended ? run.row->state : "planned";
  Statement write(db_, run.row == nullptr ? R"(
    INSERT INTO run (experiment, key, place, run_group, label, repeat, settings, varied, tags, emulate, faults, hosts,
                     digest, state)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14))"
                                          : R"(
    UPDATE run SET experiment = ?1, key = ?2, place = ?3, run_group = ?4, label = ?5, repeat = ?6, settings = ?7,
      varied = ?8, tags = ?9, emulate = ?10, faults = ?11, hosts = ?12, digest = ?13, state = ?14 WHERE id = ?15)");
  write.bind(experiment).bind(plan.key).bind(place).bind(plan.group).bind(plan.label).bind(int64_t{plan.repeat});
  write.bind(json_text(plan.settings)).bind(json_text(plan.varied)).bind(json_text(plan.tags));
  write.bind(plan.cluster.emulate).bind(plan.cluster.faults).bind(plan.cluster.hosts).bind(run.digest).bind(state);
  if (run.row != nullptr) write.bind(run.row->id);
  write.run();
  if (run.row == nullptr || state != "planned") return;
  clear(run.row->id);
  Statement(db_, "UPDATE run SET reason = '', started = 0, ended = 0 WHERE id = ?").bind(run.row->id).run();
}

void Database::Impl::plan_runs(int64_t id, const Experiment& experiment, const std::vector<std::string>* only) const {
  const std::vector<KeptRow> kept = kept_rows(id);
  const std::vector<PlannedRow> planned = matched(experiment, kept);
  Statement(db_, "UPDATE run SET place = NULL WHERE experiment = ?").bind(id).run();
  free_keys(kept, planned);
  int64_t place = 0;
  for (const PlannedRow& run : planned) {
    const bool chosen = only == nullptr || std::find(only->begin(), only->end(), run.plan->key) != only->end();
    plan_run(id, run, place++, chosen);
  }
}

std::set<std::string> Database::finished(const Experiment& experiment) const {
  Statement find(impl_->db(), "SELECT id FROM experiment WHERE name = ? AND scale = ?");
  if (!find.bind(experiment.name).bind(experiment.scale).row()) return {};
  const std::vector<KeptRow> kept = impl_->kept_rows(find.whole(0));
  std::set<std::string> keys;
  for (const PlannedRow& run : Impl::matched(experiment, kept)) {
    if (run.row != nullptr && run.row->state == "done" && run.row->digest == run.digest) keys.insert(run.plan->key);
  }
  return keys;
}

}  // namespace lockstep::lab
