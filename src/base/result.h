// Result<T>: a value or a failure, for paths where failing is ordinary (network, other processes).
// A failure carries a chain of context, innermost first; each layer adds a line with `because`.
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
  [[nodiscard]] const Failure& failure() const { return failure_; }

  /// The value, or the failure thrown as an Error or UsageError: for callers above the network.
  T value_or_throw() && {
    if (!ok() && failure_.usage) throw UsageError(failure_.message);
    if (!ok()) throw Error(failure_.message);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Failure failure_;
};

}  // namespace lockstep::base
