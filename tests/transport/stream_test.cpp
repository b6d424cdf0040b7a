// Frames between two sides of real connections: what is sent arrives, and every end has a reason.
#include "transport/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/mutex.h"

namespace lockstep::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::vector<std::byte> pattern(size_t size, unsigned seed = 1) {
  std::vector<std::byte> bytes(size);
  unsigned state = seed;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

std::vector<std::byte> payload_of(const Frame& frame) {
  std::vector<std::byte> bytes(frame.payload_size());
  frame.copy_to(bytes);
  return bytes;
}

std::string address_of(const Server& server) { return "127.0.0.1:" + std::to_string(server.port()); }

std::unique_ptr<Stream> connected(const Server& server, ConnectOptions options = {}) {
  options.patience = seconds(20);
  auto stream = connect(address_of(server), options);
  if (!stream) throw Error(stream.failure().message);
  return std::move(stream.value());
}

/// Sends every frame back as it came.
void echo(Stream& stream) {
  while (true) {
    base::Result<Frame> frame = stream.read();
    if (!frame) return;
    const auto held = std::make_shared<Frame>(std::move(frame.value()));
    if (!stream.write(held->header, held->pieces(), held)) return;
  }
}

const ServerOptions kAnyPort{.address = "127.0.0.1:0", .security = {}};

TEST(Stream, PayloadsOfAllSizesComeBackAsTheyWere) {
  Server server(kAnyPort, echo);
  const auto stream = connected(server);
  for (const size_t size : {0, 1, 63, 64, 1000, 16383, 16384, 31400, 65536, 1 << 20, (5 << 20) + 3}) {
    const auto bytes = pattern(size);
    Header header;
    header.kind = 7;
    header.flags = 3;
    header.element = 2;
    header.sequence = size;
    header.version = ~uint64_t{0};
    header.offset = 5;
    header.count = 6;
    header.extra = 9;
    ASSERT_TRUE(stream->write(header, bytes));
    base::Result<Frame> frame = stream->read();
    ASSERT_TRUE(frame) << frame.failure().message;
    EXPECT_EQ(std::memcmp(&frame.value().header, &header, sizeof(header)), 0);
    EXPECT_EQ(payload_of(frame.value()), bytes);
  }
}

TEST(Stream, ConnectingToNobodyNamesTheAddressAndTheReason) {
  int port = 0;
  {
    Server server(kAnyPort, echo);
    port = server.port();
  }
  const auto stream = connect("127.0.0.1:" + std::to_string(port), {.security = {}, .patience = milliseconds(300)});
  ASSERT_FALSE(stream);
  EXPECT_THAT(stream.failure().message, HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(stream.failure().message, HasSubstr("connection refused"));
}

TEST(Stream, TheHandlersEndIsTheStreamsEnd) {
  Server server(kAnyPort, [](Stream& stream) { (void)stream.write({}, pattern(100)); });
  const auto stream = connected(server);
  ASSERT_TRUE(stream->read());
  const auto frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_THAT(frame.failure().message, HasSubstr("the peer ended the stream"));
}

TEST(Stream, WhatAHandlerThrowsIsTheReasonThatThePeerGets) {
  Server server(kAnyPort, [](Stream&) { throw Error("the disk is full"); });
  const auto stream = connected(server);
  const auto frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_THAT(frame.failure().message, HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace lockstep::transport
