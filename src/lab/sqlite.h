// SQLite with owned handles and exceptions: DataError "FILE: ..." for a damaged file, IoError for one that cannot be
// read or written. Statements always take parameters. For one thread.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::lab {

class Sqlite;

/// A prepared statement. Parameters are bound in order; columns are read in order.
class Statement {
 public:
  Statement(const Sqlite& database, std::string_view sql);

  Statement& bind(std::string_view text);
  Statement& bind(double number);
  Statement& bind(int64_t number);
  /// Returns whether there is another row.
  bool row();
  /// Runs the statement to its end, so that it can be bound again.
  void run();

  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] int64_t whole(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  const Sqlite& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
};

class Sqlite {
 public:
  Sqlite(std::string path, bool write);

  void execute(const char* sql) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] sqlite3* get() const { return database_.get(); }
  /// Throws for a failure code of SQLite.
  void check(int code) const;
  /// Returns the only value of a query.
  [[nodiscard]] int64_t single(const char* sql) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

/// A transaction: rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(const Sqlite& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  const Sqlite& database_;
  bool done_ = false;
};

}  // namespace lockstep::lab
