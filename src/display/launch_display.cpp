#include "display/launch_display.h"

#include "display/cluster_closing.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::display {

void LaunchDisplay::start(const std::vector<cluster::Task>& tasks) {
  roles_.emplace(terminal_, tasks, settings::value_text(settings_, "eval-split"), settings_.quiet);
}

void LaunchDisplay::on_opening(const launch::Opening& opening) {
  start(opening.spec.tasks());
  if (settings_.quiet) return;
  const cluster::Spec& spec = opening.spec;
  const std::string how = spec.ps.empty() ? "all-reduce"
                                          : fmt::format("{}, {}", terminal::counted(spec.ps.size(), "parameter server"),
                                                        settings::value_text(settings_, "mode"));
  terminal::print("{} on {}: {} of {}{}, {}\n", terminal_.bold(settings_.model), terminal_.bold(settings_.dataset),
                  terminal::counted(spec.members().size(), "worker"),
                  terminal::counted(static_cast<uint64_t>(opening.threads), "thread"),
                  spec.evaluator.empty() ? "" : ", an evaluator", how);
  if (!opening.nodes.empty()) terminal::print("on {}\n", opening.nodes);
  terminal::print("run folder: {}\n\n", opening.run_dir);
  terminal::flush_out();
}

void LaunchDisplay::on_role(const launch::RoleEvent& event) { roles_->on_event(event); }

void LaunchDisplay::on_faults(const std::vector<std::string>& lines) {
  if (roles_) {
    roles_->faults(lines);
  } else {
    for (const std::string& line : lines) terminal::print_note(terminal_, "fault", line);
  }
}

void LaunchDisplay::on_roles_ended() { roles_->finish(); }

void LaunchDisplay::on_warning(const std::string& text) { terminal::print_note(terminal_, "warning", text); }

void LaunchDisplay::close(const launch::ClusterEnd& end, const std::string& program) const {
  print_cluster_closing(
      terminal_, settings_, end.run_dir, program,
      [this](const std::string& role) { return roles_ ? roles_->restarts(role) : 0; }, end.already_finished);
  if (!end.uncollected.empty()) throw IoError(end.uncollected);
}

launch::SupervisorOptions::Time LaunchDisplay::tick() const {
  return launch::SupervisorOptions::Time(terminal_.interactive ? 200 : 1000);
}

}  // namespace lockstep::display
