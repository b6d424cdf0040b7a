#include "launch/fault_maker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

using emulate::Fault;
using FaultKind = Fault::Kind;

bool of_node(const Fault& fault) { return fault.kind == FaultKind::cut || fault.kind == FaultKind::slow; }

/// Returns the index of "node2", a valid name.
size_t node_index(const std::string& name) { return std::stoul(name.substr(4)) - 1; }

std::string_view kind_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kill:
      return "kill";
    case FaultKind::stop:
      return "stop";
    case FaultKind::cut:
      return "cut";
    case FaultKind::slow:
      return "slow";
  }
  return "";
}

void keep(const std::string& file, double seconds, const Fault& fault, bool ended, const std::string& text) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const nlohmann::ordered_json line{{"seconds", seconds},
                                    {"time", std::chrono::duration<double>(now).count()},
                                    {"kind", kind_name(fault.kind)},
                                    {"target", fault.target},
                                    {"ended", ended},
                                    {"fault", text}};
  std::ofstream(file, std::ios::app) << line.dump() << "\n";
}

}  // namespace

void check_faults(const std::vector<Fault>& faults, const std::vector<std::string>& roles, size_t nodes) {
  std::vector<std::string> names;
  for (size_t node = 0; node < nodes; ++node) names.push_back(fmt::format("node{}", node + 1));
  for (const Fault& fault : faults) {
    const auto refuse = [&](const std::string& why) {
      throw UsageError(fmt::format("faults: '{}': {}", fault.text(), why));
    };
    if (of_node(fault) && nodes == 0) refuse("only the nodes of --emulate can be cut or slowed");
    const std::vector<std::string>& known = of_node(fault) ? names : roles;
    if (std::find(known.begin(), known.end(), fault.target) != known.end()) continue;
    if (known.empty()) refuse(fmt::format("there is no {}; one process has no roles", fault.target));
    refuse(fmt::format("there is no {}{}; there are {}", fault.target, base::hint(fault.target, known),
                       fmt::join(known, ", ")));
  }
}

FaultMaker::FaultMaker(const std::vector<Fault>& faults, emulate::EmulatedCluster* cluster) : cluster_(cluster) {
  for (const Fault& fault : faults) {
    actions_.push_back({fault.at, fault, false});
    if (fault.seconds > 0) actions_.push_back({fault.at + fault.seconds, fault, true});
  }
  std::stable_sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) { return a.at < b.at; });
}

void FaultMaker::begin() {
  begun_ = true;
  start_ = Clock::now();
}

void FaultMaker::resumed(Clock::duration after) {
  paused_ += after;
  for (const std::string& role : held_) {
    if (const auto found = pids_.find(role); found != pids_.end()) send(role, found->second, SIGSTOP);
  }
}

std::vector<std::string> FaultMaker::make_due(const std::string& file) {
  std::vector<std::string> lines;
  if (!begun_) return lines;
  const Clock::time_point here = Clock::now();
  const double now = std::chrono::duration<double>(here - start_).count();
  const double active = std::chrono::duration<double>(here - start_ - paused_).count();
  for (; next_ < actions_.size() && actions_[next_].at <= active; ++next_) {
    const Action& action = actions_[next_];
    std::string text = action.end ? undo(action.fault) : make(action.fault);
    keep(file, now, action.fault, action.end, text);
    lines.push_back(std::move(text));
  }
  return lines;
}

void FaultMaker::send(const std::string& role, pid_t pid, int number) const {
  if (signal_) return signal_(role, number);
  kill(-pid, number);
}

std::string FaultMaker::make(const Fault& fault) {
  if (fault.kind == FaultKind::cut) cluster_->cut(node_index(fault.target));
  if (fault.kind == FaultKind::slow) cluster_->slow(node_index(fault.target), fault.share);
  if (of_node(fault)) return fault.text();
  const auto found = pids_.find(fault.target);
  if (found == pids_.end()) return fault.text() + ": it is not running";
  send(fault.target, found->second, fault.kind == FaultKind::kill ? SIGKILL : SIGSTOP);
  if (fault.kind == FaultKind::stop) {
    stopped_[fault.target] = found->second;
    held_.insert(fault.target);
  }
  return fault.text();
}

std::string FaultMaker::undo(const Fault& fault) {
  if (fault.kind == FaultKind::cut) {
    cluster_->restore(node_index(fault.target));
    return fault.target + " is back";
  }
  if (fault.kind == FaultKind::slow) {
    cluster_->slow(node_index(fault.target), 1);
    return fault.target + " is as fast as before";
  }
  // A role killed meanwhile is another process now.
  const auto found = pids_.find(fault.target);
  if (found == pids_.end() || stopped_[fault.target] != found->second) return fault.target + " was not continued";
  send(fault.target, found->second, SIGCONT);
  held_.erase(fault.target);
  return fault.target + " goes on";
}

void ScheduledFaults::on_event(const RoleEvent& event) {
  using Kind = RoleEvent::Kind;
  if (event.kind == Kind::started || event.kind == Kind::restarted) maker_.started(event.task.str(), event.pid);
  if (event.kind == Kind::died || event.kind == Kind::ended) maker_.ended(event.task.str());
  if (event.kind == Kind::started && ++started_ == roles_) maker_.begin();
}

}  // namespace lockstep::launch
