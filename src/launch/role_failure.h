// Cause of a failed role or run, as fields to compare and show, and as a line of JSON: from a role to its launcher on
// standard output (--report json), from a run to the lab in a file. Plain values, any thread.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "lockstep/error.h"

namespace lockstep::launch {

struct RoleFailure {
  enum class Kind : uint8_t {
    other,
    usage,      ///< a setting that is not allowed
    data,       ///< a file with invalid content
    io,         ///< the system refused
    limit,      ///< open files, threads or memory: no restart can help
    not_finite  ///< the loss or the parameters became infinite or NaN
  };
  Kind kind = Kind::other;
  std::string role = {};               ///< "worker:1"; empty: the process of the whole run
  int error_number = 0;                ///< errno; 0: unknown
  std::string path = {};               ///< file or folder that failed; empty: none
  std::optional<uint64_t> saved = {};  ///< step of the newest checkpoint that the role could see
  std::optional<uint64_t> step = {};   ///< step at which training failed, if known
  std::string output = {};             ///< the run's folder, if it holds partial output
  std::string text = {};               ///< message for people

  /// True if it is about a file or folder and has the system's reason.
  [[nodiscard]] bool names_place() const { return error_number != 0 && !path.empty(); }
  /// True if both are the same fault. All files of a folder count as one place, because a checkpoint's name contains
  /// its step.
  [[nodiscard]] bool same_fault(const RoleFailure& other) const;
};

/// The failure of a run because of its roles. `what()` is its text and the place of the partial output.
class RunError final : public Error {
 public:
  explicit RunError(RoleFailure failure);
  [[nodiscard]] const RoleFailure& failure() const { return failure_; }

 private:
  RoleFailure failure_;
};

RoleFailure failure_of(const std::exception& error);

/// Returns one line without line end: {"event":"failure","role":...}.
std::string to_json(const RoleFailure& failure);
/// Returns nothing if the line is not a failure. Ignores fields of the wrong type.
std::optional<RoleFailure> parse_failure(const std::string& line);
/// Reads a failure from a file with such a line; returns nothing if there is none.
std::optional<RoleFailure> read_failure(const std::string& path);

}  // namespace lockstep::launch
