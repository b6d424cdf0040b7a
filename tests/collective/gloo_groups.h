// Groups over Gloo for tests: members are threads of this process, on loopback.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/gloo/gloo_engine.h"
#include "lockstep/error.h"

namespace lockstep::collective::testing {

/// Runs `act(i)` on its own thread for each i, and returns when all have ended.
inline void in_threads(int count, const std::function<void(int)>& act) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&act, i] { act(i); });
  for (std::thread& thread : threads) thread.join();
}

/// Makes a group. Retries if the deadline, which also limits connecting, was too short for a busy machine.
inline std::vector<std::unique_ptr<Collective>> make_gloo_group(int size, const GroupOptions& options = {}) {
  std::string why;
  for (int tries = 0; tries < 30; ++tries) {
    std::vector<std::unique_ptr<Joining>> joinings;
    std::vector<std::string> addresses;
    for (int rank = 0; rank < size; ++rank) {
      joinings.push_back(join_over_gloo("127.0.0.1", rank, size, options));
      addresses.push_back(joinings.back()->address());
    }
    std::vector<std::unique_ptr<Collective>> group(static_cast<size_t>(size));
    std::vector<std::string> failures(group.size());
    in_threads(size, [&](int rank) {
      const auto i = static_cast<size_t>(rank);
      auto made = joinings[i]->connect(addresses, [] { return false; });
      if (made) {
        group[i] = std::move(made.value());
      } else {
        failures[i] = made.failure().message();
      }
    });
    why.clear();
    for (const std::string& failure : failures) why += failure;
    if (why.empty()) return group;
  }
  throw Error(why);
}

}  // namespace lockstep::collective::testing
