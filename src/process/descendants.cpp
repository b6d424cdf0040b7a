#include "process/descendants.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "process/line_reader.h"

namespace lockstep::process {
namespace {

constexpr std::chrono::milliseconds kPause{10};

/// Reads /proc/PID/stat: "PID (NAME) STATE PARENT ...". The name may contain anything.
std::optional<Descendant> read_process(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = stat.find('(');
  const size_t end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  Descendant process{pid, 0, printable(stat.substr(begin + 1, end - begin - 1))};
  std::istringstream rest(stat.substr(end + 1));
  char state = 0;
  if (!(rest >> state >> process.parent)) return std::nullopt;
  process.ended = state == 'Z' || state == 'X';
  return process;
}

std::multimap<pid_t, Descendant> processes_by_parent() {
  std::multimap<pid_t, Descendant> all;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t pid = 0;
    const auto [stop, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed != std::errc() || stop != name.data() + name.size()) continue;
    if (auto process = read_process(pid)) all.emplace(process->parent, std::move(*process));
  }
  return all;
}

}  // namespace

Subreaper::Subreaper() { (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

Subreaper::~Subreaper() { (void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); }

std::vector<Descendant> descendants() {
  const std::multimap<pid_t, Descendant> all = processes_by_parent();
  std::vector<Descendant> found;
  std::vector<pid_t> parents{getpid()};
  std::set<pid_t> seen(parents.begin(), parents.end());
  while (!parents.empty()) {
    const auto [begin, end] = all.equal_range(parents.back());
    parents.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (!seen.insert(child->second.pid).second) continue;
      parents.push_back(child->second.pid);
      found.push_back(child->second);
    }
  }
  return found;
}

std::vector<std::string> end_descendants(std::chrono::milliseconds patience, pid_t except) {
  std::map<pid_t, std::string> ran;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::vector<Descendant> left = descendants();
    std::erase_if(left, [&](const Descendant& each) { return each.pid == except; });
    if (left.empty()) break;
    for (const Descendant& each : left) {
      if (!each.ended && kill(each.pid, SIGKILL) == 0) ran.emplace(each.pid, each.name);
      if (each.parent == getpid()) (void)waitpid(each.pid, nullptr, WNOHANG);
    }
    if (std::chrono::steady_clock::now() > until) break;
    std::this_thread::sleep_for(kPause);
  }
  std::vector<std::string> texts;
  for (const auto& [pid, name] : ran) texts.push_back(fmt::format("{} ({})", name, pid));
  return texts;
}

}  // namespace lockstep::process
