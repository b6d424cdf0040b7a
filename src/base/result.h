// Result<T>: a value or a failure; Status: success or a failure. For paths where failing is ordinary (network, other
// processes). A failure carries a chain of context, innermost first; each layer adds a line with `because`. Plain
// values; no threads.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::base {

struct Failure {
  std::string message;
  bool usage = false;  ///< what the user asked for cannot be

  /// The same failure seen from one layer further out: "outer: inner".
  [[nodiscard]] Failure because(const std::string& outer) && { return {outer + ": " + message, usage}; }
  /// Throws it as an Error or UsageError: for callers above the network.
  [[noreturn]] void raise() const {
    if (usage) throw UsageError(message);
    throw Error(message);
  }
};

/// Success, unless it is made of a failure.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Failure failure) : failure_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }
  /// Only where it is no success.
  [[nodiscard]] const Failure& failure() const { return *failure_; }

  void or_throw() const {
    if (failure_) failure_->raise();
  }

 private:
  std::optional<Failure> failure_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor)
  Result(Failure failure) : failure_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() { return *value_; }
  [[nodiscard]] const T& value() const { return *value_; }
  /// Only where there is no value.
  [[nodiscard]] const Failure& failure() const { return failure_; }

  /// The value, or the failure thrown.
  T value_or_throw() && {
    if (!ok()) failure_.raise();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Failure failure_;
};

}  // namespace lockstep::base
