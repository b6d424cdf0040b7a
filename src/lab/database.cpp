#include "lab/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/suggest.h"
#include "lab/database_impl.h"
#include "lab/sqlite.h"
#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kApplication = 0x4C4F434B;  ///< "LOCK"
constexpr int64_t kVersion = 1;

// Described in docs/formats.md. Any change needs another kVersion.
constexpr const char* kSchema = R"(
CREATE TABLE experiment (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, scale TEXT NOT NULL, title TEXT NOT NULL, folder TEXT NOT NULL,
  file TEXT NOT NULL, text TEXT NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL, started REAL NOT NULL,
  UNIQUE (name, scale));
CREATE TABLE reported (
  experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE, name TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (experiment, name)) WITHOUT ROWID;
CREATE TABLE run (
  id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE, key TEXT NOT NULL,
  place INTEGER, run_group TEXT NOT NULL, label TEXT NOT NULL, repeat INTEGER NOT NULL, settings TEXT NOT NULL,
  varied TEXT NOT NULL, tags TEXT NOT NULL, emulate TEXT NOT NULL, faults TEXT NOT NULL, hosts TEXT NOT NULL,
  digest TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'done', 'failed')),
  reason TEXT NOT NULL DEFAULT '', folder TEXT NOT NULL DEFAULT '', started REAL NOT NULL DEFAULT 0,
  ended REAL NOT NULL DEFAULT 0,
  UNIQUE (experiment, key));
CREATE TABLE role (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, role TEXT NOT NULL, place INTEGER NOT NULL, node TEXT NOT NULL,
  PRIMARY KEY (run, role)) WITHOUT ROWID;
CREATE TABLE measured (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, role TEXT NOT NULL, field TEXT NOT NULL, value REAL NOT NULL,
  PRIMARY KEY (run, role, field)) WITHOUT ROWID;
PRAGMA application_id = 1280262987;
PRAGMA user_version = 1;
)";
static_assert(kApplication == 1280262987 && kVersion == 1);

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string file_of(const std::string& lab_dir) { return lab_dir + "/lab.sqlite"; }

/// Dumps JSON; bytes that are not UTF-8 become U+FFFD.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string environment_text(const Environment& e) {
  return dumped({{"program", e.program},
                 {"host", e.host},
                 {"system", e.system},
                 {"processor", e.processor},
                 {"cores", e.cores},
                 {"memory_bytes", e.memory_bytes},
                 {"compiler", e.compiler}});
}

}  // namespace

std::string json_text(const Values& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return dumped(object);
}

Database::Impl::Impl(const std::string& lab_dir, bool write) : lab_dir_(lab_dir), db_(file_of(lab_dir), write) {
  db_.execute("PRAGMA foreign_keys = ON");
  if (write) db_.execute("PRAGMA journal_mode = WAL");
  check_version(write);
}

std::string Database::Impl::kept(const std::string& path) const {
  const std::string prefix = lab_dir_ + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

std::string Database::Impl::found(const std::string& path) const {
  return path.empty() || fs::path(path).is_absolute() ? path : lab_dir_ + "/" + path;
}

int64_t Database::Impl::run_id(int64_t experiment, const std::string& key) const {
  Statement find(db_, "SELECT id FROM run WHERE experiment = ? AND key = ?");
  if (!find.bind(experiment).bind(key).row()) throw Error(fmt::format("{}: has no run '{}'", db_.path(), key));
  return find.whole(0);
}

void Database::Impl::clear(int64_t run) const {
  Statement(db_, "DELETE FROM measured WHERE run = ?").bind(run).run();
  Statement(db_, "DELETE FROM role WHERE run = ?").bind(run).run();
}

void Database::Impl::add_measured(int64_t run, const RunMeasured& measured) const {
  Statement add(db_, "INSERT INTO measured VALUES (?, ?, ?, ?)");
  const auto add_all = [&](const std::string& role, const Measured& values) {
    for (const auto& [field, value] : values) add.bind(run).bind(role).bind(field).bind(value).run();
  };
  add_all("", measured.values);
  int64_t place = 0;
  for (const RoleMeasured& role : measured.roles) {
    Statement(db_, "INSERT INTO role VALUES (?, ?, ?, ?)")
        .bind(run)
        .bind(role.role)
        .bind(place++)
        .bind(role.node)
        .run();
    add_all(role.role, role.values);
  }
}

void Database::Impl::set_state(int64_t run, RunState state, const std::string& reason) const {
  Statement(db_, "UPDATE run SET state = ?, reason = ?, ended = ? WHERE id = ?")
      .bind(name(state))
      .bind(reason)
      .bind(now())
      .bind(run)
      .run();
}

void Database::Impl::check_version(bool write) const {
  const int64_t application = db_.single("PRAGMA application_id");
  const int64_t version = db_.single("PRAGMA user_version");
  if (application == kApplication) {
    if (version > kVersion) {
      throw DataError(fmt::format("{}: was written by a newer lockstep (format {}; this one knows up to {})",
                                  db_.path(), version, kVersion));
    }
    if (write && db_.single("SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check <> 'ok'") != 0) {
      throw DataError(fmt::format("{}: is damaged; move it away (run folders stay readable without it)", db_.path()));
    }
    return;
  }
  if (application != 0 || version != 0 || db_.single("SELECT count(*) FROM sqlite_schema") != 0) {
    throw DataError(fmt::format("{}: is another program's database", db_.path()));
  }
  if (!write) throw DataError(fmt::format("{}: is empty", db_.path()));
  Transaction transaction(db_);
  // Another lab may have created it meanwhile.
  if (db_.single("PRAGMA application_id") == 0) db_.execute(kSchema);
  transaction.commit();
}

Database::Database(const std::string& lab_dir, Access access) {
  if (access == Access::write) {
    base::make_directories(lab_dir);
  } else if (!is_lab(lab_dir)) {
    throw UsageError(fmt::format("{}: no experiment has been run there; `lockstep lab run FILE` runs one", lab_dir));
  }
  impl_ = std::make_unique<Impl>(lab_dir, access == Access::write);
}
Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

bool is_lab(const std::string& lab_dir) {
  std::error_code ignored;
  return fs::is_regular_file(file_of(lab_dir), ignored);
}

int64_t Database::plan(const Experiment& experiment, const std::string& folder, const Environment& environment,
                       const std::string& command, const std::vector<std::string>* only) {
  const Sqlite& db = impl_->db();
  Transaction transaction(db);
  Statement(db, R"(
    INSERT INTO experiment (name, scale, title, folder, file, text, command, environment, started)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (name, scale) DO UPDATE SET title = ?3, folder = ?4, file = ?5, text = ?6, command = ?7, environment = ?8)")
      .bind(experiment.name)
      .bind(experiment.scale)
      .bind(experiment.title)
      .bind(impl_->kept(folder))
      .bind(experiment.file)
      .bind(experiment.text)
      .bind(command)
      .bind(environment_text(environment))
      .bind(now())
      .run();
  Statement find(db, "SELECT id FROM experiment WHERE name = ? AND scale = ?");
  find.bind(experiment.name).bind(experiment.scale).row();
  const int64_t id = find.whole(0);
  Statement(db, "DELETE FROM reported WHERE experiment = ?").bind(id).run();
  for (const auto& [name, text] : experiment.reported) {
    Statement(db, "INSERT INTO reported VALUES (?, ?, ?)").bind(id).bind(name).bind(text).run();
  }
  impl_->plan_runs(id, experiment, only);
  transaction.commit();
  return id;
}

void Database::started(int64_t experiment, const std::string& run_key, const std::string& folder) {
  const int64_t run = impl_->run_id(experiment, run_key);
  const Sqlite& db = impl_->db();
  Transaction transaction(db);
  Statement state(db, "SELECT state = 'done' FROM run WHERE id = ?");
  if (state.bind(run).row() && state.whole(0) != 0) {
    Statement(db, "UPDATE run SET state = 'running' WHERE id = ?").bind(run).run();
  } else {
    impl_->clear(run);
    Statement(db, "UPDATE run SET state = 'running', reason = '', folder = ?, started = ?, ended = 0 WHERE id = ?")
        .bind(impl_->kept(folder))
        .bind(now())
        .bind(run)
        .run();
  }
  transaction.commit();
}

void Database::done(int64_t experiment, const std::string& run_key, const RunMeasured& measured,
                    const std::string& folder, double seconds) {
  const int64_t run = impl_->run_id(experiment, run_key);
  const Sqlite& db = impl_->db();
  Transaction transaction(db);
  impl_->clear(run);
  impl_->add_measured(run, measured);
  if (!folder.empty()) {
    Statement(db, "UPDATE run SET folder = ?, started = ? WHERE id = ?")
        .bind(impl_->kept(folder))
        .bind(now() - seconds)
        .bind(run)
        .run();
  }
  impl_->set_state(run, RunState::done, "");
  transaction.commit();
}

void Database::measured(int64_t experiment, const std::string& run_key, const RunMeasured& measured) {
  const int64_t run = impl_->run_id(experiment, run_key);
  Transaction transaction(impl_->db());
  impl_->clear(run);
  impl_->add_measured(run, measured);
  transaction.commit();
}

void Database::moved(int64_t experiment, const std::string& run_key, const std::string& folder) {
  Statement(impl_->db(), "UPDATE run SET folder = ? WHERE id = ?")
      .bind(impl_->kept(folder))
      .bind(impl_->run_id(experiment, run_key))
      .run();
}

bool Database::has_folder(const std::string& folder) const {
  return Statement(impl_->db(), "SELECT 1 FROM run WHERE folder = ?").bind(impl_->kept(folder)).row();
}

std::string Database::folder_for(int64_t experiment, const std::string& run_key, const std::string& wanted) const {
  Statement own(impl_->db(), "SELECT folder FROM run WHERE id = ?");
  own.bind(impl_->run_id(experiment, run_key)).row();
  if (!own.text(0).empty()) return impl_->found(own.text(0));
  std::string free = wanted;
  for (int number = 2; has_folder(free); ++number) free = fmt::format("{}-{}", wanted, number);
  return free;
}

void Database::failed(int64_t experiment, const std::string& run_key, const std::string& reason) {
  const int64_t run = impl_->run_id(experiment, run_key);
  Transaction transaction(impl_->db());
  impl_->clear(run);
  impl_->set_state(run, RunState::failed, reason);
  transaction.commit();
}

void Database::forget(int64_t experiment, const std::string& run_key) {
  const int64_t run = impl_->run_id(experiment, run_key);
  const Sqlite& db = impl_->db();
  Transaction transaction(db);
  Statement has(db, "SELECT EXISTS (SELECT 1 FROM measured WHERE run = ?)");
  if (has.bind(run).row() && has.whole(0) != 0) {
    Statement(db, "UPDATE run SET state = 'done' WHERE id = ?").bind(run).run();
  } else {
    Statement(db, "UPDATE run SET state = 'planned', reason = '', folder = '', started = 0, ended = 0 WHERE id = ?")
        .bind(run)
        .run();
  }
  transaction.commit();
}

}  // namespace lockstep::lab
