#include "conformance/collective_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <thread>

#include "collective/gloo_groups.h"
#include "collective/in_process.h"
#include "collective/mpi/mpi_engine.h"

namespace lockstep::collective {
namespace {

using Members = std::vector<std::unique_ptr<Collective>>;

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets it
  return value == nullptr ? "" : value;
}

/// The job that this process is a rank of: one group for all tests.
class Job : public ::testing::Environment {
 public:
  void TearDown() override { member_.reset(); }

  Collective& member(const Arrangement& arrangement) {
    if (!member_) member_ = make_mpi_group(arrangement.size, {job_deadline(), {}});
    return *member_;
  }

 private:
  std::unique_ptr<Collective> member_;
};

auto* const job = static_cast<Job*>(::testing::AddGlobalTestEnvironment(new Job));  // gtest owns it

bool has_gloo() {
  try {
    join_over_gloo("127.0.0.1", 0, 1, {});
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

void run_threads(const Members& members, const std::function<void(Collective&)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(members.size());
  for (const auto& member : members) threads.emplace_back([&body, &member] { body(*member); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

Seconds job_deadline() {
  const std::string deadline = variable("LOCKSTEP_TEST_DEADLINE");
  return Seconds(deadline.empty() ? 60 : std::stod(deadline));
}

std::vector<Arrangement> arrangements() {
  if (variable("LOCKSTEP_TEST_ENGINE") == "mpi") return {{"mpi", std::stoi(variable("OMPI_COMM_WORLD_SIZE"))}};
  std::vector<Arrangement> all;
  for (int size = 1; size <= 4; ++size) all.push_back({"inprocess", size});
  for (int size = 1; size <= 4 && has_gloo(); ++size) all.push_back({"gloo", size});
  return all;
}

void run_group(const Arrangement& arrangement, const GroupOptions& options,
               const std::function<void(Collective&)>& body) {
  if (arrangement.engine == "mpi") return body(job->member(arrangement));
  const bool gloo = arrangement.engine == "gloo";
  run_threads(
      gloo ? testing::make_gloo_group(arrangement.size, options) : make_in_process_group(arrangement.size, options),
      body);
}

void wait_for_others(const Arrangement& arrangement, const std::atomic<int>& ended, Seconds long_enough) {
  if (arrangement.engine == "mpi") return std::this_thread::sleep_for(long_enough);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (ended < arrangement.size - 1 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace lockstep::collective
