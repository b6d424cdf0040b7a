// ps:0 in this process, which a test can kill and restart with its folder, and peers that a test plays frame by frame.
// The server is not run(): no silent peer is dropped, so a test may take its time.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "base/temp_dir.h"
#include "ps/server.h"
#include "transport/streams.h"

namespace lockstep::ps::testing {

constexpr int kParameters = 8;

class Ps0 {
 public:
  /// With `disk_bytes`, its folder is a file system of that size; `has_disk` tells whether it could be made.
  Ps0(int workers, Durability durability, size_t disk_bytes = 0) {
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
    if (disk_bytes > 0) mount(disk_bytes);
    start();
  }
  ~Ps0() {
    kill();
    if (has_disk_) ::umount2(options_.folder.c_str(), MNT_DETACH);
  }
  Ps0(const Ps0&) = delete;
  Ps0& operator=(const Ps0&) = delete;

  [[nodiscard]] bool has_disk() const { return has_disk_; }
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
  void mount(size_t bytes) {
    base::make_directories(options_.folder);
    const std::string size = "size=" + std::to_string(bytes);
    has_disk_ = ::mount("tmpfs", options_.folder.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }

  ::lockstep::testing::TempDir folder_;
  bool has_disk_ = false;
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
  void initialise(uint64_t generation, bool sync = true, size_t parameters = kParameters) {
    CoordinatorOptions rules;
    rules.sync = sync;
    rules.members = static_cast<int>(ps_.spec().workers.size());
    rules.examples = 1000;
    wire::JobConfig job;
    to_wire(rules, job);
    to_wire(Rules{}, *job.mutable_optimizer());
    job.set_parameters(parameters);
    job.set_generation(generation);
    job.set_job(ps_.job());
    job.set_wire(static_cast<uint32_t>(Element::kFloat32));
    job.add_ranges()->set_count(parameters);
    const std::vector<float> values(parameters, static_cast<float>(generation));
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
  /// Reads an answer of parameters to its end.
  wire::Reply read_reply() {
    for (;;) {
      const transport::Frame frame = stream_->read().value_or_throw();
      EXPECT_EQ(kind_of(frame), Kind::parameters) << frame.text();
      if ((frame.header.flags & kLast) != 0) return parse<wire::Reply>(frame);
    }
  }
  /// Sends the gradient of one example, as its plan has it.
  void push(uint64_t sequence, const wire::Plan& plan, const std::vector<float>& gradient, uint64_t base = 0) {
    wire::PushEnd end;
    end.set_plan(plan.id());
    end.set_rounds(1);
    end.set_examples(1);
    end.set_gradient_scale(1);
    transport::Header elements = header(Kind::push);
    elements.sequence = sequence;
    elements.version = base;
    EXPECT_TRUE(send_elements(*stream_, elements, gradient, Element::kFloat32, nullptr, &end).ok());
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
