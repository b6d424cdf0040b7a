#include "lab/sqlite.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::lab {
namespace {

constexpr int kBusyMilliseconds = 10'000;

}  // namespace

Sqlite::Sqlite(std::string path, bool write) : path_(std::move(path)) {
  sqlite3* opened = nullptr;
  const int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path_.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);
  check(code);
  sqlite3_extended_result_codes(opened, 1);
  sqlite3_busy_timeout(opened, kBusyMilliseconds);
}

void Sqlite::check(int code) const {
  const int kind = code & 0xFF;
  if (kind == SQLITE_OK || kind == SQLITE_ROW || kind == SQLITE_DONE) return;
  const std::string reason = database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_.get());
  switch (kind) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR:
      throw DataError(fmt::format("{}: is damaged, or not a lab's database: {}", path_, reason));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw IoError(fmt::format("{}: another process keeps it locked", path_));
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    default:
      throw IoError(fmt::format("cannot use {}: {}", path_, reason));
  }
}

void Sqlite::execute(const char* sql) const { check(sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr)); }

int64_t Sqlite::single(const char* sql) const {
  Statement statement(*this, sql);
  return statement.row() ? statement.whole(0) : 0;
}

Statement::Statement(const Sqlite& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* made = nullptr;
  database_.check(sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &made, nullptr));
  statement_.reset(made);
}

Statement& Statement::bind(std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  database_.check(
      sqlite3_bind_text(statement_.get(), next_++, data, static_cast<int>(text.size()), SQLITE_TRANSIENT));  // NOLINT
  return *this;
}

Statement& Statement::bind(double number) {
  database_.check(sqlite3_bind_double(statement_.get(), next_++, number));
  return *this;
}

Statement& Statement::bind(int64_t number) {
  database_.check(sqlite3_bind_int64(statement_.get(), next_++, number));
  return *this;
}

bool Statement::row() {
  const int code = sqlite3_step(statement_.get());
  database_.check(code);
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (row()) {
  }
  database_.check(sqlite3_reset(statement_.get()));
  next_ = 1;
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (bytes == nullptr) return "";
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

double Statement::number(int column) const { return sqlite3_column_double(statement_.get(), column); }
int64_t Statement::whole(int column) const { return sqlite3_column_int64(statement_.get(), column); }

Transaction::~Transaction() {
  if (!done_) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  done_ = true;
}

}  // namespace lockstep::lab
