#include "emulate/cpu_quota.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::emulate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "lockstep-";
// Short, so that a group runs and rests in small pieces. The system takes no quota below a millisecond.
constexpr int kPeriodMicroseconds = 10'000;
constexpr int kLeastQuotaMicroseconds = 1000;
constexpr int kLongestPeriodMicroseconds = 1'000'000;

/// The folder in which groups with a CPU limit can be made, and its version.
struct Hierarchy {
  std::string folder;
  bool second = false;
};

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

/// 0 or the error.
int write_text(const std::string& path, const std::string& text) {
  const base::FileHandle file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.open()) return errno;
  return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

void must_write(const std::string& path, const std::string& text) {
  const int error = write_text(path, text);
  if (error != 0) base::throw_io_error("set a CPU limit in", path, error);
}

Hierarchy find_hierarchy() {
  for (const char* folder : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
    if (exists(folder + std::string("/cgroup.procs"))) return {folder, false};
  }
  const std::string folder = "/sys/fs/cgroup";
  if (exists(folder + "/cgroup.controllers")) return {folder, true};
  throw IoError("cannot limit the CPU: no control groups with a CPU controller at /sys/fs/cgroup");
}

/// The groups of the second version get the controller from the one above.
void enable_controller(const Hierarchy& hierarchy) {
  if (!hierarchy.second) return;
  if (read_text(hierarchy.folder + "/cgroup.subtree_control").find("cpu") != std::string::npos) return;
  must_write(hierarchy.folder + "/cgroup.subtree_control", "+cpu");
}

/// The number after `key` in cpu.stat; 0 where it is not.
uint64_t value_of(const std::string& stat, const std::string& key) {
  std::istringstream words(stat);
  std::string name;
  uint64_t value = 0;
  while (words >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

void limit(const std::string& folder, bool second, double cores) {
  const double least_period = kLeastQuotaMicroseconds / cores;
  const auto period = static_cast<int64_t>(std::max<double>(kPeriodMicroseconds, least_period));
  const auto quota = static_cast<int64_t>(static_cast<double>(period) * cores);
  if (second) return must_write(folder + "/cpu.max", fmt::format("{} {}", quota, period));
  must_write(folder + "/cpu.cfs_period_us", std::to_string(period));
  must_write(folder + "/cpu.cfs_quota_us", std::to_string(quota));
}

/// Who is still in the group goes where everyone is: a group can only be removed empty.
void remove_group(const std::string& folder) {
  const std::string parent = fs::path(folder).parent_path().string();
  for (int turn = 0; turn < 100; ++turn) {
    if (rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
    std::istringstream processes(read_text(folder + "/cgroup.procs"));
    std::string process;
    while (processes >> process) write_text(parent + "/cgroup.procs", process);
    usleep(1000);  // the dying are in the group until they are gone
  }
}

}  // namespace

CpuQuota::CpuQuota(const std::string& name, double cores) {
  const double least = static_cast<double>(kLeastQuotaMicroseconds) / kLongestPeriodMicroseconds;
  if (!(cores >= least)) throw UsageError(fmt::format("cpu-quota: {} is not allowed; at least {} cores", cores, least));
  const Hierarchy hierarchy = find_hierarchy();
  const std::string folder = fmt::format("{}/{}{}-{}", hierarchy.folder, kPrefix, getpid(), name);
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    throw IoError(fmt::format("cannot limit the CPU: making the control group {} needs root ({})", folder,
                              std::generic_category().message(errno)));
  }
  folder_ = folder;
  try {
    enable_controller(hierarchy);
    limit(folder_, hierarchy.second, cores);
  } catch (...) {
    remove_group(folder_);
    throw;
  }
}

CpuQuota::~CpuQuota() { remove_group(folder_); }

void CpuQuota::add(pid_t process) {
  const int error = write_text(folder_ + "/cgroup.procs", std::to_string(process));
  if (error != 0 && error != ESRCH) base::throw_io_error("add a process to", folder_, error);
}

Throttling CpuQuota::throttling() const {
  const std::string stat = read_text(folder_ + "/cpu.stat");
  Throttling result;
  result.periods = value_of(stat, "nr_periods");
  result.throttled_periods = value_of(stat, "nr_throttled");
  // The first version counts nanoseconds, the second microseconds.
  result.throttled_seconds = static_cast<double>(value_of(stat, "throttled_time")) * 1e-9 +
                             static_cast<double>(value_of(stat, "throttled_usec")) * 1e-6;
  return result;
}

void remove_leftover_quotas() {
  std::error_code ignored;
  std::string folder;
  try {
    folder = find_hierarchy().folder;
  } catch (const IoError&) {
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    pid_t maker = 0;
    std::from_chars(name.data() + std::string_view(kPrefix).size(), name.data() + name.size(), maker);
    if (maker > 0 && kill(maker, 0) != 0 && errno == ESRCH) remove_group(entry.path().string());
  }
}

}  // namespace lockstep::emulate
