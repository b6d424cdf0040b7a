// The errors that Lockstep throws. Each is one readable line that names the place, the value seen and what is allowed.
// The program's main turns them into an exit code. Network paths return base::Result instead.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A graph was built from values whose shapes or types do not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A flag, a setting or a call that is not allowed.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A request for more memory than the machine has.
class MemoryError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A file or message whose content violates its format.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A loss or the parameters became infinite or not a number.
class NonFiniteError : public Error {
 public:
  NonFiniteError(const std::string& text, uint64_t step) : Error(text), step_(step) {}

  /// Number of updates made before the error was seen.
  [[nodiscard]] uint64_t step() const { return step_; }

 private:
  uint64_t step_;
};

/// A call of the system failed: open, read, write, create, connect.
class IoError : public Error {
 public:
  explicit IoError(const std::string& text, int error_number = 0, std::string path = {})
      : Error(text), error_number_(error_number), path_(std::move(path)) {}

  /// The system's errno; 0 if it gave none.
  [[nodiscard]] int error_number() const { return error_number_; }
  /// The file or folder concerned; empty if none.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int error_number_;
  std::string path_;
};

/// This process reached one of its limits: open files, threads, memory. Trying again does not help.
class LimitError : public IoError {
 public:
  using IoError::IoError;
};

}  // namespace lockstep
