#include "conformance/collective_group.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <ostream>
#include <thread>

#include "collective/in_process.h"

namespace lockstep::collective {
namespace {

using Members = std::vector<std::unique_ptr<Collective>>;

void run_threads(const Members& members, const std::function<void(Collective&)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(members.size());
  for (const auto& member : members) threads.emplace_back([&body, &member] { body(*member); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::vector<Arrangement> arrangements() {
  std::vector<Arrangement> all;
  for (const char* engine : {"inprocess"}) {
    for (int size = 1; size <= 4; ++size) all.push_back({engine, size});
  }
  return all;
}

void run_group(const Arrangement& arrangement, const GroupOptions& options,
               const std::function<void(Collective&)>& body) {
  run_threads(make_in_process_group(arrangement.size, options), body);
}

}  // namespace lockstep::collective
