// Why a role or a whole run failed, as fields that whoever started it can compare and show, and the line of JSON that
// carries them: from a role to its launcher on standard output (--report json), from a run to the lab in a file. Plain
// values, any thread.
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
    data,       ///< a file that is not as its format promises
    io,         ///< the system refused
    limit,      ///< open files, threads or memory: no restart can help
    not_finite  ///< a loss or the parameters became infinite or not a number
  };
  Kind kind = Kind::other;
  std::string role = {};               ///< "worker:1"; empty: the process that runs the whole
  int error_number = 0;                ///< errno; 0: unknown
  std::string path = {};               ///< file or folder that failed; empty: none
  std::optional<uint64_t> saved = {};  ///< step of the newest checkpoint that the role could see
  std::optional<uint64_t> step = {};   ///< at which training failed, where that is known
  std::string output = {};             ///< the run's folder, where it holds partial output
  std::string text = {};               ///< the line for people

  /// True where it is about a file or folder, for a reason that the system gave.
  [[nodiscard]] bool names_place() const { return error_number != 0 && !path.empty(); }
  /// True where both are the same fault. Files of one folder are one place: a checkpoint's name has its step in it.
  [[nodiscard]] bool same_fault(const RoleFailure& other) const;
};

/// A run failed because of its roles. `what()` is the text of its failure, and where the partial output is.
class RunError final : public Error {
 public:
  explicit RunError(RoleFailure failure);
  [[nodiscard]] const RoleFailure& failure() const { return failure_; }

 private:
  RoleFailure failure_;
};

RoleFailure failure_of(const std::exception& error);

/// One line without its end: {"event":"failure","role":...}.
std::string to_json(const RoleFailure& failure);
/// Nothing where the line is none of those. What has another type than it should is left out.
std::optional<RoleFailure> parse_failure(const std::string& line);
/// From a file that holds such a line; nothing where there is none.
std::optional<RoleFailure> read_failure(const std::string& path);

}  // namespace lockstep::launch
