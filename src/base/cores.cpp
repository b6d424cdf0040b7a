#include "base/cores.h"

#include <sched.h>

#include "base/loops.h"

namespace lockstep::base {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

bool allow(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace

std::vector<int> share_of_cores(int part, int parts) {
  const std::vector<int> cores = allowed();
  const Range mine = share(static_cast<int64_t>(cores.size()), part, parts);
  return {cores.begin() + mine.begin, cores.begin() + mine.end};
}

KeptToCores::KeptToCores(const std::vector<int>& cores) {
  if (cores.empty()) return;
  std::vector<int> before = allowed();
  if (allow(cores)) before_ = std::move(before);
  end_team();
}

KeptToCores::~KeptToCores() {
  if (before_.empty()) return;
  allow(before_);
  end_team();
}

}  // namespace lockstep::base
