#include "cluster/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>

#include "base/address.h"
#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

constexpr std::array<Role, 4> kRoles{Role::chief, Role::worker, Role::ps, Role::evaluator};
constexpr size_t kShown = 80;

/// Parses a number without sign; returns -1 for everything else.
int parse_number(std::string_view text, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text[0] != '-';
  return whole && number <= most ? number : -1;
}

void append(std::vector<Task>& tasks, Role role, size_t count) {
  for (size_t i = 0; i < count; ++i) tasks.push_back({role, static_cast<int>(i)});
}

/// Returns one form for all ways to write an address.
std::string normal(const std::string& address) {
  std::string text = address;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  const base::Address parts = base::parse_address(text);
  return base::join_address(parts.host, parts.port);
}

}  // namespace

std::string_view name(Role role) {
  switch (role) {
    case Role::chief:
      return "chief";
    case Role::worker:
      return "worker";
    case Role::ps:
      return "ps";
    case Role::evaluator:
      return "evaluator";
  }
  return "";
}

std::optional<Role> find_role(std::string_view text) {
  if (text == "master") return Role::chief;
  for (const Role role : kRoles) {
    if (text == name(role)) return role;
  }
  return std::nullopt;
}

std::string role_hint(std::string_view text) {
  std::vector<std::string> names;
  for (const Role role : kRoles) names.emplace_back(name(role));
  return base::hint(text.substr(0, kShown), names);
}

std::string Task::str() const { return fmt::format("{}:{}", name(role), index); }
std::string Task::folder() const { return fmt::format("{}-{}", name(role), index); }

Task parse_task(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view role_text = text.substr(0, colon);
  const std::string_view index_text = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const std::optional<Role> role = find_role(role_text);
  const int index = parse_number(index_text, kMostTasks - 1);
  const bool single = role == Role::chief || role == Role::evaluator;
  if (role && index >= 0 && (!single || index == 0)) return {*role, index};

  std::vector<std::string> names;
  for (const Role known : kRoles) names.emplace_back(name(known));
  const std::string nearest = role ? "" : base::nearest(role_text.substr(0, kShown), names);
  const std::string hint =
      nearest.empty() ? "" : fmt::format(" (did you mean '{}:{}'?)", nearest, index < 0 ? 0 : index);
  throw UsageError(fmt::format("'{}' is not a task{}; allowed are chief:0, worker:N, ps:N and evaluator:0",
                               text.substr(0, kShown), hint));
}

std::vector<Task> Spec::members() const {
  std::vector<Task> tasks;
  append(tasks, Role::chief, chief.size());
  append(tasks, Role::worker, workers.size());
  return tasks;
}

int Spec::member_index(const Task& task) const {
  if (!contains(task)) return -1;
  if (task.role == Role::chief) return task.index;
  if (task.role == Role::worker) return static_cast<int>(chief.size()) + task.index;
  return -1;
}

Task Spec::chief_task() const { return chief.empty() ? Task{Role::worker, 0} : Task{Role::chief, 0}; }

std::vector<Task> Spec::tasks() const {
  std::vector<Task> tasks;
  append(tasks, Role::ps, ps.size());
  const std::vector<Task> training = members();
  tasks.insert(tasks.end(), training.begin(), training.end());
  append(tasks, Role::evaluator, evaluator.size());
  return tasks;
}

const std::vector<std::string>& Spec::of(Role role) const {
  switch (role) {
    case Role::chief:
      return chief;
    case Role::worker:
      return workers;
    case Role::ps:
      return ps;
    case Role::evaluator:
      break;
  }
  return evaluator;
}

std::vector<std::string>& Spec::of(Role role) {
  return const_cast<std::vector<std::string>&>(static_cast<const Spec&>(*this).of(role));
}

bool Spec::contains(const Task& task) const {
  return task.index >= 0 && static_cast<size_t>(task.index) < of(task.role).size();
}

const std::string& Spec::address(const Task& task) const {
  static const std::string unknown;
  return contains(task) ? of(task.role)[static_cast<size_t>(task.index)] : unknown;
}

bool Spec::loopback_only() const {
  const std::vector<Task> all = tasks();
  return std::all_of(all.begin(), all.end(), [&](const Task& task) {
    const std::string& text = address(task);
    return text.empty() || base::is_loopback(base::parse_address(text).host);
  });
}

std::string listen_address(std::string_view address) {
  const base::Address parts = base::parse_address(address);
  const bool exact = base::is_loopback(parts.host) || base::is_ip_address(parts.host);
  return exact ? base::join_address(parts.host, parts.port) : base::join_address("::", parts.port);
}

std::optional<Problem> find_problem(const Spec& spec) {
  std::map<std::string, Task> seen;
  for (const Task& task : spec.tasks()) {
    const std::string& address = spec.address(task);
    if (address.empty()) continue;
    try {
      const auto [first, added] = seen.emplace(normal(address), task);
      if (!added) return Problem{task, fmt::format("'{}' is the address of {} too", address, first->second.str())};
    } catch (const UsageError& error) {
      return Problem{task, error.what()};
    }
  }
  for (const Role role : {Role::chief, Role::evaluator}) {
    const size_t count = spec.of(role).size();
    if (count > 1)
      return Problem{Task{role, 1}, fmt::format("a cluster has at most one {}, not {}", name(role), count)};
  }
  for (const Role role : {Role::worker, Role::ps}) {
    const size_t count = spec.of(role).size();
    if (count > kMostTasks) {
      return Problem{std::nullopt, fmt::format("{} of role {}; at most {} are allowed", count, name(role), kMostTasks)};
    }
  }
  if (spec.members().empty() && !spec.partial) {
    return Problem{std::nullopt, "no member trains: it needs a chief or at least one worker"};
  }
  return std::nullopt;
}

}  // namespace lockstep::cluster
