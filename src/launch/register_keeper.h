// The launcher's register of who may train by all-reduce: answers the questions of its roles (launcher_lines.h). As it
// sees each process end, it also knows when nobody of the latest group lives any more. For the launcher's thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "authority/cell.h"
#include "cluster/spec.h"
#include "launch/supervisor.h"

namespace lockstep::launch {

class RegisterKeeper {
 public:
  explicit RegisterKeeper(const cluster::Spec& spec) : spec_(spec), members_(spec.members().size()) {}

  void on_event(const RoleEvent& event);
  /// Returns the answer to a line of a role; nothing if it is no question.
  std::optional<std::string> answer(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    bool lives = false;
    std::optional<Clock::time_point> dead_from = {};  ///< from then on it is certainly dead, unless it lives again
  };
  [[nodiscard]] bool dead(int member) const;
  [[nodiscard]] bool vacant() const;

  cluster::Spec spec_;
  std::vector<Member> members_;
  authority::Cell cell_;
};

}  // namespace lockstep::launch
