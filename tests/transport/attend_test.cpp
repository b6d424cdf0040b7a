// Streams that a few threads serve: however many, they have no threads of their own, all their frames and ends arrive,
// and one that waits or does not read holds up no other.
#include "transport/attend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "base/mutex.h"
#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using testing::any_port;
using testing::connected;
using testing::eventually;
using ::testing::HasSubstr;
using testing::pattern;
using testing::threads_here;

constexpr int kMuch = 16;
constexpr size_t kPayload = 4 << 20;  ///< times kMuch: more than sockets and windows hold

/// Attends each stream after its first frame, and counts what arrives.
class Attendant {
 public:
  void operator()(Stream& stream) {
    const auto first = stream.read();
    if (!first) return;
    const uint64_t id = first.value().header.extra;
    {
      const base::MutexLock lock(mutex_);
      streams_[id] = &stream;
    }
    Attendance attendance;
    attendance.on_frame = [this, id](const Frame& frame) { return take(id, frame); };
    attendance.ready = [this, id] { return may_read(id) ? Next::read : Next::wait; };
    attendance.on_end = [this, id] {
      const base::MutexLock lock(mutex_);
      streams_.erase(id);
      ++ends;
    };
    attend(stream, std::move(attendance));
    ++attended;
  }
  /// Streams that said 2 go on.
  void release_all() {
    const base::MutexLock lock(mutex_);
    for (const uint64_t id : std::exchange(waiting_, {})) wake(*streams_.at(id));
  }
  void cancel_all() {
    const base::MutexLock lock(mutex_);
    for (const auto& [id, stream] : streams_) stream->cancel("given up");
  }

  std::atomic<int> attended = 0;
  std::atomic<int> ends = 0;
  std::atomic<uint64_t> frames = 0;
  std::atomic<bool> in_order = true;

 private:
  [[nodiscard]] bool may_read(uint64_t id) {
    const base::MutexLock lock(mutex_);
    return waiting_.count(id) == 0;
  }
  /// 1: answers the same; 2: waits; 3: answers much; 4: ends.
  Next take(uint64_t id, const Frame& frame) {
    if (frame.header.kind == 9) throw Error("nobody says 9 here");
    const base::MutexLock lock(mutex_);
    if (frame.header.sequence != ++latest_[id]) in_order = false;
    ++frames;
    Stream& stream = *streams_.at(id);
    const uint16_t kind = frame.header.kind;
    if (kind == 1 || kind == 4) {
      EXPECT_TRUE(stream.write(frame.header));
    }
    if (kind == 2) waiting_.insert(id);
    for (int i = 0; kind == 3 && i < kMuch; ++i) {
      const auto payload = std::make_shared<const std::vector<std::byte>>(kPayload);
      EXPECT_TRUE(stream.write(frame.header, *payload, payload));
    }
    return kind == 4 ? Next::end : kind == 2 ? Next::wait : Next::read;
  }

  base::Mutex mutex_;
  std::map<uint64_t, Stream*> streams_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> latest_ LOCKSTEP_GUARDED_BY(mutex_);
  std::set<uint64_t> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
};

ServerOptions with_hands(int hands) {
  ServerOptions options = any_port();
  options.hands = hands;
  return options;
}

std::unique_ptr<Stream> attended_by(const Server& server, uint64_t id) {
  auto stream = connected(server);
  Header hello;
  hello.extra = id;
  EXPECT_TRUE(stream->write(hello));
  return stream;
}

TEST(Attended, ManyHaveNoThreadsAndTheirFramesArriveInOrder) {
  constexpr int kStreams = 40;
  constexpr uint64_t kFrames = 100;  // more than one stream's turn
  Attendant attendant;
  const Server server(with_hands(3), std::ref(attendant));
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(attended_by(server, 0));
  ASSERT_TRUE(eventually([&] { return attendant.attended == 1; }));
  const size_t threads_for_one = threads_here();
  for (int i = 1; i < kStreams; ++i) streams.push_back(attended_by(server, static_cast<uint64_t>(i)));
  ASSERT_TRUE(eventually([&] { return attendant.attended == kStreams; }));
  EXPECT_TRUE(eventually([&] { return threads_here() <= threads_for_one + 8; })) << threads_here() << " threads";
  Header header;
  for (header.sequence = 1; header.sequence <= kFrames; ++header.sequence) {
    const std::vector<std::byte> payload = pattern(header.sequence == 3 ? 300'000 : 10);
    for (const auto& stream : streams) ASSERT_TRUE(stream->write(header, payload));
  }
  EXPECT_TRUE(eventually([&] { return attendant.frames == kStreams * kFrames; })) << attendant.frames;
  EXPECT_TRUE(attendant.in_order);
  streams.resize(kStreams / 2);
  EXPECT_TRUE(eventually([&] { return attendant.ends == kStreams / 2; }));
  header.kind = 1;
  for (const auto& stream : streams) {
    ASSERT_TRUE(stream->write(header));
    ASSERT_TRUE(stream->read()) << "the others go on";
  }
}

TEST(Attended, EndWithTheServer) {
  Attendant attendant;
  auto server = std::make_unique<Server>(with_hands(1), std::ref(attendant));
  const auto first = attended_by(*server, 0);
  const auto second = attended_by(*server, 1);
  ASSERT_TRUE(eventually([&] { return attendant.attended == 2; }));
  Header header;
  header.kind = 2;
  header.sequence = 1;
  ASSERT_TRUE(second->write(header));
  ASSERT_TRUE(eventually([&] { return attendant.frames == 1; }));  // it waits
  server.reset();
  EXPECT_EQ(attendant.ends, 2);
  EXPECT_FALSE(first->read());
  EXPECT_FALSE(second->read());
}

TEST(Attended, EndWhenTheyAreCancelled) {
  Attendant attendant;
  const Server server(with_hands(1), std::ref(attendant));
  const auto stream = attended_by(server, 0);
  ASSERT_TRUE(eventually([&] { return attendant.attended == 1; }));
  attendant.cancel_all();
  EXPECT_TRUE(eventually([&] { return attendant.ends == 1; }));
  EXPECT_FALSE(stream->read());
}

TEST(Attended, TellThePeerWhatIsWrongWithAFrame) {
  Attendant attendant;
  const Server server(with_hands(1), std::ref(attendant));
  const auto stream = attended_by(server, 0);
  Header header;
  header.kind = 9;
  ASSERT_TRUE(stream->write(header));
  const auto answer = stream->read();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.failure().message(), HasSubstr("nobody says 9 here"));
  EXPECT_TRUE(eventually([&] { return attendant.ends == 1; }));
}

TEST(Attended, GoOnInOrderWhenTheyAreWoken) {
  Attendant attendant;
  const Server server(with_hands(1), std::ref(attendant));
  const auto waits = attended_by(server, 0);
  const auto other = attended_by(server, 1);
  Header header;
  for (header.sequence = 1; header.sequence <= 3; ++header.sequence) {
    header.kind = header.sequence == 1 ? 2 : 1;
    ASSERT_TRUE(waits->write(header));
  }
  ASSERT_TRUE(eventually([&] { return attendant.frames == 1; }));
  header.sequence = 1;
  ASSERT_TRUE(other->write(header));
  ASSERT_TRUE(other->read());
  EXPECT_EQ(attendant.frames, 2U) << "the first one reads nothing while it waits";
  attendant.release_all();
  ASSERT_TRUE(waits->read());
  ASSERT_TRUE(waits->read());
  EXPECT_TRUE(attendant.in_order);
}

TEST(Attended, WithoutAReaderHoldUpNobodyElse) {
  Attendant attendant;
  const Server server(with_hands(1), std::ref(attendant));
  const auto silent = attended_by(server, 0);
  const auto other = attended_by(server, 1);
  Header header;
  header.kind = 3;
  header.sequence = 1;
  ASSERT_TRUE(silent->write(header));
  header.kind = 1;
  header.sequence = 2;
  ASSERT_TRUE(silent->write(header));
  ASSERT_TRUE(eventually([&] { return attendant.frames == 1; }));
  for (header.sequence = 1; header.sequence <= 10; ++header.sequence) {
    ASSERT_TRUE(other->write(header));
    ASSERT_TRUE(other->read());
  }
  EXPECT_EQ(attendant.frames, 11U) << "the next frame is read when the answer is on its way";
  for (int i = 0; i < kMuch; ++i) {
    const auto part = silent->read();
    ASSERT_TRUE(part);
    EXPECT_EQ(part.value().payload_size(), kPayload);
  }
  ASSERT_TRUE(silent->read());
  EXPECT_EQ(attendant.frames, 12U);
  header.kind = 3;
  header.sequence = 3;
  ASSERT_TRUE(silent->write(header));
  ASSERT_TRUE(eventually([&] { return attendant.frames == 13; }));
  attendant.cancel_all();
  EXPECT_TRUE(eventually([&] { return attendant.ends == 2; })) << "also of one whose peer does not read";
}

TEST(Attended, EndInOrderAfterAllThatWasWritten) {
  Attendant attendant;
  const Server server(with_hands(1), std::ref(attendant));
  const auto stream = attended_by(server, 0);
  Header header;
  header.kind = 4;
  header.sequence = 1;
  ASSERT_TRUE(stream->write(header));
  ASSERT_TRUE(stream->read());
  const auto last = stream->read();
  ASSERT_FALSE(last);
  EXPECT_THAT(last.failure().message(), HasSubstr("the peer ended the stream"));
}

TEST(Attended, NeedHands) {
  Attendant attendant;
  const Server server(any_port(), std::ref(attendant));
  const auto stream = attended_by(server, 0);
  const auto answer = stream->read();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.failure().message(), HasSubstr("cannot be attended"));
}

}  // namespace
}  // namespace lockstep::transport
