// Decides when a worker's connection to a server is lost: the server is silent, the data stream has broken alone, or
// the two streams lead to two of its processes, so that the end of one was not seen; and when a loss is worth a line.
// Plain logic: the caller passes the seconds, and locks.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "ps/silence.h"

namespace lockstep::ps {

class LinkWatch {
 public:
  void data_connecting(double now) {
    data_process_ = 0;
    data_silence_.heard(now);
  }
  /// Returns true if the control stream leads to another process, and must be cancelled.
  bool data_welcomed(uint64_t process) {
    data_process_ = process;
    return control_process_ != 0 && control_process_ != process;
  }
  void control_connected(double now) {
    control_process_ = 0;
    silence_.heard(now);
  }
  /// Returns true if the data stream leads to another process, and is lost.
  bool control_welcomed(uint64_t process) {
    control_process_ = process;
    return data_process_ != 0 && data_process_ != process;
  }
  /// The control stream was there, and has ended.
  void control_lost(double now) {
    control_process_ = 0;
    if (!away_since_) away_since_ = now;
  }
  /// Returns true, once, if the end of the control stream is worth a line: nothing was said of it, and the server has
  /// not come back at once, as one that is restarted does.
  bool tell_away(double now) {
    constexpr double kRestart = 1;  // seconds
    if (told_ || !away_since_ || now - *away_since_ < kRestart) return false;
    return told_ = true;
  }
  /// A line has said that the server is away.
  void told() { told_ = true; }
  /// The control stream is welcomed. Returns true if a line has said that the server was away.
  bool back() {
    away_since_.reset();
    return std::exchange(told_, false);
  }
  void heard(double now) { silence_.heard(now); }
  /// Returns the seconds of silence if they reach the limit; then counting begins anew.
  std::optional<double> silent(double now) {
    const std::optional<double> seconds = silence_.look(now);
    if (seconds) silence_.heard(now);
    return seconds;
  }
  /// `unanswered`: seconds since the machine at the other end of the data stream last answered, if it has been asked.
  /// Returns them if they reach the limit: the data stream has broken, whatever the control stream says.
  std::optional<double> data_silent(std::optional<double> unanswered, double now) {
    if (!unanswered) data_silence_.heard(now);
    const std::optional<double> seconds = data_silence_.look(now);
    if (!seconds || *unanswered < std::chrono::duration<double>(wire::kSilence).count()) return std::nullopt;
    data_silence_.heard(now);
    return seconds;
  }

 private:
  uint64_t data_process_ = 0;  ///< ids of the server's processes at the other end of the streams; 0: not welcomed yet
  uint64_t control_process_ = 0;
  std::optional<double> away_since_;  ///< when the control stream ended; nothing: it is there, or was never
  bool told_ = false;                 ///< a line has said that the server is away
  Silence silence_;
  Silence data_silence_;
};

}  // namespace lockstep::ps
