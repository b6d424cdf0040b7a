#include "ps/server_times.h"

#include <string_view>

namespace lockstep::ps {

void ServerTimes::add(Stage stage, double seconds) {
  if (!(seconds > 0)) return;
  const base::MutexLock lock(mutex_);
  durations_[static_cast<size_t>(stage)].add(seconds);
}

std::vector<base::DurationRecord> ServerTimes::records() const {
  constexpr std::array<std::string_view, kStages> kNames = {"receive", "wait", "apply", "send", "store"};
  std::vector<base::DurationRecord> records;
  const base::MutexLock lock(mutex_);
  for (size_t i = 0; i < kStages; ++i) {
    if (durations_[i].count() > 0) records.push_back(base::record_of(kNames[i], durations_[i]));
  }
  return records;
}

}  // namespace lockstep::ps
