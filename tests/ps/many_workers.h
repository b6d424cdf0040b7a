// Fake workers of one server, which a test plays from its own thread, and how many threads the server has with them.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "server_support.h"

namespace lockstep::ps::testing {

constexpr size_t kWeightsOfLr = 7850;
constexpr size_t kFew = 4;
constexpr size_t kOfGrpc = 8;  ///< threads that gRPC may start for itself, however many streams there are

/// A server and its workers, each with a control and a data stream. Only the server has threads.
class ManyWorkers {
 public:
  ManyWorkers(int workers, bool sync) : ps_(workers, Durability::checkpoint), workers_(workers), sync_(sync) {}

  /// The next worker comes and joins; the first one is the chief.
  void come() {
    const int member = static_cast<int>(data_.size());
    const std::string role = "worker:" + std::to_string(member);
    control_.push_back(std::make_unique<Peer>(ps_, role, member, true));
    data_.push_back(std::make_unique<Peer>(ps_, role, member));
    if (member == 0) data_.front()->initialise(1, sync_, kWeightsOfLr);
    plans_.push_back(data_.back()->join().plan());
  }
  [[nodiscard]] size_t here() const { return data_.size(); }
  [[nodiscard]] bool all_here() const { return static_cast<int>(here()) == workers_; }
  void push(size_t member, uint64_t version) {
    data_[member]->push(version + 1, plans_[member], std::vector<float>(kWeightsOfLr, 1), version);
  }
  wire::Reply answer(size_t member) {
    wire::Reply reply = data_[member]->read_reply();
    if (reply.has_plan()) plans_[member] = reply.plan();
    return reply;
  }
  void beat() {
    for (const auto& peer : control_) peer->say(header(Kind::heartbeat));
  }
  [[nodiscard]] uint64_t version() { return ps_.server().progress().version; }
  [[nodiscard]] uint64_t pushes_received() {
    return ps_.server().progress().bytes_copied / (kWeightsOfLr * sizeof(float));
  }

 private:
  Ps0 ps_;
  const int workers_;
  const bool sync_;
  std::vector<std::unique_ptr<Peer>> control_;
  std::vector<std::unique_ptr<Peer>> data_;
  std::vector<wire::Plan> plans_;
};

/// Each connection has both its ends here.
inline void allow_many_files() {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/// Three steps of so many workers in sync: the server has as many threads as with few.
inline void serve(int count) {
  allow_many_files();
  ManyWorkers workers(count, true);
  while (workers.here() < kFew) workers.come();
  const size_t most = transport::testing::threads_here() + kOfGrpc;
  while (!workers.all_here()) workers.come();
  EXPECT_LE(transport::testing::threads_here(), most) << "connected";
  for (uint64_t version = 0; version < 3; ++version) {
    for (size_t i = 1; i < workers.here(); ++i) workers.push(i, version);
    ASSERT_TRUE(transport::testing::eventually(
        [&] { return workers.pushes_received() == (version + 1) * workers.here() - 1; }));
    EXPECT_LE(transport::testing::threads_here(), most) << "all but one wait";
    EXPECT_EQ(workers.version(), version);
    workers.beat();
    workers.push(0, version);
    for (size_t i = 0; i < workers.here(); ++i) EXPECT_TRUE(workers.answer(i).applied()) << i;
    EXPECT_EQ(workers.version(), version + 1);
  }
  EXPECT_LE(transport::testing::threads_here(), most) << "answered";
}

}  // namespace lockstep::ps::testing
