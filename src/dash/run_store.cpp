#include "dash/run_store.h"

#include <algorithm>

#include "dash/run_files.h"
#include "dash/run_json.h"

namespace lockstep::dash {
namespace {

constexpr size_t kMostRuns = 32;
/// A running run is read again after this time: a process that dies writes nothing.
constexpr std::chrono::seconds kRunningLasts{2};
/// Reading the growing files of a run takes at most a fifth of the time.
constexpr int kRestPerRead = 4;

}  // namespace

std::string run_id(const std::string& experiment, const std::string& name) {
  if (!experiment.empty()) return experiment + "~" + name;
  return name.find('~') == std::string::npos ? name : "~" + name;
}

std::string experiment_of(const std::string& id) {
  const size_t place = id.find('~');
  return place == std::string::npos ? "" : id.substr(0, place);
}

RunStore::RunStore(std::string runs_dir, std::string lab_dir)
    : runs_dir_(std::move(runs_dir)), lab_dir_(std::move(lab_dir)) {}

std::vector<RunPlace> RunStore::places() const {
  std::vector<RunPlace> found;
  for (const std::string& name : folders_in(runs_dir_)) {
    found.push_back({run_id("", name), runs_dir_ + "/" + name, ""});
  }
  for (const std::string& experiment : folders_in(lab_dir_)) {
    const std::string folder = lab_dir_ + "/" + experiment + "/runs";
    // The lab itself never makes such a name.
    if (experiment.find('~') != std::string::npos || !lies_within(folder, lab_dir_)) continue;
    for (const std::string& name : folders_in(folder)) {
      found.push_back({run_id(experiment, name), folder + "/" + name, experiment});
    }
  }
  return found;
}

std::set<std::string> RunStore::ids() const {
  std::set<std::string> ids;
  for (const RunPlace& place : places()) {
    if (stamp_of(place.path)) ids.insert(place.id);
  }
  return ids;
}

std::optional<std::string> RunStore::experiment_folder(const std::string& name) const {
  const std::vector<std::string> names = folders_in(lab_dir_);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return lab_dir_ + "/" + name;
}

void RunStore::read_row(const RunPlace& place, uint64_t stamp, double changed, KeptRow& kept) {
  const auto begin = Clock::now();
  RunRow row{place, records::RunState::broken, changed, "", {}};
  try {
    const records::RunRecord run = records::read_run(place.path);
    row.state = run.state;
    row.json = row_json(place, run, changed);
    row.values = values_of(run);
  } catch (const std::exception& error) {
    row.json = damaged_row_json(place, error.what(), changed);
    row.values["name"].text = std::filesystem::path(place.path).filename().string();
    row.values["state"] = records::state_value(row.state, "");
  }
  if (!place.experiment.empty()) row.values["experiment"].text = place.experiment;
  const bool same = kept.row && kept.stamp == stamp && kept.row->json == row.json;
  kept.stamp = stamp;
  kept.look_again = Clock::now() + kRestPerRead * (Clock::now() - begin);
  if (same) return;
  kept.version = ++version_;
  kept.row = std::make_shared<const RunRow>(std::move(row));
}

void RunStore::refresh() {
  std::set<std::string> there;
  for (const RunPlace& place : places()) {
    const std::optional<Stamp> stamp = stamp_of(place.path);
    if (!stamp) continue;
    there.insert(place.id);
    KeptRow& kept = rows_[place.id];
    const bool running = kept.row && kept.row->state == records::RunState::running;
    const bool changed = kept.stamp != stamp->hash && Clock::now() >= kept.look_again;
    const bool old = running && Clock::now() >= kept.look_again + kRunningLasts;
    if (!kept.row || changed || old) read_row(place, stamp->hash, stamp->changed, kept);
  }
  for (const auto& [id, kept] : rows_) {
    if (!there.contains(id)) gone_.insert(id);
  }
  std::erase_if(rows_, [&](const auto& entry) { return !there.contains(entry.first); });
}

std::vector<RowPtr> RunStore::rows() {
  const base::MutexLock lock(rows_mutex_);
  refresh();
  std::vector<RowPtr> result;
  for (const auto& [id, kept] : rows_) result.push_back(kept.row);
  return result;
}

std::vector<std::string> RunStore::changes() {
  const base::MutexLock lock(rows_mutex_);
  refresh();
  forget_gone_runs();
  std::set<std::string> changed;
  changed.swap(gone_);
  for (const auto& [id, kept] : rows_) {
    if (kept.version > told_) changed.insert(id);
  }
  told_ = version_;
  return {changed.begin(), changed.end()};
}

void RunStore::forget_gone_runs() {
  const base::MutexLock lock(runs_mutex_);
  for (const KeptRun& kept : runs_) {
    if (!rows_.contains(kept.id)) gone_.insert(kept.id);
  }
  runs_.remove_if([&](const KeptRun& kept) {
    rows_mutex_.assert_held();
    return !rows_.contains(kept.id);
  });
}

RunPtr RunStore::find(const std::string& id) {
  const std::vector<RunPlace> all = places();
  const auto place = std::find_if(all.begin(), all.end(), [&](const RunPlace& p) { return p.id == id; });
  if (place == all.end()) return nullptr;
  const std::optional<Stamp> stamp = stamp_of(place->path);
  if (!stamp) return nullptr;
  {
    const base::MutexLock lock(runs_mutex_);
    const auto kept = std::find_if(runs_.begin(), runs_.end(), [&](const KeptRun& k) { return k.id == id; });
    if (kept != runs_.end()) {
      runs_.splice(runs_.begin(), runs_, kept);
      const bool old = kept->run->state == records::RunState::running && Clock::now() >= kept->read + kRunningLasts;
      if (kept->stamp == stamp->hash && !old) return kept->run;
    }
  }
  RunPtr run;
  try {
    run = std::make_shared<const records::RunRecord>(records::read_run(place->path));
  } catch (const std::exception&) {
    return nullptr;  // removed at this moment
  }
  const base::MutexLock lock(runs_mutex_);
  runs_.remove_if([&](const KeptRun& k) { return k.id == id; });
  runs_.push_front({id, stamp->hash, Clock::now(), run});
  if (runs_.size() > kMostRuns) runs_.pop_back();
  return run;
}

}  // namespace lockstep::dash
