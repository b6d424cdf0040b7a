// Notices that another process has been silent for too long. Plain logic: the caller passes the seconds, looks at least
// every second, and locks.
#pragma once

#include <chrono>
#include <optional>

#include "wire/liveness.h"

namespace lockstep::ps {

class Silence {
 public:
  void heard(double now) { heard_ = now; }
  /// Returns the seconds of silence if they reach the limit. After a pause of this process itself counting begins anew.
  std::optional<double> look(double now) {
    const double pause = now - looked_;
    looked_ = now;
    if (pause > seconds(wire::kPause)) heard_ = now;
    if (now - heard_ < seconds(wire::kSilence)) return std::nullopt;
    return now - heard_;
  }

 private:
  static double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

  double heard_ = 0;
  double looked_ = 0;
};

}  // namespace lockstep::ps
