// Why a role failed, as fields that its launcher can compare, and the line of JSON that carries them there
// (--report json). Plain values, any thread.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace lockstep::launch {

struct RoleFailure {
  enum class Kind : uint8_t {
    other,
    usage,  ///< a setting that is not allowed
    data,   ///< a file that is not as its format promises
    io,     ///< the system refused
    limit   ///< open files, threads or memory: no restart can help
  };
  Kind kind = Kind::other;
  int error_number = 0;                ///< errno; 0: unknown
  std::string path = {};               ///< file or folder that failed; empty: none
  std::optional<uint64_t> saved = {};  ///< step of the newest checkpoint that the role could see
  std::string text = {};               ///< the line for people

  /// True where it is about a file or folder, for a reason that the system gave.
  [[nodiscard]] bool names_place() const { return error_number != 0 && !path.empty(); }
  /// True where both are the same fault. Files of one folder are one place: a checkpoint's name has its step in it.
  [[nodiscard]] bool same_fault(const RoleFailure& other) const;
};

RoleFailure failure_of(const std::exception& error);

/// One line without its end: {"event":"failure","role":...}.
std::string to_json(const RoleFailure& failure, const std::string& role);
/// Nothing where the line is none of those. What has another type than it should is left out.
std::optional<RoleFailure> parse_failure(const std::string& line);

}  // namespace lockstep::launch
