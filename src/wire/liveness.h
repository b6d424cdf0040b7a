// How processes of a cluster know that another one lives: heartbeats, and a number that tells one life of a role from
// the next.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace lockstep::wire {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kHeartbeat{1000};
constexpr std::chrono::milliseconds kSilence{5000};  ///< without a heartbeat: dead
constexpr std::chrono::milliseconds kPause{3000};    ///< between two looks: this process itself was stopped

inline uint64_t new_incarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32U) | device();
}

}  // namespace lockstep::wire
