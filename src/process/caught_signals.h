// Signals that are read instead of delivered. Make a CaughtSignals before other threads start: they inherit its mask.
#pragma once

#include <csignal>
#include <memory>
#include <vector>

#include "base/file.h"

namespace lockstep::process {

/// Keeps these signals from being delivered to this thread; they are read from a descriptor (signalfd).
class CaughtSignals {
 public:
  explicit CaughtSignals(const std::vector<int>& numbers = {SIGINT, SIGTERM, SIGHUP});
  ~CaughtSignals();
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  base::FileHandle fd_;
  std::unique_ptr<struct SignalMask> before_;
};

}  // namespace lockstep::process
