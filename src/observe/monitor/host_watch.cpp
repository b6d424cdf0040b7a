#include "observe/monitor/host_watch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "observe/monitor/proc_file.h"
#include "observe/monitor/process_reader.h"

namespace lockstep::observe {
namespace {

constexpr double kIdle = 0.02;  ///< share of idle time below which the machine is full
constexpr std::chrono::milliseconds kEvery{500};

HostTally::Machine this_machine() {
  const auto cores = static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return {cores, std::min<double>(cores, base::available_cores()), static_cast<double>(sysconf(_SC_CLK_TCK))};
}

}  // namespace

void HostTally::look(const HostLook& now) {
  const std::optional<HostLook> before = std::exchange(before_, now);
  if (!before || !before->stat || !now.stat || !(now.seconds > before->seconds)) return;
  const auto passed = [&](uint64_t NodeStat::*member) {
    const uint64_t then = *before->stat.*member;
    return static_cast<double>(*now.stat.*member - std::min(then, *now.stat.*member)) / machine_.ticks;
  };
  const double elapsed = now.seconds - before->seconds;
  const double all = machine_.cores * elapsed;
  const double idle = passed(&NodeStat::idle) + passed(&NodeStat::iowait);
  const double stolen = passed(&NodeStat::steal);
  const double interrupts = passed(&NodeStat::interrupts);
  // A quota rests in step with the ticks that sample the use, so the use by ticks may be too large. Idle time is exact.
  const double by_ticks = passed(&NodeStat::user) + passed(&NodeStat::system) - interrupts;
  const double busy = std::max(0.0, std::min(by_ticks, all - idle - stolen - interrupts));
  const double own = std::max(0.0, now.own_seconds - before->own_seconds);
  const double others = busy - own - (machine_.cores - machine_.available) * elapsed;
  sum_.seconds += elapsed;
  sum_.own += own;
  sum_.others += machine_.available < machine_.cores ? std::max(0.0, others) : others;
  sum_.stolen += stolen;
  if (idle < kIdle * all) {
    const double promised = std::min(promised_, machine_.available) * elapsed;
    sum_.missed += std::clamp(promised - own, 0.0, std::max(0.0, others) + stolen);
  }
}

HostUse HostTally::use() const {
  HostUse use = sum_;
  use.cores = machine_.available;
  use.others = std::max(0.0, use.others);
  return use;
}

struct HostWatch::Readers {
  ProcFile stat{"/proc/stat"};
  std::unique_ptr<ProcessReader> own = read_process(getpid(), true);
};

HostWatch::HostWatch(double promised)
    : readers_(std::make_unique<Readers>()), tally_(this_machine(), promised), last_() {
  look(true);
}
HostWatch::~HostWatch() = default;

void HostWatch::look(bool must) {
  const auto now = std::chrono::steady_clock::now();
  if (!must && now - last_ < kEvery) return;
  last_ = now;
  HostLook look;
  look.stat = parse_node_stat(readers_->stat.read());
  const ProcessTotals own = readers_->own->read();
  if (!(own.user_seconds >= 0)) look.stat.reset();  // without its own use, all use would be others'
  look.own_seconds = own.user_seconds + own.system_seconds;
  look.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  tally_.look(look);
}

HostUse HostWatch::use() const { return tally_.use(); }

}  // namespace lockstep::observe
