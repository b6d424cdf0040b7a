#include "base/tracer.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/temp_dir.h"
#include "observe/trace/role_trace.h"

namespace lockstep::base {
namespace {

using Clock = Tracer::Clock;

TEST(Tracer, CanBeReadWhileEveryTrackHasItsWriter) {
  Tracer tracer;
  const TraceLabel* label = tracer.label({"work", "test", {}, "i"});
  constexpr uint64_t kEvents = 20000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    TraceTrack& track = tracer.track("thread " + std::to_string(t));
    writers.emplace_back([&track, label] {
      for (uint64_t i = 0; i < kEvents; ++i) track.span(label, Clock::now(), Clock::now(), i);
    });
  }
  for (bool all = false; !all;) {
    all = true;
    for (const TraceTrack* track : tracer.tracks()) {
      const size_t size = track->size();
      all = all && size == kEvents;
      if (size == 0) continue;
      EXPECT_EQ((*track)[size - 1].number, size - 1);
    }
  }
  for (std::thread& writer : writers) writer.join();
}

TEST(Tracer, CountsWhatHasNoPlace) {
  Tracer tracer;
  TraceTrack& track = tracer.track("long");
  const TraceLabel* label = tracer.label({"work", "test"});
  const Clock::time_point now = Clock::now();
  while (track.dropped() == 0) track.span(label, now, now);
  const size_t size = track.size();
  track.span(label, now, now);
  EXPECT_EQ(track.size(), size);
  EXPECT_EQ(track.dropped(), 2U);
}

TEST(Tracer, NumbersOfArrowsDiffer) {
  std::set<uint64_t> numbers;
  for (uint64_t member = 0; member < 20; ++member) {
    for (uint64_t sequence = 0; sequence < 1000; ++sequence) numbers.insert(flow_number({0, member, 77, sequence, 0}));
  }
  EXPECT_EQ(numbers.size(), 20000U);
  EXPECT_NE(flow_number({1, 2}), flow_number({2, 1}));
}

TEST(RoleTrace, AFolderThatIsNotThereIsALineAndNoMore) {
  const observe::RoleTrace trace("worker:1");
  EXPECT_NE(trace.write("/nowhere/at/all/trace.json").find("/nowhere/at/all/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::base
