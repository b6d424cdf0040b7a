// Frames between two sides of real connections arrive unchanged, sent from the sender's own memory.
#include "transport/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using testing::address_of;
using testing::any_port;
using testing::connected;
using testing::echo;
using testing::eventually;
using ::testing::HasSubstr;
using testing::KeptPort;
using testing::pattern;
using testing::payload_of;

using Pieces = std::vector<std::span<const std::byte>>;

TEST(Stream, PayloadsOfAllSizesComeBackAsTheyWere) {
  Server server(any_port(), echo);
  const auto stream = connected(server);
  for (const size_t size : {0, 1, 63, 64, 1000, 16383, 16384, 31400, 65536, 1 << 20, (5 << 20) + 3}) {
    const auto bytes = pattern(size);
    const Header header{.kind = 7,
                        .flags = 3,
                        .element = 2,
                        .sequence = size,
                        .version = ~uint64_t{0},
                        .offset = 5,
                        .count = 6,
                        .extra = 9};
    ASSERT_TRUE(stream->write(header, bytes));
    base::Result<Frame> frame = stream->read();
    ASSERT_TRUE(frame) << frame.failure().message();
    EXPECT_EQ(std::memcmp(&frame.value().header, &header, sizeof(header)), 0);
    EXPECT_EQ(payload_of(frame.value()), bytes);
  }
  EXPECT_EQ(stream->traffic().sent, stream->traffic().received);
  EXPECT_EQ(stream->traffic().sent,
            0U + 1 + 63 + 64 + 1000 + 16383 + 16384 + 31400 + 65536 + (1 << 20) + (5 << 20) + 3);
}

TEST(Stream, AMeterCountsWholeFramesOfAllConnectionsBothWays) {
  base::TrafficMeter here;
  base::TrafficMeter there;
  ServerOptions listen = any_port();
  listen.meter = &there;
  uint64_t bytes = 0;
  uint64_t messages = 0;
  {
    Server server(listen, echo);
    for (int connection = 0; connection < 2; ++connection) {
      const auto stream = connected(server, {.security = {}, .meter = &here});
      for (const size_t size : {0, 1, 1000, 200'000}) {
        ASSERT_TRUE(stream->write({}, pattern(size)));
        ASSERT_TRUE(stream->read());
        bytes += kHeaderBytes + size;
        ++messages;
      }
      stream->close_writes();
      EXPECT_FALSE(stream->read()) << "now the server has counted, too";
    }
  }
  for (const base::TrafficMeter* meter : {&here, &there}) {
    EXPECT_EQ(meter->totals().sent_bytes, bytes);
    EXPECT_EQ(meter->totals().received_bytes, bytes);
    EXPECT_EQ(meter->totals().sent_messages, messages);
    EXPECT_EQ(meter->totals().received_messages, messages);
  }
}

TEST(Stream, APayloadOfManyPiecesArrivesInTheirOrder) {
  Server server(any_port(), echo);
  const auto stream = connected(server);
  const auto bytes = pattern(200'000);
  Pieces pieces;
  size_t at = 0;
  for (size_t length = 1; at < bytes.size(); length = length * 2 + 1) {
    const size_t taken = std::min(length, bytes.size() - at);
    pieces.push_back(std::span(bytes).subspan(at, taken));
    pieces.emplace_back();  // an empty one changes nothing
    at += taken;
  }
  ASSERT_TRUE(stream->write({}, pieces, nullptr));
  const auto frame = stream->read();
  ASSERT_TRUE(frame);
  EXPECT_EQ(payload_of(frame.value()), bytes);
}

TEST(Stream, AFrameLivesOnAfterItsStream) {
  Frame kept;
  {
    Server server(any_port(), echo);
    const auto stream = connected(server);
    ASSERT_TRUE(stream->write({}, pattern(100'000)));
    kept = std::move(stream->read().value());
  }
  EXPECT_EQ(payload_of(kept), pattern(100'000));
}

TEST(Stream, MemoryIsHeldUntilItIsSentAndThenLetGoOnce) {
  std::atomic<bool> may_read = false;
  Server server(any_port(), [&](Stream& stream) {
    while (!may_read) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    while (stream.read()) {
    }
  });
  const auto stream = connected(server);
  constexpr size_t kFrame = size_t{8} << 20;
  std::atomic<int> released = 0;
  std::atomic<int> written = 0;
  constexpr int kFrames = 16;  // far more than windows and socket buffers can hold
  std::thread writer([&] {
    for (int i = 0; i < kFrames; ++i) {
      const auto bytes = std::make_shared<std::vector<std::byte>>(kFrame);
      const std::shared_ptr<const void> hold(bytes.get(), [bytes, &released](const void*) { ++released; });
      const Pieces halves{std::span(*bytes).first(kFrame / 2), std::span(*bytes).last(kFrame / 2)};
      ASSERT_TRUE(stream->write({}, halves, hold));
      ++written;
    }
  });
  // The peer does not read, so the writer waits and its frames are not released.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(written, kFrames);
  EXPECT_LT(released, kFrames);
  may_read = true;
  writer.join();
  EXPECT_TRUE(eventually([&] { return released == kFrames; })) << released;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(released, kFrames);
}

TEST(Stream, MemoryOfAFrameThatCannotBeSentIsLetGoToo) {
  Server server(any_port(), [](Stream&) {});
  const auto stream = connected(server);
  EXPECT_FALSE(stream->read());
  std::atomic<int> released = 0;
  const auto bytes = pattern(1000);
  const std::shared_ptr<const void> hold(bytes.data(), [&](const void*) { ++released; });
  const std::weak_ptr<const void> watch = hold;
  EXPECT_FALSE(stream->write({}, bytes, hold));
  EXPECT_TRUE(eventually([&] { return watch.use_count() == 1; })) << watch.use_count();
}

TEST(Stream, ReadingAndWritingGoOnAtTheSameTime) {
  Server server(any_port(), echo);
  const auto stream = connected(server);
  constexpr int kFrames = 300;
  std::thread writer([&] {
    for (int i = 0; i < kFrames; ++i) {
      const auto bytes = std::make_shared<std::vector<std::byte>>(pattern(static_cast<size_t>(i) * 999, i));
      Header header;
      header.sequence = static_cast<uint64_t>(i);
      ASSERT_TRUE(stream->write(header, *bytes, bytes));
    }
  });
  for (int i = 0; i < kFrames; ++i) {
    const auto frame = stream->read();
    ASSERT_TRUE(frame) << frame.failure().message();
    ASSERT_EQ(frame.value().header.sequence, static_cast<uint64_t>(i));
    ASSERT_EQ(payload_of(frame.value()), pattern(static_cast<size_t>(i) * 999, i));
  }
  writer.join();
}

TEST(Stream, SpinningWaitsBringTheSameFrames) {
  ServerOptions options = any_port();
  options.spin = std::chrono::microseconds(200);
  Server server(options, echo);
  ConnectOptions with;
  with.spin = std::chrono::microseconds(200);
  const auto stream = connected(server, with);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(stream->write({}, pattern(31400)));
    ASSERT_EQ(payload_of(stream->read().value()), pattern(31400));
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(Stream, FiftyConnectionsAreServedAtOnce) {
  constexpr int kClients = 50;
  std::atomic<int> inside = 0;
  Server server(any_port(), [&](Stream& stream) {
    ++inside;
    echo(stream);
  });
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kClients; ++i) streams.push_back(connected(server));
  EXPECT_TRUE(eventually([&] { return inside == kClients; })) << inside;
  std::vector<std::thread> clients;
  std::atomic<int> right = 0;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const auto stream = std::move(streams[static_cast<size_t>(i)]);
      for (int round = 0; round < 5; ++round) {
        const auto bytes = pattern(10'000 + static_cast<size_t>(i), i + round);
        if (!stream->write({}, bytes)) return;
        const auto frame = stream->read();
        if (!frame || payload_of(frame.value()) != bytes) return;
      }
      ++right;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, kClients);
}

TEST(Stream, AClientThatComesFirstFindsTheServerSoon) {
  const KeptPort port;
  std::unique_ptr<Stream> stream;
  std::thread client([&] { stream = connected(port.address()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const auto listening = std::chrono::steady_clock::now();
  Server server({.address = port.address(), .security = {}}, echo);
  client.join();
  RecordProperty("ms", static_cast<int>((std::chrono::steady_clock::now() - listening) / std::chrono::milliseconds(1)));
  ASSERT_TRUE(stream->write({}, pattern(10)));
  EXPECT_TRUE(stream->read());
  stream.reset();
}

TEST(Stream, APeerKnowsWhoTheOtherIs) {
  std::string seen;
  Server server(any_port(), [&](Stream& stream) {
    seen = stream.peer();
    (void)stream.write({});
  });
  const auto stream = connected(server);
  ASSERT_TRUE(stream->read());
  server.shutdown();
  EXPECT_THAT(seen, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(stream->peer(), address_of(server));
}

}  // namespace
}  // namespace lockstep::transport
