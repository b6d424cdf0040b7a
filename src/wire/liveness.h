// How processes of a cluster know that a peer is alive: heartbeats, and a number that differs between two lives of a
// role.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace lockstep::wire {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kHeartbeat{1000};
constexpr std::chrono::milliseconds kSilence{5000};  ///< time without a heartbeat after which a peer is dead
/// Time between two checks after which this process itself must have been stopped.
constexpr std::chrono::milliseconds kPause{3000};

inline uint64_t new_incarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32U) | device();
}

}  // namespace lockstep::wire
