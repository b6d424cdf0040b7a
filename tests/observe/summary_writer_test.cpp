#include "observe/tensorboard/summary_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "lockstep/ops.h"
#include "observe/event_reader.h"

namespace lockstep::observe {
namespace {

using lockstep::testing::TempDir;
using tensorboard::Event;
using tensorboard::SessionLog;
using testing::event_files;
using testing::events_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SummaryWriter::Warn no_warning() {
  return [](const std::string& text) { ADD_FAILURE() << text; };
}

TEST(SummaryWriter, BeginsWithTheVersionAndTheStepItGoesOnFrom) {
  const TempDir dir;
  SummaryWriter writer(dir.path(), no_warning());
  writer.go_on_from(500);
  const std::vector<Event> events = events_of(dir.path());
  ASSERT_THAT(events, SizeIs(2)) << "in the file from the start";
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), SessionLog::START);
  EXPECT_EQ(events[1].step(), 501) << "step 500 itself still counts";
}

TEST(SummaryWriter, WritesScalars) {
  const TempDir dir;
  {
    SummaryWriter writer(dir.path(), no_warning());
    writer.go_on_from(0);
    for (uint64_t step = 1; step <= 1000; ++step) writer.scalar("train/loss", step, 1.0 / static_cast<double>(step));
    EXPECT_GT(events_of(dir.path()).size(), 500U) << "without a flush";
  }
  const std::vector<Event> events = events_of(dir.path());
  ASSERT_THAT(events, SizeIs(1002));
  for (size_t i = 2; i < events.size(); ++i) {
    const auto& value = events[i].summary().value(0);
    EXPECT_EQ(value.tag(), "train/loss");
    EXPECT_EQ(events[i].step(), static_cast<int64_t>(i - 1));
    EXPECT_EQ(value.simple_value(), static_cast<float>(1.0 / static_cast<double>(i - 1)));
    EXPECT_GE(events[i].wall_time(), events[i - 1].wall_time());
  }
}

TEST(SummaryWriter, TextThatIsNoUtf8DoesNotSpoilTheFile) {
  const TempDir dir;
  {
    SummaryWriter writer(dir.path(), no_warning());
    writer.go_on_from(0);
    writer.scalar("caf\xe9", 1, 1);
    writer.text("text", 1, "caf\xe9 *and* caf\xc3\xa9");
    writer.hparams({{{"na\xffme", std::string("\xfe")}}, {"eval/\xfd"}, "\xfc"});
    writer.checkpoint(1, "runs/caf\xe9");
  }
  const std::vector<Event> events = events_of(dir.path());
  ASSERT_THAT(events, SizeIs(6));
  EXPECT_EQ(events[2].summary().value(0).tag(), "caf\xEF\xBF\xBD");
  EXPECT_EQ(events[3].summary().value(0).tensor().string_val(0), "caf\xEF\xBF\xBD *and* caf\xc3\xa9");
  EXPECT_EQ(events[5].session_log().checkpoint_path(), "runs/caf\xEF\xBF\xBD");
}

TEST(SummaryWriter, OfValuesThatAreNoNumbersThereIsNoHistogram) {
  const TempDir dir;
  {
    SummaryWriter writer(dir.path(), no_warning());
    writer.go_on_from(0);
    writer.histogram("none", 1, {});
    writer.histogram("some", 1, std::vector<float>{1, 2});
  }
  const std::vector<Event> events = events_of(dir.path());
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[2].summary().value(0).tag(), "some");
  EXPECT_EQ(events[2].summary().value(0).histo().bucket_size(),
            events[2].summary().value(0).histo().bucket_limit_size());
}

TEST(SummaryWriter, WhereNothingCanBeWrittenItWarnsOnceAndGoesOn) {
  std::vector<std::string> warnings;
  SummaryWriter writer("/proc/no/such", [&](const std::string& text) { warnings.push_back(text); });
  Graph graph;
  graph.input("x", {DType::f32, {1}});
  writer.scalar("a", 1, 1);
  writer.histogram("b", 1, std::vector<float>{1});
  writer.image("c", 1, {}, 1, 1, 1);
  writer.graph(graph, {});
  writer.text("d", 1, "text");
  writer.hparams({});
  writer.ended(true);
  writer.checkpoint(1, "path");
  writer.flush();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("/proc/no"));
}

TEST(SummaryWriter, TakesRecordsOfManyThreads) {
  const TempDir dir;
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 300;
  {
    SummaryWriter writer(dir.path(), no_warning());
    writer.go_on_from(0);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&writer, t] {
        for (uint64_t i = 0; i < kEach; ++i) {
          writer.scalar("t" + std::to_string(t), i, static_cast<double>(i));
          if (i % 50 == 0) writer.histogram("h" + std::to_string(t), i, std::vector<float>(100, 1.0F));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::set<std::pair<std::string, int64_t>> seen;
  for (const Event& event : events_of(dir.path())) {
    if (event.has_summary()) seen.emplace(event.summary().value(0).tag(), event.step());
  }
  EXPECT_THAT(seen, SizeIs(kThreads * (kEach + kEach / 50)));
}

}  // namespace
}  // namespace lockstep::observe
