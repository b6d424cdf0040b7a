// Streams that the server's own thread reads: however many, they have no threads, and all their frames and ends arrive.
#include "transport/attend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

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
    attend(stream, {[this, id](const Frame& frame) { take(id, frame); },
                    [this, id] {
                      const base::MutexLock lock(mutex_);
                      streams_.erase(id);
                      ++ends;
                    }});
    ++attended;
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
  void take(uint64_t id, const Frame& frame) {
    if (frame.header.kind == 9) throw Error("nobody says 9 here");
    const base::MutexLock lock(mutex_);
    if (frame.header.sequence != ++latest_[id]) in_order = false;
    ++frames;
    if (frame.header.kind != 1) return;
    EXPECT_TRUE(streams_.at(id)->write(frame.header));
  }

  base::Mutex mutex_;
  std::map<uint64_t, Stream*> streams_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> latest_ LOCKSTEP_GUARDED_BY(mutex_);
};

std::unique_ptr<Stream> attended_by(const Server& server, uint64_t id) {
  auto stream = connected(server);
  Header hello;
  hello.extra = id;
  EXPECT_TRUE(stream->write(hello));
  return stream;
}

TEST(Attended, ManyHaveNoThreadsAndTheirFramesArriveInOrder) {
  constexpr int kStreams = 40;
  constexpr uint64_t kFrames = 100;  // more than are read at once
  Attendant attendant;
  const Server server(any_port(), std::ref(attendant));
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
  auto server = std::make_unique<Server>(any_port(), std::ref(attendant));
  const auto first = attended_by(*server, 0);
  const auto second = attended_by(*server, 1);
  ASSERT_TRUE(eventually([&] { return attendant.attended == 2; }));
  server.reset();
  EXPECT_EQ(attendant.ends, 2);
  EXPECT_FALSE(first->read());
  EXPECT_FALSE(second->read());
}

TEST(Attended, EndWhenTheyAreCancelled) {
  Attendant attendant;
  const Server server(any_port(), std::ref(attendant));
  const auto stream = attended_by(server, 0);
  ASSERT_TRUE(eventually([&] { return attendant.attended == 1; }));
  attendant.cancel_all();
  EXPECT_TRUE(eventually([&] { return attendant.ends == 1; }));
  EXPECT_FALSE(stream->read());
}

TEST(Attended, TellThePeerWhatIsWrongWithAFrame) {
  Attendant attendant;
  const Server server(any_port(), std::ref(attendant));
  const auto stream = attended_by(server, 0);
  Header header;
  header.kind = 9;
  ASSERT_TRUE(stream->write(header));
  const auto answer = stream->read();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.failure().message(), HasSubstr("nobody says 9 here"));
  EXPECT_TRUE(eventually([&] { return attendant.ends == 1; }));
}

}  // namespace
}  // namespace lockstep::transport
