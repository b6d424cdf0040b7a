// Result<T>: a value or a failure. Status: success or a failure. For paths on which failures are ordinary (network,
// other processes). A failure is data: callers decide by its fields, and only people read its message. Plain values; no
// threads.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::base {

/// The kind of a failure, as far as a caller may act on it.
enum class FailureKind : uint8_t {
  other,
  usage,        ///< the user's request is impossible; trying again does not help
  unreachable,  ///< no connection could be made
  refused,      ///< the other side answered with something else
  gone,         ///< a connection, process or group has ended
  timeout,      ///< nothing arrived within the time allowed
  corrupt,      ///< the data received makes no sense
  io,           ///< a system call failed
  limit,        ///< a size or number beyond the limit
  interrupted   ///< this side gave up: the user said so, or the work is no longer needed
};
/// Returns the kind's name: "other", "usage", ...
std::string_view name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::other;
  std::string text = {};                  ///< description of the failure, for people
  std::vector<std::string> roles = {};    ///< roles at fault: "worker:1"; empty: unknown
  std::string address = {};               ///< address of that one role
  std::vector<int> ranks = {};            ///< ranks at fault within a group, if only ranks are known; see `named`
  int error_number = 0;                   ///< errno; 0: none
  std::string path = {};                  ///< file or folder; empty: none
  std::vector<std::string> context = {};  ///< actions under way at the failure, innermost first

  /// Returns an exception's text and kind as a failure.
  static Failure of(const std::exception& error);
  /// Returns the failure with one more layer of context: "outer: inner".
  [[nodiscard]] Failure because(std::string outer) &&;
  /// Returns the failure with its ranks as roles; `names` are by rank. Keeps roles that are known already.
  [[nodiscard]] Failure named(const std::vector<std::string>& names) &&;
  /// Returns one line: the context from the outermost layer in, the roles at fault, the text.
  [[nodiscard]] std::string message() const;
  /// Throws the failure as an Error or UsageError, for callers above the network.
  [[noreturn]] void raise() const;
};

/// Success, or a failure if constructed from one.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Failure failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// Returns the failure. Call it only if there is one.
  [[nodiscard]] const Failure& failure() const { return std::get<Failure>(state_); }

  void or_throw() const {
    if (!ok()) failure().raise();
  }

 private:
  std::variant<std::monostate, Failure> state_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Failure failure)                                                // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(failure)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Returns the value. Call it only on success, and `failure` only otherwise.
  [[nodiscard]] T& value() { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const { return std::get<0>(state_); }
  [[nodiscard]] const Failure& failure() const { return std::get<1>(state_); }

  /// Returns the value, or throws the failure.
  T value_or_throw() && {
    if (!ok()) failure().raise();
    return std::move(value());
  }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace lockstep::base
