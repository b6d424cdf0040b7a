#include "observe/monitor/process_reader.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "observe/monitor/proc_file.h"
#include "observe/monitor/proc_text.h"
#include "observe/monitor/tree_ledger.h"

namespace lockstep::observe {
namespace {

double or_none(std::optional<uint64_t> value) { return value ? static_cast<double>(*value) : ProcessTotals::kNone; }

double seconds_of(const timeval& time) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + kMicro * static_cast<double>(time.tv_usec);
}

class SelfReader final : public ProcessReader {
 public:
  ProcessTotals read() override {
    ProcessTotals totals;
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
      totals.user_seconds = seconds_of(usage.ru_utime);
      totals.system_seconds = seconds_of(usage.ru_stime);
      totals.minor_faults = static_cast<double>(usage.ru_minflt);
      totals.major_faults = static_cast<double>(usage.ru_majflt);
      totals.voluntary_switches = static_cast<double>(usage.ru_nvcsw);
      totals.involuntary_switches = static_cast<double>(usage.ru_nivcsw);
    }
    if (const auto stat = parse_process_stat(stat_.read())) {
      totals.rss_bytes = static_cast<double>(stat->rss_pages) * page_;
      totals.threads = static_cast<double>(stat->threads);
    }
    totals.peak_rss_bytes = or_none(parse_process_status(status_.read()).peak_rss_bytes);
    const ProcessIo io = parse_process_io(io_.read());
    totals.read_bytes = or_none(io.read_bytes);
    totals.written_bytes = or_none(io.written_bytes);
    return totals;
  }

 private:
  const double page_ = static_cast<double>(sysconf(_SC_PAGESIZE));
  ProcFile stat_{"/proc/self/stat"};
  ProcFile status_{"/proc/self/status"};
  ProcFile io_{"/proc/self/io"};
};

/// Returns the names in a folder of /proc that are numbers.
std::vector<pid_t> numbers_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), [](DIR* dir) { return closedir(dir); });
  std::vector<pid_t> found;
  if (!open) return found;
  while (const dirent* entry = readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    pid_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, number).ptr == end) found.push_back(number);
  }
  return found;
}

std::optional<ProcessStat> stat_of(pid_t pid) {
  return parse_process_stat(ProcFile(fmt::format("/proc/{}/stat", pid)).read());
}

class AnyReader final : public ProcessReader {
 public:
  AnyReader(pid_t pid, bool descendants) : descendants_(descendants) {
    if (const auto stat = stat_of(pid)) members_[pid] = stat->begun;
  }

  ProcessTotals read() override {
    if (descendants_) find_descendants();
    ProcessTotals totals;
    std::vector<TreeLedger::Entry> entries;
    bool knows_io = false;
    for (const auto& [begun, pid] : oldest_first()) {
      const auto stat = stat_of(pid);
      if (!stat || stat->begun != begun) {
        members_.erase(pid);
        continue;
      }
      const ProcessIo io = parse_process_io(ProcFile(fmt::format("/proc/{}/io", pid)).read());
      knows_io = knows_io || io.read_bytes;
      entries.push_back(entry_of(pid, *stat, io));
      if (stat->state != 'Z') {  // a process that has ended but was not waited for has no memory
        add(totals.rss_bytes, static_cast<double>(stat->rss_pages) * page_);
        add(totals.threads, static_cast<double>(stat->threads));
      }
      look_at_threads(pid);
    }
    forget_ended_threads();
    if (entries.empty()) return totals;
    ledger_.look(entries);
    fill(totals, knows_io);
    return totals;
  }

 private:
  struct Switches {
    uint64_t voluntary = 0;
    uint64_t involuntary = 0;
    bool seen = true;
  };

  static void add(double& sum, double value) { sum = std::isnan(sum) ? value : sum + value; }

  /// Lists parents before their children.
  [[nodiscard]] std::vector<std::pair<uint64_t, pid_t>> oldest_first() const {
    std::vector<std::pair<uint64_t, pid_t>> order;
    for (const auto& [pid, begun] : members_) order.emplace_back(begun, pid);
    std::sort(order.begin(), order.end());
    return order;
  }

  [[nodiscard]] TreeLedger::Entry entry_of(pid_t pid, const ProcessStat& stat, const ProcessIo& io) const {
    TreeLedger::Entry entry;
    entry.pid = pid;
    entry.parent = static_cast<pid_t>(stat.parent);
    entry.own = {stat.user, stat.system, stat.minor_faults, stat.major_faults, 0, 0};
    if (descendants_) {
      entry.waited = {stat.waited_user, stat.waited_system, stat.waited_minor_faults, stat.waited_major_faults, 0, 0};
    }
    // The system does not separate a process's own bytes from its children's.
    entry.waited[TreeLedger::read_bytes] = io.read_bytes.value_or(0);
    entry.waited[TreeLedger::written_bytes] = io.written_bytes.value_or(0);
    return entry;
  }

  void fill(ProcessTotals& totals, bool knows_io) {
    const auto of = [this](TreeLedger::Kind kind) { return static_cast<double>(ledger_.totals()[kind]); };
    totals.user_seconds = of(TreeLedger::user) / ticks_;
    totals.system_seconds = of(TreeLedger::system) / ticks_;
    totals.minor_faults = of(TreeLedger::minor_faults);
    totals.major_faults = of(TreeLedger::major_faults);
    if (totals.rss_bytes > peak_) peak_ = totals.rss_bytes;
    totals.peak_rss_bytes = peak_;
    totals.voluntary_switches = voluntary_;
    totals.involuntary_switches = involuntary_;
    if (!knows_io) return;
    totals.read_bytes = of(TreeLedger::read_bytes);
    totals.written_bytes = of(TreeLedger::written_bytes);
  }

  void look_at_threads(pid_t pid) {
    for (const pid_t thread : numbers_in(fmt::format("/proc/{}/task", pid))) {
      const ProcessStatus status =
          parse_process_status(ProcFile(fmt::format("/proc/{}/task/{}/status", pid, thread)).read());
      add_switches(thread, status);
      if (thread == pid && status.peak_rss_bytes) {
        peak_ = std::max(peak_, static_cast<double>(*status.peak_rss_bytes));
      }
    }
  }

  /// The system counts switches per thread, and forgets threads that ended.
  void add_switches(pid_t thread, const ProcessStatus& status) {
    if (!status.voluntary_switches || !status.involuntary_switches) return;
    Switches& before = threads_[thread];
    const Switches now{*status.voluntary_switches, *status.involuntary_switches};
    // a new thread has the same number
    if (now.voluntary < before.voluntary || now.involuntary < before.involuntary) before = {};
    voluntary_ += static_cast<double>(now.voluntary - before.voluntary);
    involuntary_ += static_cast<double>(now.involuntary - before.involuntary);
    before = now;
  }

  void forget_ended_threads() {
    std::erase_if(threads_, [](const auto& entry) { return !entry.second.seen; });
    for (auto& [thread, switches] : threads_) switches.seen = false;
  }

  /// A process is a descendant from its birth or never, so only new ones are checked.
  void find_descendants() {
    std::map<pid_t, ProcessStat> fresh;
    std::set<pid_t> strangers;
    for (const pid_t pid : numbers_in("/proc")) {
      if (members_.contains(pid)) continue;
      if (strangers_.contains(pid)) {
        strangers.insert(pid);
      } else if (const auto stat = stat_of(pid)) {
        fresh.emplace(pid, *stat);
      }
    }
    for (bool found = true; found;) {
      found = false;
      for (auto entry = fresh.begin(); entry != fresh.end();) {
        const bool child = members_.contains(static_cast<pid_t>(entry->second.parent));
        found = found || child;
        if (child) members_[entry->first] = entry->second.begun;
        entry = child ? fresh.erase(entry) : std::next(entry);
      }
    }
    for (const auto& entry : fresh) strangers.insert(entry.first);
    strangers_ = std::move(strangers);
  }

  const bool descendants_;
  const double ticks_ = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double page_ = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::map<pid_t, uint64_t> members_;  ///< start time by process
  std::set<pid_t> strangers_;          ///< processes known not to be descendants
  std::map<pid_t, Switches> threads_;
  TreeLedger ledger_;
  double voluntary_ = 0;
  double involuntary_ = 0;
  double peak_ = 0;
};

}  // namespace

std::unique_ptr<ProcessReader> read_self() { return std::make_unique<SelfReader>(); }

std::unique_ptr<ProcessReader> read_process(pid_t pid, bool descendants) {
  return std::make_unique<AnyReader>(pid, descendants);
}

}  // namespace lockstep::observe
