#include "emulate/control_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "emulate/owner.h"
#include "lockstep/error.h"

namespace lockstep::emulate {
namespace {

namespace fs = std::filesystem;

// Short, so that a group runs and rests in small pieces, but several times the system's check interval. The system
// accepts no period below a millisecond.
constexpr int kPeriodMicroseconds = 20'000;
constexpr int kLeastQuotaMicroseconds = 1000;
constexpr int kLongestPeriodMicroseconds = 1'000'000;
constexpr const char* kRoot = "/sys/fs/cgroup";

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns why no group can be made in a folder.
std::string refusal(const std::string& parent, int error) {
  if (error == EROFS) return fmt::format("control groups are read-only ({})", parent);
  if (error == EACCES || error == EPERM) return fmt::format("control groups need root ({})", parent);
  return fmt::format("cannot make a control group in {} ({})", parent, std::generic_category().message(error));
}

/// Returns 0 or the error.
int write_text(const std::string& path, const std::string& text) {
  const base::FileHandle file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.open()) return errno;
  return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

void must_write(const std::string& path, const std::string& text) {
  const int error = write_text(path, text);
  if (error != 0) base::throw_io_error("set a limit in", path, error);
}

/// Returns the folder of a version-1 controller; "" if there is none.
std::string first_version(const std::string& controller) {
  for (const std::string& name : {controller, std::string("cpu,cpuacct"), std::string("cpuacct,cpu")}) {
    const std::string folder = fmt::format("{}/{}", kRoot, name);
    if (name.find(controller) != std::string::npos && exists(folder + "/cgroup.procs")) return folder;
  }
  return "";
}

/// Returns this process's group (version 1): usage of groups inside it counts there, too.
std::string own_group(const std::string& controller, const std::string& hierarchy) {
  std::istringstream lines(read_text("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':' + controller + ':');
    if (colon == std::string::npos) continue;
    const std::string folder = hierarchy + line.substr(colon + controller.size() + 2);
    if (folder.back() != '/' && exists(folder + "/cgroup.procs")) return folder;
  }
  return hierarchy;
}

/// Groups of version 2 get their controllers from the parent.
void enable_controller(const std::string& name) {
  const std::string file = fmt::format("{}/cgroup.subtree_control", kRoot);
  std::istringstream words(read_text(file));
  for (std::string word; words >> word;) {
    if (word == name) return;
  }
  must_write(file, "+" + name);
}

/// Returns the number after `key` in cpu.stat; 0 if missing.
uint64_t value_of(const std::string& stat, const std::string& key) {
  std::istringstream words(stat);
  std::string name;
  uint64_t value = 0;
  while (words >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

/// Moves remaining processes to the root group and removes the folder: only an empty group can be removed.
void remove_folder(const std::string& folder) {
  const std::string parent = fs::path(folder).parent_path().string();
  for (int turn = 0; turn < 100; ++turn) {
    if (rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
    std::istringstream processes(read_text(folder + "/cgroup.procs"));
    std::string process;
    while (processes >> process) write_text(parent + "/cgroup.procs", process);
    usleep(1000);  // dying processes stay in the group until they are gone
  }
}

void limit_memory(const std::string& folder, bool second, double bytes) {
  const std::string text = fmt::format("{:.0f}", bytes);
  must_write(folder + (second ? "/memory.max" : "/memory.limit_in_bytes"), text);
  // Also forbids swap.
  write_text(folder + (second ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"), second ? "0" : text);
}

}  // namespace

ControlGroup::ControlGroup(const std::string& name, const GroupLimits& limits) {
  const double least = static_cast<double>(kLeastQuotaMicroseconds) / kLongestPeriodMicroseconds;
  if (!(limits.cores >= least)) {
    throw UsageError(fmt::format("{}: {} is not allowed; at least {} cores", limits.for_what, limits.cores, least));
  }
  if (!limits.for_what.empty()) error_prefix_ = limits.for_what + ": ";
  try {
    make(owner_prefix() + name, limits);
  } catch (...) {
    remove();
    throw;
  }
}

ControlGroup::~ControlGroup() { remove(); }

void ControlGroup::make(const std::string& name, const GroupLimits& limits) {
  const std::string cpu = first_version("cpu");
  second_ = cpu.empty();
  if (second_ && !exists(fmt::format("{}/cgroup.controllers", kRoot))) {
    throw IoError(fmt::format("{}no control groups with a CPU controller at {}", error_prefix_, kRoot));
  }
  cpu_ = make_folder(second_ ? kRoot : cpu, name);
  if (second_) enable_controller("cpu");
  set_cores(limits.cores);
  // Other processes on the machine get the rest: a group must be able to use its whole limit.
  write_text(cpu_ + (second_ ? "/cpu.weight" : "/cpu.shares"), second_ ? "10000" : "262144");
  if (limits.accounted) usage_ = second_ ? cpu_ : make_folder(first_version("cpuacct"), name);
  const std::string memory = second_ ? kRoot : first_version("memory");
  if (limits.memory_bytes > 0 && memory.empty()) {
    throw IoError(fmt::format("{}no control groups with a memory controller at {}", error_prefix_, kRoot));
  }
  if (!limits.accounted && limits.memory_bytes <= 0) return;
  if (second_) enable_controller("memory");
  memory_ = second_ || memory.empty() ? make_folder(memory, name) : make_folder(own_group("memory", memory), name);
  if (limits.memory_bytes > 0) limit_memory(memory_, second_, limits.memory_bytes);
}

std::string ControlGroup::make_folder(const std::string& parent, const std::string& name) {
  if (parent.empty()) return "";
  std::string folder = fmt::format("{}/{}", parent, name);
  if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) return folder;
  // Until it is locked, a process of another PID namespace may take it for a leftover.
  constexpr int kTries = 10;
  for (int turn = 0; turn < kTries; ++turn) {
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) throw IoError(error_prefix_ + refusal(parent, errno));
    base::FileHandle held = hold(folder);
    if (!exists(folder)) continue;
    held_.push_back(std::move(held));
    folders_.push_back(folder);
    return folder;
  }
  throw IoError(fmt::format("{}{} is removed repeatedly by another process", error_prefix_, folder));
}

void ControlGroup::remove() {
  for (const std::string& folder : folders_) remove_folder(folder);
}

void ControlGroup::set_cores(double cores) {
  const double least_period = kLeastQuotaMicroseconds / cores;
  const auto period =
      static_cast<int64_t>(std::clamp<double>(least_period, kPeriodMicroseconds, kLongestPeriodMicroseconds));
  const auto quota =
      std::max<int64_t>(kLeastQuotaMicroseconds, static_cast<int64_t>(static_cast<double>(period) * cores));
  // Groups that wait for each other rest at different times. A burst lets a group use the rest of its period later
  // (kernels from 5.14 on). It must not exceed the quota, so it is zero while the quota changes.
  const std::string burst = cpu_ + (second_ ? "/cpu.max.burst" : "/cpu.cfs_burst_us");
  write_text(burst, "0");
  if (second_) {
    must_write(cpu_ + "/cpu.max", fmt::format("{} {}", quota, period));
  } else {
    // Without a limit in between, neither order of the two is refused.
    must_write(cpu_ + "/cpu.cfs_quota_us", "-1");
    must_write(cpu_ + "/cpu.cfs_period_us", std::to_string(period));
    must_write(cpu_ + "/cpu.cfs_quota_us", std::to_string(quota));
  }
  write_text(burst, std::to_string(quota));
}

std::vector<std::string> ControlGroup::files() const {
  std::vector<std::string> result;
  for (const std::string& folder : folders_) result.push_back(folder + "/cgroup.procs");
  return result;
}

void ControlGroup::add(pid_t process) {
  for (const std::string& file : files()) {
    const int error = write_text(file, std::to_string(process));
    if (error != 0 && error != ESRCH) base::throw_io_error("add a process to", file, error);
  }
}

Throttling ControlGroup::throttling() const {
  const std::string stat = read_text(cpu_ + "/cpu.stat");
  Throttling result;
  result.periods = value_of(stat, "nr_periods");
  result.throttled_periods = value_of(stat, "nr_throttled");
  // Version 1 counts nanoseconds, version 2 microseconds.
  result.throttled_seconds = static_cast<double>(value_of(stat, "throttled_time")) * 1e-9 +
                             static_cast<double>(value_of(stat, "throttled_usec")) * 1e-6;
  return result;
}

void remove_leftover_groups() {
  std::vector<std::string> roots;
  for (const char* controller : {"cpu", "cpuacct", "memory"}) roots.push_back(first_version(controller));
  if (exists(fmt::format("{}/cgroup.controllers", kRoot))) roots.emplace_back(kRoot);
  std::vector<std::string> found;
  for (const std::string& root : roots) {
    if (root.empty()) continue;
    std::error_code error;
    fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code ignored;
      if (!at->is_directory(ignored)) continue;
      if (is_owned(at->path().filename().string())) found.push_back(at->path().string());
    }
  }
  for (const std::string& folder : found) {
    if (const auto taken = take_leftover(folder)) remove_folder(folder);
  }
}

}  // namespace lockstep::emulate
