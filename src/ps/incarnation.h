// A number that tells one life of a role from the next.
#pragma once

#include <cstdint>
#include <random>

namespace lockstep::ps {

inline uint64_t new_incarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32U) | device();
}

}  // namespace lockstep::ps
