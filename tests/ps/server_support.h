// ps:0 in this process, which a test can kill and restart with its folder, and peers that a test plays frame by frame.
// The server is not run(): no silent peer is dropped, so a test may take its time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/temp_dir.h"
#include "ps/server.h"
#include "transport/streams.h"

namespace lockstep::ps::testing {

constexpr int kParameters = 8;

class Ps0 {
 public:
  Ps0(int workers, Durability durability) {
    options_.spec.ps = {port_.address()};
    for (int i = 0; i < workers; ++i) options_.spec.workers.push_back("127.0.0.1:" + std::to_string(i + 1));
    options_.spec.evaluator = {"127.0.0.1:9"};
    options_.folder = folder_ / "ps-0";
    options_.job = "0123456789abcdef";
    options_.run = "run";
    options_.durability = durability;
    options_.log = [this](std::string_view, const std::string& text) {
      const base::MutexLock lock(mutex_);
      lines_.push_back(text);
    };
    start();
  }

  void start() { server_ = std::make_unique<Server>(options_); }
  /// Drops everything outside its folder.
  void kill() { server_.reset(); }

  [[nodiscard]] const cluster::Spec& spec() const { return options_.spec; }
  [[nodiscard]] const std::string& job() const { return options_.job; }
  [[nodiscard]] Server& server() { return *server_; }
  [[nodiscard]] std::vector<std::string> lines() {
    const base::MutexLock lock(mutex_);
    return lines_;
  }

 private:
  ::lockstep::testing::TempDir folder_;
  transport::testing::KeptPort port_;
  ServerOptions options_;
  base::Mutex mutex_;
  std::vector<std::string> lines_ LOCKSTEP_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_;
};

/// One stream of a process, already welcomed.
class Peer {
 public:
  Peer(const Ps0& ps, const std::string& role, int member, bool control = false)
      : ps_(ps), stream_(transport::testing::connected(ps.spec().ps.front())) {
    wire::Hello hello;
    hello.set_protocol(kProtocol);
    hello.set_role(role);
    hello.set_member(member);
    hello.set_incarnation(static_cast<uint64_t>(member) + 100);
    hello.set_job(ps.job());
    introduce(hello);
    transport::Header first = header(Kind::hello);
    first.flags = control ? kControl : 0;
    EXPECT_TRUE(send(*stream_, first, hello).ok());
    EXPECT_EQ(kind_of(stream_->read().value_or_throw()), Kind::welcome);
  }

  [[nodiscard]] transport::Stream& stream() { return *stream_; }
  void say(transport::Header header) { EXPECT_TRUE(stream_->write(header).ok()); }
  /// The chief: sets the parameters of this generation, for the first time or again.
  void initialise(uint64_t generation) {
    CoordinatorOptions rules;
    rules.members = static_cast<int>(ps_.spec().workers.size());
    rules.examples = 1000;
    wire::JobConfig job;
    to_wire(rules, job);
    to_wire(Rules{}, *job.mutable_optimizer());
    job.set_parameters(kParameters);
    job.set_generation(generation);
    job.set_job(ps_.job());
    job.set_wire(static_cast<uint32_t>(Element::kFloat32));
    job.add_ranges()->set_count(kParameters);
    const std::vector<float> values(kParameters, static_cast<float>(generation));
    EXPECT_TRUE(send(*stream_, header(Kind::init_begin), job).ok());
    EXPECT_TRUE(send_elements(*stream_, header(Kind::init), values, Element::kFloat32, nullptr, nullptr).ok());
    EXPECT_TRUE(send(*stream_, header(Kind::init_end), wire::Ledger()).ok());
    EXPECT_EQ(kind_of(stream_->read().value_or_throw()), Kind::ok);
  }
  /// Joins, and returns the answer.
  wire::Reply join() {
    say(header(Kind::join));
    return parse<wire::Reply>(stream_->read().value_or_throw());
  }
  /// Returns true if a pull is answered with parameters.
  bool pulls() {
    if (!stream_->write(header(Kind::pull))) return false;
    const base::Result<transport::Frame> answer = stream_->read();
    return answer && kind_of(answer.value()) == Kind::parameters;
  }
  /// Waits for the end of training.
  void wait_end() {
    say(header(Kind::wait_end));
    const base::Result<transport::Frame> answer = stream_->read();
    EXPECT_TRUE(answer && kind_of(answer.value()) == Kind::snapshot_end);
  }
  /// Ends the stream and waits until the server has finished with it.
  void close() {
    stream_->close_writes();
    while (stream_->read()) {
    }
  }

 private:
  const Ps0& ps_;
  std::unique_ptr<transport::Stream> stream_;
};

}  // namespace lockstep::ps::testing
