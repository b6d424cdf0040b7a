// Every way in which a stream can end or fail to start has a reason, and no caller waits forever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <future>

#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using std::chrono::milliseconds;
using testing::address_of;
using testing::any_port;
using ::testing::AnyOf;
using testing::connected;
using testing::echo;
using testing::eventually;
using ::testing::HasSubstr;
using testing::KeptPort;
using testing::pattern;
using testing::threads_here;

/// Another process (stream_peer.cpp), which can be killed.
class Peer {
 public:
  explicit Peer(const std::string& what, const std::string& address = "") {
    int ends[2];
    if (pipe(ends) != 0) throw Error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execl(LOCKSTEP_STREAM_PEER, LOCKSTEP_STREAM_PEER, what.c_str(), address.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Peer() {
    end(SIGKILL);
    fclose(out_);
  }
  /// Reads one line that it printed.
  std::string line() {
    char text[200] = "";
    if (fgets(text, sizeof(text), out_) == nullptr) return "";
    std::string result = text;
    while (!result.empty() && result.back() == '\n') result.pop_back();
    return result;
  }
  /// Stops the process; it is stopped on return.
  void stop() const {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void go_on() const { kill(pid_, SIGCONT); }
  void end(int signal) {
    if (pid_ < 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

TEST(Connecting, ToNobodyNamesTheAddressAndTheReason) {
  const KeptPort port;
  const auto stream = connect(port.address(), {.security = {}, .patience = milliseconds(300)});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.failure().message(),
            "cannot connect to " + port.address() + " within 0.3 s: connection refused: no process listens there");
}

TEST(Connecting, ToAHostThatDoesNotExistSaysSo) {
  const auto stream = connect("no-such-host.invalid:4000", {.security = {}, .patience = milliseconds(300)});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.failure().kind, base::FailureKind::unreachable);
  EXPECT_THAT(stream.failure().message(), HasSubstr("no-such-host.invalid:4000"));
  EXPECT_THAT(stream.failure().message(), HasSubstr("the host cannot be found"));
}

TEST(Connecting, EndsWhenTheCallerGivesUp) {
  int asked = 0;
  const auto stream =
      connect("127.0.0.1:1", {.security = {}, .patience = std::chrono::hours(1)}, [&] { return ++asked == 3; });
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.failure().kind, base::FailureKind::interrupted);
}

TEST(Connecting, ToAStoppedProcessEndsWithItsPatience) {
  Peer server("echo");
  const std::string address = server.line();
  server.stop();
  const auto stream = connect(address, {.security = {}, .patience = milliseconds(500)});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.failure().kind, base::FailureKind::unreachable);
  EXPECT_THAT(stream.failure().message(), HasSubstr("cannot connect to " + address + " within 0.5 s"));
  server.go_on();
  EXPECT_TRUE(connected(address)->write({}));
}

TEST(Listening, WhereSomeoneListensAlreadyIsAnErrorWithTheAddress) {
  const Server first(any_port(), echo);
  try {
    const Server second({.address = address_of(first), .security = {}}, echo);
    FAIL() << "two servers at one address";
  } catch (const IoError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot listen at " + address_of(first) + ": Address already in use");
  }
  EXPECT_THROW(Server({.address = "no-port", .security = {}}, echo), IoError);
  EXPECT_THROW(Server({.address = "no-such-host.invalid:1", .security = {}}, echo), IoError);
}

TEST(Ending, TheHandlersEndIsTheStreamsEndAfterAllFrames) {
  Server server(any_port(), [](Stream& stream) {
    for (int i = 0; i < 5; ++i) (void)stream.write({}, pattern(100'000));
  });
  const auto stream = connected(server);
  (void)stream->write({}, pattern(100'000));  // no peer reads it, and it may be too late
  std::this_thread::sleep_for(milliseconds(50));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream->read());
  const auto frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.failure().kind, base::FailureKind::gone);
  EXPECT_EQ(frame.failure().message(), address_of(server) + ": the peer ended the stream");
}

TEST(Ending, WhatAHandlerThrowsIsTheReasonThatThePeerGets) {
  Server server(any_port(), [](Stream&) { throw Error("the disk is full: 100 %"); });
  const auto stream = connected(server);
  const auto frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_THAT(frame.failure().message(), HasSubstr("the disk is full: 100 %"));
}

TEST(Ending, AClientCanCloseItsSideAndStillRead) {
  std::string why;
  Server server(any_port(), [&](Stream& stream) {
    while (true) {
      const auto frame = stream.read();
      if (frame) continue;
      why = frame.failure().message();
      break;
    }
    (void)stream.write({}, pattern(10));
  });
  const auto stream = connected(server);
  ASSERT_TRUE(stream->write({}, pattern(10)));
  stream->close_writes();
  EXPECT_TRUE(stream->read());
  EXPECT_FALSE(stream->read());
  server.shutdown();
  EXPECT_THAT(why, HasSubstr("the peer ended the stream"));
}

TEST(Ending, CancelWakesAReaderOnBothSides) {
  std::promise<std::string> seen;
  Server server(any_port(), [&](Stream& stream) { seen.set_value(stream.read().failure().message()); });
  auto stream = connected(server);
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stream->cancel("no heartbeat for 5.0 s");
  });
  const auto frame = stream->read();
  canceller.join();
  ASSERT_FALSE(frame);
  EXPECT_THAT(frame.failure().message(), HasSubstr("no heartbeat for 5.0 s"));
  EXPECT_FALSE(stream->write({}));
  stream.reset();
  EXPECT_THAT(seen.get_future().get(), HasSubstr("connection lost or closed by the peer"));
}

TEST(Ending, CancelInTheServerWakesItsReaderAndTellsTheClientWhy) {
  Server server(any_port(), [&](Stream& stream) {
    std::thread canceller([&] {
      std::this_thread::sleep_for(milliseconds(50));
      stream.cancel("worker:1 has a new incarnation");
    });
    EXPECT_FALSE(stream.read());
    canceller.join();
  });
  const auto stream = connected(server);
  const auto frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_THAT(frame.failure().message(), HasSubstr("worker:1 has a new incarnation"));
}

TEST(Ending, CancelInTheServerWakesItsWriterThoughNobodyReads) {
  std::atomic<bool> failed = false;
  Server server(any_port(), [&](Stream& stream) {
    std::thread canceller([&] {
      std::this_thread::sleep_for(milliseconds(100));
      stream.cancel("worker:1 has a new incarnation");
    });
    const auto bytes = pattern(1 << 20);
    while (stream.write({}, bytes)) {
    }
    failed = true;
    canceller.join();
  });
  const auto stream = connected(server);
  ASSERT_TRUE(eventually([&] { return failed.load(); }));
  base::Result<Frame> frame = stream->read();
  while (frame) frame = stream->read();
}

TEST(Ending, CancelWakesAWriterWhosePeerIsStopped) {
  Peer server("echo");
  const auto stream = connected(server.line());
  server.stop();
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(300));
    stream->cancel("no heartbeat for 5.0 s");
  });
  const auto bytes = pattern(1 << 20);
  base::Status written;
  while (written) written = stream->write({}, bytes);
  canceller.join();
  EXPECT_THAT(written.failure().message(), HasSubstr("no heartbeat for 5.0 s"));
}

TEST(Ending, AStreamToAStoppedPeerCanBeDestroyedAndLetsItsMemoryGo) {
  Peer server("echo");
  auto stream = connected(server.line());
  server.stop();
  std::atomic<int> held = 0;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    base::Status written;
    while (written) {
      const auto bytes = std::make_shared<std::vector<std::byte>>(1 << 20);
      ++held;
      written = stream->write({}, *bytes, std::shared_ptr<const void>(bytes.get(), [bytes, &held](auto*) { --held; }));
    }
    done = true;
  });
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_FALSE(done);
  stream->cancel("the end");
  writer.join();
  stream.reset();
  EXPECT_TRUE(eventually([&] { return held == 0; })) << held;
}

TEST(Ending, CancelWakesAWriterWhomNobodyReads) {
  std::promise<void> over;
  Server server(any_port(), [over = over.get_future().share()](Stream& stream) {
    over.wait();
    (void)stream.write({});
  });
  const auto stream = connected(server);
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(100));
    stream->cancel("stop");
  });
  const auto bytes = pattern(1 << 20);
  base::Status written;
  while (written) written = stream->write({}, bytes);
  canceller.join();
  over.set_value();
  EXPECT_THAT(written.failure().message(), HasSubstr("stop"));
}

TEST(Ending, AKilledServerIsNoticedAtOnce) {
  Peer server("echo");
  const auto stream = connected(server.line());
  ASSERT_TRUE(stream->write({}, pattern(1000)));
  ASSERT_TRUE(stream->read());
  server.end(SIGKILL);
  const auto frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.failure().kind, base::FailureKind::gone);
  EXPECT_EQ(frame.failure().text, "connection lost");
  EXPECT_FALSE(stream->write({}, pattern(1000)));
}

TEST(Ending, AKilledClientIsNoticedAtOnce) {
  std::atomic<int> frames = 0;
  std::string why;
  std::atomic<bool> ended = false;
  Server server(any_port(), [&](Stream& stream) {
    while (true) {
      const auto frame = stream.read();
      if (!frame) {
        why = frame.failure().message();
        ended = true;
        return;
      }
      ++frames;
    }
  });
  Peer client("send", address_of(server));
  ASSERT_TRUE(eventually([&] { return frames > 10; }));
  EXPECT_FALSE(ended);
  client.end(SIGKILL);
  ASSERT_TRUE(eventually([&] { return ended.load(); }));
  EXPECT_THAT(why, HasSubstr("connection lost or closed by the peer"));
}

TEST(Ending, AServerShutsDownThoughAPeerNeverReads) {
  std::atomic<bool> writing = false;
  auto server = std::make_unique<Server>(any_port(), [&](Stream& stream) {
    writing = true;
    const auto bytes = pattern(4 << 20);
    while (stream.write({}, bytes)) {
    }
  });
  Peer client("stand", address_of(*server));
  ASSERT_EQ(client.line(), "connected");
  ASSERT_TRUE(eventually([&] { return writing.load(); }));
  std::this_thread::sleep_for(milliseconds(200));
  client.stop();
  server.reset();
}

TEST(Ending, AHandlersLastFramesToAPeerThatNeverReadsDoNotHoldAnythingUp) {
  auto server = std::make_unique<Server>(any_port(), [&](Stream& stream) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(pattern(32 << 20));
    (void)stream.write({}, *bytes, bytes);
  });
  Peer client("stand", address_of(*server));
  ASSERT_EQ(client.line(), "connected");
  client.stop();
  std::this_thread::sleep_for(milliseconds(100));
  server.reset();
}

TEST(Ending, AServerShutsDownWithStreamsInAllStates) {
  for (int round = 0; round < 5; ++round) {
    auto server = std::make_unique<Server>(any_port(), echo);
    std::vector<std::thread> clients;
    const std::string address = address_of(*server);
    for (int i = 0; i < 6; ++i) {
      clients.emplace_back([&, i] {
        auto stream = connect(address, {.security = {}, .patience = milliseconds(100 + i)});
        while (stream && stream.value()->write({}, pattern(100'000)) && stream.value()->read()) {
        }
      });
    }
    std::this_thread::sleep_for(milliseconds(20 * round));
    server.reset();
    for (std::thread& client : clients) client.join();
  }
}

TEST(Ending, OneStreamTooManyIsRefusedWithAReason) {
  ServerOptions options = any_port();
  options.most_streams = 2;
  Server server(options, echo);
  auto first = connected(server);
  const auto second = connected(server);
  const auto third = connect(address_of(server), {.security = {}, .patience = std::chrono::seconds(100)});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.failure().kind, base::FailureKind::unreachable);
  EXPECT_EQ(third.failure().message(),
            "cannot connect to " + address_of(server) + ": the server has 2 streams, which is its limit");
  first.reset();
  EXPECT_TRUE(eventually([&] { return connect(address_of(server), {.security = {}}).ok(); }));
}

TEST(Ending, AFrameLargerThanTheLimitIsRefusedBeforeItIsSent) {
  Server server(any_port(), echo);
  const auto stream = connected(server, {.security = {}, .largest_payload = 1000});
  const auto bytes = pattern(1001);
  const auto written = stream->write({}, bytes);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.failure().kind, base::FailureKind::limit);
  EXPECT_THAT(written.failure().message(), HasSubstr("1001 bytes; at most 1000 are allowed"));
  EXPECT_TRUE(stream->write({}, std::span(bytes).first(1000)));
  EXPECT_TRUE(stream->read());
}

TEST(Ending, AServerEndsAStreamWithALargerFrameThanItAllows) {
  ServerOptions options = any_port();
  options.largest_payload = 1000;
  Server server(options, echo);
  const auto stream = connected(server);
  const auto bytes = pattern(100'000);
  (void)stream->write({}, bytes);
  EXPECT_FALSE(stream->read());
  EXPECT_TRUE(connected(server)->write({}));
}

TEST(Ending, ThreadsOfStreamsThatEndedAreGone) {
  const size_t before = threads_here();
  {
    Server server(any_port(), echo);
    for (int i = 0; i < 30; ++i) {
      const auto stream = connected(server);
      ASSERT_TRUE(stream->write({}));
      ASSERT_TRUE(stream->read());
    }
  }
  // gRPC keeps some threads.
  EXPECT_TRUE(eventually([&] { return threads_here() <= before + 16; })) << threads_here() << " after " << before;
}

}  // namespace
}  // namespace lockstep::transport
