// Members as objects of one process, over real sockets on loopback, each with a thread that trains: all-reduce steps in
// which each member adds one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/elastic/elastic_membership.h"
#include "allreduce/fake_engine.h"
#include "base/address.h"
#include "cluster/cluster_file.h"
#include "transport/streams.h"

namespace lockstep::allreduce::testing {

using transport::testing::eventually;

struct Lines {
  void add(std::string_view level, const std::string& text) {
    const std::lock_guard lock(mutex);
    all.push_back(std::string(level) + ": " + text);
  }
  std::vector<std::string> get() {
    const std::lock_guard lock(mutex);
    return all;
  }
  bool has(const std::string& part) {
    const auto lines = get();
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != line.npos; });
  }
  std::mutex mutex;
  std::vector<std::string> all;
};

/// One member that trains until it is told to stop.
class Trainee {
 public:
  Trainee(ElasticOptions options, FakeEngine& engine) {
    options.engine = [&engine](int rank, int size) { return engine.join(rank, size); };
    options.log = [this](std::string_view level, const std::string& text) { lines.add(level, text); };
    options.interrupt = &interrupt;
    membership = std::make_unique<ElasticMembership>(std::move(options));
  }
  ~Trainee() { stop(); }
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  void train() {
    thread_ = std::thread([this] { run(); });
  }
  /// Acts as if the process had died: its connections end, and its address refuses connections. While it forms a group
  /// it can only be interrupted, which would end the others, too, so it waits until the group is formed.
  void vanish() {
    leave();
    eventually([this] { return !forming(); });
    stop();
  }
  /// Waits until training has ended by `finish` of any member.
  void wait() { thread_.join(); }

  std::vector<int> group() {
    const std::lock_guard lock(mutex_);
    return members_;
  }
  uint64_t number() {
    const std::lock_guard lock(mutex_);
    return number_;
  }
  std::string failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  std::unique_ptr<ElasticMembership> membership;
  std::atomic<bool> interrupt = false;
  std::atomic<bool> finish = false;
  std::atomic<bool> led = false;
  std::atomic<bool> hold_end = false;
  std::atomic<uint64_t> step = 0;
  std::atomic<int> transfers = 0;
  Lines lines;

 private:
  /// Forms no more groups.
  void leave() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (collective_) collective_->abort("the test ends");
  }
  void stop() {
    leave();
    interrupt = true;
    if (thread_.joinable()) thread_.join();
    membership.reset();
  }
  bool forming() {
    const std::lock_guard lock(mutex_);
    return forming_;
  }
  bool begins_to_form() {
    const std::lock_guard lock(mutex_);
    forming_ = !gone_;
    return forming_;
  }
  /// True if there is a group to train in.
  bool has_formed(const base::Result<Formed>& formed) {
    const std::lock_guard lock(mutex_);
    forming_ = false;
    if (!formed) {
      failure_ = formed.failure().message();
      return false;
    }
    if (formed.value().transfer) ++transfers;
    members_ = formed.value().members;
    number_ = formed.value().number;
    if (!gone_) collective_ = formed.value().collective;
    return !gone_;
  }
  void run() {
    Standing standing;
    standing.data.next_pass = 7;
    while (begins_to_form()) {
      const base::Result<Formed> formed = membership->form(standing);
      if (!has_formed(formed)) return;
      standing = formed.value().standing;
      standing.live = true;
      const bool rank0 = formed.value().collective->rank() == 0;
      const bool over = steps(*formed.value().collective, standing, rank0);
      {
        const std::lock_guard lock(mutex_);
        collective_.reset();
      }
      if (over) return close();
    }
  }
  /// Returns true if all agreed to stop.
  bool steps(collective::Collective& collective, Standing& standing, bool rank0) {
    while (!interrupt) {
      std::vector<float> values{1, finish ? 1.0F : 0.0F, rank0 && membership->wants_regroup() ? 1.0F : 0.0F};
      if (!collective.all_reduce(values)) return false;
      if (values[1] > 0) return true;
      step = ++standing.step;
      if (rank0) membership->publish(standing.step, std::vector<float>(3, static_cast<float>(standing.step)));
      if (values[2] > 0) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  void close() {
    const base::Result<Parting> parting = membership->close(train::StopReason::data);
    if (!parting || parting.value() != Parting::closes) return;
    led = true;
    while (hold_end && !interrupt) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!interrupt) membership->end();
  }

  std::mutex mutex_;
  bool gone_ = false;
  bool forming_ = false;
  std::vector<int> members_;
  uint64_t number_ = 0;
  std::string failure_;
  std::shared_ptr<collective::Collective> collective_;
  std::thread thread_;
};

class Cluster : public ::testing::Test {
 protected:
  /// Makes the members. With `evaluator`, the end of training waits some time for one.
  void make(int count, bool evaluator = false) {
    spec = cluster::local_spec({.workers = count, .ps = 0, .evaluator = evaluator, .layout = ""});
    for (const std::string& address : spec.workers) ports.emplace_back(base::parse_address(address).port);
    members.resize(static_cast<size_t>(count));
  }
  ElasticOptions options(int member) {
    ElasticOptions made;
    made.spec = spec;
    made.task = spec.members()[static_cast<size_t>(member)];
    made.job = "the job";
    made.run = "lenet-3";
    change(made);
    return made;
  }
  void start(int member) {
    members[static_cast<size_t>(member)] = std::make_unique<Trainee>(options(member), engine);
    members[static_cast<size_t>(member)]->train();
  }
  void start_all() {
    for (size_t i = 0; i < members.size(); ++i) start(static_cast<int>(i));
  }
  Trainee& at(int member) { return *members[static_cast<size_t>(member)]; }
  /// Waits until all of these are in one group and make steps.
  bool trains(const std::vector<int>& group) {
    return eventually([&] {
             return std::all_of(group.begin(), group.end(), [&](int member) { return at(member).group() == group; });
           }) &&
           advances(group.front());
  }
  bool advances(int member) {
    const uint64_t before = at(member).step;
    return eventually([&] { return at(member).step > before + 2; });
  }
  std::string name(int member) {
    const cluster::Task task = spec.members()[static_cast<size_t>(member)];
    return task.str() + " at " + spec.address(task);
  }

  cluster::Spec spec;
  std::vector<transport::testing::KeptPort> ports;  ///< reserved while their members are away
  FakeEngine engine;
  std::function<void(ElasticOptions&)> change = [](ElasticOptions&) {};
  std::vector<std::unique_ptr<Trainee>> members;
};

}  // namespace lockstep::allreduce::testing
