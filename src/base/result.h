// Result<T>: a value or a failure; Status: success or a failure. For paths where failing is ordinary (network, other
// processes). A failure is data: callers decide by its fields, and only people read its message. Plain values; no
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

/// What went wrong, as far as a caller may act on it.
enum class FailureKind : uint8_t {
  other,
  usage,        ///< what the user asked for cannot be; trying again does not help
  unreachable,  ///< no connection came about
  refused,      ///< the other side answered something else than was asked for
  gone,         ///< a connection, process or group that was there has ended
  timeout,      ///< nothing came within the time that is allowed
  corrupt,      ///< what came makes no sense
  io,           ///< a call of the system failed
  limit,        ///< a size or number beyond what is allowed
  interrupted   ///< this side gave up, because a user said so or it is no longer needed
};
/// "other", "usage", ...
std::string_view name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::other;
  std::string text = {};                  ///< what went wrong, for people
  std::vector<std::string> roles = {};    ///< whose fault: "worker:1"; empty: unknown
  std::string address = {};               ///< of that one role
  std::vector<int> ranks = {};            ///< whose fault within a group, where only ranks are known; see `named`
  int error_number = 0;                   ///< errno; 0: none
  std::string path = {};                  ///< file or folder; empty: none
  std::vector<std::string> context = {};  ///< what was being done, innermost first

  /// What an exception says, with its kind.
  static Failure of(const std::exception& error);
  /// The same failure seen from one layer further out: "outer: inner".
  [[nodiscard]] Failure because(std::string outer) &&;
  /// The ranks as roles; `names` are by rank. Roles that are known already stay.
  [[nodiscard]] Failure named(const std::vector<std::string>& names) &&;
  /// One line: the context from outside in, whose fault, the text.
  [[nodiscard]] std::string message() const;
  /// Throws it as an Error or UsageError: for callers above the network.
  [[noreturn]] void raise() const;
};

/// Success, unless it is made of a failure.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Failure failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// Only where it is no success.
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

  /// Only where there is one, as the failure only where there is none.
  [[nodiscard]] T& value() { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const { return std::get<0>(state_); }
  [[nodiscard]] const Failure& failure() const { return std::get<1>(state_); }

  /// The value, or the failure thrown.
  T value_or_throw() && {
    if (!ok()) failure().raise();
    return std::move(value());
  }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace lockstep::base
