#include "observe/tensorboard/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <numeric>

#include "base/file_size_limit.h"
#include "observe/event_reader.h"
#include "observe/tensorboard/crc32c.h"

namespace lockstep::observe {
namespace {

using lockstep::testing::FileSizeLimit;
using lockstep::testing::get_file;
using lockstep::testing::TempDir;
using testing::Contents;
using ::testing::ElementsAre;
using testing::event_files;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::parse_events;
using testing::read_events;
using ::testing::SizeIs;

uint32_t crc_of(std::string_view text) { return crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }

tensorboard::Event event_of(int64_t step, size_t text_size) {
  tensorboard::Event event;
  event.set_step(step);
  event.mutable_session_log()->set_msg(std::string(text_size, 'x'));
  return event;
}

struct Warnings {
  std::vector<std::string> texts;
  EventFile::Warn sink() {
    return [this](const std::string& text) { texts.push_back(text); };
  }
};

TEST(Crc32c, GivesTheKnownValues) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("a"), 0xC1D04330U);
  EXPECT_EQ(crc_of("123456789"), 0xE3069283U);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc_of(std::string(32, '\xff')), 0x62A8AB43U);
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  EXPECT_EQ(crc_of(ascending), 0x46DD794EU);
  EXPECT_EQ(masked(0xE3069283U), 0xC78AB0E5U);
}

TEST(Crc32c, IsThatOfTheDefinitionAtEveryLength) {
  std::string text;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(crc_of(text), testing::plain_crc32c(text)) << i;
    text += static_cast<char>(i * 37 + 11);
  }
}

TEST(EventFile, HoldsWhatWasAppendedInOrder) {
  const TempDir dir;
  Warnings warnings;
  {
    EventFile file(dir.path(), warnings.sink());
    for (int i = 0; i < 5; ++i) file.append(event_of(i, static_cast<size_t>(i) * 1000));
    EXPECT_THAT(read_events(file.path()).events, IsEmpty()) << "what waits is not in the file";
    file.flush();
    EXPECT_THAT(read_events(file.path()).events, SizeIs(5));
    file.append(event_of(5, 3));
  }
  ASSERT_THAT(event_files(dir.path()), SizeIs(1));
  const Contents contents = read_events(event_files(dir.path())[0]);
  ASSERT_THAT(contents.events, SizeIs(6)) << "the destructor writes the rest";
  EXPECT_EQ(contents.left_over, 0U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(contents.events[static_cast<size_t>(i)].step(), i);
  EXPECT_EQ(contents.events[4].session_log().msg(), std::string(4000, 'x'));
  EXPECT_THAT(warnings.texts, IsEmpty());
}

TEST(EventFile, CutAtAnyByteIsReadUpToTheLastWholeRecord) {
  const TempDir dir;
  {
    EventFile file(dir.path(), {});
    for (int i = 0; i < 6; ++i) file.append(event_of(i, static_cast<size_t>(i) * 7));
  }
  const std::string bytes = get_file(event_files(dir.path())[0]);
  const Contents whole = parse_events(bytes);
  ASSERT_THAT(whole.events, SizeIs(6));
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto expected = std::count_if(whole.ends.begin(), whole.ends.end(), [&](size_t end) { return end <= cut; });
    const Contents left = parse_events(std::string_view(bytes).substr(0, cut));
    EXPECT_EQ(left.events.size(), static_cast<size_t>(expected)) << "cut at " << cut;
  }
  std::string damaged = bytes;
  damaged[whole.ends[2] + 20] ^= 1;
  EXPECT_THAT(parse_events(damaged).events, SizeIs(3)) << "a wrong byte is seen";
}

TEST(EventFile, AFullDiskLeavesWholeRecordsAndOneWarning) {
  for (const rlim_t room : {rlim_t{1}, rlim_t{150}, rlim_t{1000}, rlim_t{2500}}) {
    const TempDir dir;
    Warnings warnings;
    const FileSizeLimit limit(room);
    EventFile file(dir.path(), warnings.sink());
    for (int i = 0; i < 30; ++i) {
      file.append(event_of(i, 100));
      if (i % 4 == 3) file.flush();
    }
    file.flush();
    EXPECT_FALSE(file.working());
    ASSERT_THAT(warnings.texts, SizeIs(1)) << room;
    EXPECT_THAT(warnings.texts[0], AllOf(HasSubstr("cannot write " + dir.path()), HasSubstr("File too large")));
    if (room < 120) {
      EXPECT_THAT(dir.names(), IsEmpty()) << "a file with nothing in it goes";
      continue;
    }
    const Contents contents = read_events(file.path());
    EXPECT_EQ(contents.left_over, 0U);
    ASSERT_THAT(contents.ends, Not(IsEmpty()));
    EXPECT_GT(contents.ends.back() + contents.ends[0] + 2, room) << "what fitted stays";
  }
}

TEST(EventFile, AFolderThatCannotBeWrittenIsOneWarning) {
  const TempDir dir;
  lockstep::testing::put_file(dir / "taken", {});
  for (const std::string& folder : {dir / "taken", dir / "taken/below", std::string("/proc/no/such")}) {
    Warnings warnings;
    EventFile file(folder, warnings.sink());
    EXPECT_FALSE(file.working());
    file.append(event_of(1, 10));
    file.flush();
    ASSERT_THAT(warnings.texts, SizeIs(1));
    EXPECT_THAT(warnings.texts[0], AllOf(HasSubstr(folder), HasSubstr("TensorBoard")));
  }
}

TEST(EventFile, AFolderThatIsNotThereIsMade) {
  const TempDir dir;
  EXPECT_FALSE(has_event_files(dir.path()));
  { EventFile file(dir / "a/b", {}); }
  EXPECT_THAT(event_files(dir / "a/b"), SizeIs(1));
  EXPECT_TRUE(has_event_files(dir.path()));
  EXPECT_FALSE(has_event_files(dir / "no"));
}

TEST(EventFile, TwoWritersOfAFolderNeverShareAFile) {
  const TempDir dir;
  {
    EventFile first(dir.path(), {});
    EventFile second(dir.path(), {});
    EXPECT_NE(first.path(), second.path());
    for (int i = 0; i < 10; ++i) {
      first.append(event_of(i, 50));
      second.append(event_of(100 + i, 50));
      first.flush();
      second.flush();
    }
  }
  const std::vector<std::string> files = event_files(dir.path());
  ASSERT_THAT(files, SizeIs(2));
  for (size_t f = 0; f < 2; ++f) {
    const Contents contents = read_events(files[f]);
    ASSERT_THAT(contents.events, SizeIs(10));
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(contents.events[static_cast<size_t>(i)].step(), 100 * static_cast<int>(f) + i);
  }
}

TEST(EventFile, ANewFileSortsAfterThoseThatAreThere) {
  const TempDir dir;
  lockstep::testing::put_file(dir / "events.out.tfevents.4102444800.elsewhere.1.0", {});  // the clock was wrong
  lockstep::testing::put_file(dir / "events.out.tfevents.x", {});
  const EventFile file(dir.path(), {});
  EXPECT_THAT(event_files(dir.path()), ElementsAre(HasSubstr(".4102444800."), file.path(), HasSubstr("tfevents.x")));
  EXPECT_THAT(file.path(), ::testing::MatchesRegex(".*/events\\.out\\.tfevents\\.4102444801\\..+\\.[0-9]+\\.0"));
}

}  // namespace
}  // namespace lockstep::observe
