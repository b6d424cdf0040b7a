// Shows a launch on a terminal: opening lines, the display of all roles, faults and warnings. For one thread.
#pragma once

#include <optional>
#include <string>

#include "display/cluster_display.h"
#include "launch/cluster_run.h"
#include "settings/settings.h"

namespace lockstep::display {

class LaunchDisplay final : public launch::LaunchEvents {
 public:
  /// Borrows the settings, which must outlive it.
  LaunchDisplay(const terminal::Terminal& terminal, const settings::Settings& settings)
      : terminal_(terminal), settings_(settings) {}

  /// Shows the roles from now on. on_opening calls it for a cluster on this machine.
  void start(const std::vector<cluster::Task>& tasks);
  void on_opening(const launch::Opening& opening) override;
  void on_role(const launch::RoleEvent& event) override;
  void on_faults(const std::vector<std::string>& lines) override;
  void on_roles_ended() override;
  void on_warning(const std::string& text) override;
  /// Prints the result. Throws IoError if files were not collected.
  void close(const launch::ClusterEnd& end, const std::string& program) const;
  /// Longest time between two events: short enough to redraw on a terminal.
  [[nodiscard]] launch::SupervisorOptions::Time tick() const;

 private:
  terminal::Terminal terminal_;
  const settings::Settings& settings_;
  std::optional<ClusterDisplay> roles_;  ///< set by start()
};

}  // namespace lockstep::display
