// What TCP says about a connection whose other machine does not answer.
#include "base/keep_alive.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "base/file.h"

namespace lockstep::base {
namespace {

/// A connection within this machine.
struct Connection {
  FileHandle here;
  FileHandle there;

  Connection() {
    const FileHandle listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener.get(), any, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &size), 0);
    here = FileHandle(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(here.get(), any, size), 0);
    there = FileHandle(accept(listener.get(), nullptr, nullptr));
  }
  /// From now on nothing that is sent here arrives there, nor does any answer come.
  void swallow() const {
    sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog program{1, &drop};
    for (const FileHandle* end : {&here, &there}) {
      EXPECT_EQ(setsockopt(end->get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
    }
  }
  [[nodiscard]] std::optional<double> waits() const {
    while (!unanswered(here.get())) ::poll(nullptr, 0, 10);
    return unanswered(here.get());
  }
};

TEST(Unanswered, WhatIsSentAndSwallowed) {
  const Connection connection;
  EXPECT_EQ(unanswered(connection.here.get()), std::nullopt);
  connection.swallow();
  EXPECT_EQ(unanswered(connection.here.get()), std::nullopt) << "nothing was asked";
  ASSERT_EQ(write(connection.here.get(), "x", 1), 1);
  EXPECT_GE(connection.waits(), 0);
}

TEST(Unanswered, AnIdleConnectionIsAsked) {
  const Connection connection;
  keep_alive(connection.here.get(), 1, 59);
  connection.swallow();
  EXPECT_GE(connection.waits(), 0);
}

TEST(Unanswered, APeerThatDoesNotReadAnswers) {
  const Connection connection;
  const std::array<char, 4096> bytes{};
  while (send(connection.here.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  EXPECT_EQ(unanswered(connection.here.get()), std::nullopt);
}

TEST(Unanswered, AnEndedConnection) {
  Connection connection;
  connection.there = FileHandle();
  const auto ended = [&] { return unanswered(connection.here.get()) == std::numeric_limits<double>::infinity(); };
  while (!ended()) ::poll(nullptr, 0, 10);
  EXPECT_TRUE(ended());
}

}  // namespace
}  // namespace lockstep::base
