// What TCP says about a connection whose other machine does not answer.
#include "base/keep_alive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>

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
  /// From now on nothing that is sent here arrives there, nor does any answer come. False where filters of sockets are
  /// not allowed, as in some containers.
  [[nodiscard]] bool swallow() const {
    sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog program{1, &drop};
    for (const FileHandle* end : {&here, &there}) {
      if (setsockopt(end->get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0) return false;
    }
    return true;
  }
};

constexpr std::chrono::seconds kPatience{60};

/// Returns the first value that `unanswered` tells, as it does while a machine does not answer; nothing after a minute.
std::optional<double> first_wait(const Connection& connection) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::optional<double> wait;
  while (!(wait = unanswered(connection.here.get())) && std::chrono::steady_clock::now() < end) ::poll(nullptr, 0, 10);
  return wait;
}

/// The last answer came after `began`, up to the coarse ticks of the kernel's clock, and the connection still stands.
MATCHER_P(IsAtMostSince, began, "") {
  constexpr double kTicks = 0.1;
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - began;
  return arg && *arg >= 0 && *arg <= age.count() + kTicks;
}

TEST(Unanswered, WhatIsSentAndSwallowed) {
  const auto began = std::chrono::steady_clock::now();
  const Connection connection;
  EXPECT_EQ(unanswered(connection.here.get()), std::nullopt);
  if (!connection.swallow()) GTEST_SKIP() << "filters of sockets are not allowed here";
  EXPECT_EQ(unanswered(connection.here.get()), std::nullopt) << "nothing was asked";
  ASSERT_EQ(write(connection.here.get(), "x", 1), 1);
  EXPECT_THAT(first_wait(connection), IsAtMostSince(began));
}

TEST(Unanswered, AnIdleConnectionIsAsked) {
  const auto began = std::chrono::steady_clock::now();
  const Connection connection;
  keep_alive(connection.here.get(), 1, 59);
  if (!connection.swallow()) GTEST_SKIP() << "filters of sockets are not allowed here";
  EXPECT_THAT(first_wait(connection), IsAtMostSince(began));
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
  EXPECT_EQ(first_wait(connection), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lockstep::base
