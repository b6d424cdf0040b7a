#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/file_size_limit.h"
#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

using lockstep::testing::FileSizeLimit;
using lockstep::testing::get_file;
using lockstep::testing::message_of;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

TEST(WholeFile, AppearsOnlyWithCommit) {
  const TempDir dir;
  {
    WholeFile file(dir / "a");
    file.write(std::string_view("hello "));
    file.write(std::string_view("world"));
    EXPECT_FALSE(std::filesystem::exists(dir / "a"));
    file.commit();
  }
  EXPECT_EQ(get_file(dir / "a"), "hello world");
  EXPECT_THAT(dir.names(), ElementsAre("a"));
}

TEST(WholeFile, LeavesNothingWithoutCommit) {
  const TempDir dir;
  { WholeFile(dir / "a").write(std::string_view("lost")); }
  EXPECT_THAT(dir.names(), IsEmpty());
}

TEST(WholeFile, KeepsTheOldContentUntilTheNewIsWhole) {
  const TempDir dir;
  write_whole_file(dir / "a", "old");
  {
    WholeFile file(dir / "a");
    file.write(std::string_view("new"));
    EXPECT_EQ(get_file(dir / "a"), "old");
  }
  EXPECT_EQ(get_file(dir / "a"), "old");
  write_whole_file(dir / "a", "new");
  EXPECT_EQ(get_file(dir / "a"), "new");
}

TEST(WholeFile, HasTheUsersPermissions) {
  const TempDir dir;
  const mode_t mask = ::umask(027);
  write_whole_file(dir / "a", "x");
  ::umask(mask);
  EXPECT_EQ(std::filesystem::status(dir / "a").permissions(), std::filesystem::perms(0640));
}

TEST(WholeFile, FullDiskIsAnErrorAndLeavesTheOldFile) {
  const TempDir dir;
  write_whole_file(dir / "a", "old");
  const std::string big(100'000, 'x');
  const FileSizeLimit limit(10'000);
  EXPECT_THAT(message_of<IoError>([&] { write_whole_file(dir / "a", big); }),
              AllOf(HasSubstr("cannot write " + (dir / "a")), HasSubstr("File too large")));
  EXPECT_EQ(get_file(dir / "a"), "old");
  EXPECT_THAT(dir.names(), ElementsAre("a"));
}

TEST(WholeFile, MissingFolderIsAnErrorThatNamesIt) {
  const TempDir dir;
  EXPECT_THAT(message_of<IoError>([&] { write_whole_file(dir / "no/a", "x"); }),
              AllOf(HasSubstr(dir / "no/a"), HasSubstr("No such file or directory")));
}

TEST(WholeFile, RemovesLeftoversOfThatFileOnly) {
  const TempDir dir;
  write_whole_file(dir / "a", "a");
  write_whole_file(dir / "a.tmp-1-0", "x");
  write_whole_file(dir / "b.tmp-1-0", "x");
  WholeFile::remove_leftovers(dir / "a");
  EXPECT_THAT(dir.names(), ::testing::UnorderedElementsAre("a", "b.tmp-1-0"));
}

TEST(ReadFile, ReadsWhatWasWritten) {
  const TempDir dir;
  const std::string text(300'000, 'q');
  write_whole_file(dir / "a", text);
  const auto content = read_file(dir / "a");
  EXPECT_EQ(std::string(content.begin(), content.end()), text);
}

TEST(ReadFile, SaysWhyItCannot) {
  const TempDir dir;
  write_whole_file(dir / "a", "12345");
  ::mkfifo((dir / "pipe").c_str(), 0600);
  EXPECT_THAT(message_of<IoError>([&] { read_file(dir / "no"); }), HasSubstr("No such file or directory"));
  EXPECT_THAT(message_of<IoError>([&] { read_file(dir.path()); }), HasSubstr("Is a directory"));
  EXPECT_THAT(message_of<IoError>([&] { read_file(dir / "pipe"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message_of<IoError>([&] { read_file(dir / "a", 4); }),
              HasSubstr("it has 5 bytes, at most 4 are allowed"));
}

TEST(MakeDirectories, FailsUnderAFile) {
  const TempDir dir;
  make_directories(dir / "x/y/z");
  EXPECT_TRUE(std::filesystem::is_directory(dir / "x/y/z"));
  make_directories(dir / "x/y/z");
  write_whole_file(dir / "a", "x");
  EXPECT_THAT(message_of<IoError>([&] { make_directories(dir / "a/b"); }),
              AllOf(HasSubstr(dir / "a/b"), HasSubstr("Not a directory")));
}

TEST(LockFile, IsHeldByOneAtATime) {
  const TempDir dir;
  auto first = LockFile::try_lock(dir / "lock");
  ASSERT_TRUE(first);
  EXPECT_FALSE(LockFile::try_lock(dir / "lock"));
  first.reset();
  EXPECT_TRUE(LockFile::try_lock(dir / "lock"));
}

TEST(LockFile, WaitHasADeadline) {
  const TempDir dir;
  const auto held = LockFile::try_lock(dir / "lock");
  int waits = 0;
  EXPECT_THAT(message_of<IoError>([&] { (void)LockFile::lock(dir / "lock", 100ms, [&] { ++waits; }); }),
              AllOf(HasSubstr(dir / "lock"), HasSubstr("another process has held it for 0.1 s")));
  EXPECT_EQ(waits, 1);
}

TEST(LockFile, WaiterGetsItWhenReleased) {
  const TempDir dir;
  auto held = LockFile::try_lock(dir / "lock");
  std::thread waiter([&] { EXPECT_NO_THROW((void)LockFile::lock(dir / "lock", 100s)); });
  std::this_thread::sleep_for(50ms);
  held.reset();
  waiter.join();
}

TEST(LockFile, OfAKilledProcessDoesNotBlock) {
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = LockFile::try_lock(dir / "lock");
    const char sign = lock ? '1' : '0';
    if (::write(ready[1], &sign, 1) == 1) ::pause();
    ::_exit(0);
  }
  char sign = 0;
  ASSERT_EQ(::read(ready[0], &sign, 1), 1);
  ASSERT_EQ(sign, '1');
  EXPECT_FALSE(LockFile::try_lock(dir / "lock"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(LockFile::try_lock(dir / "lock"));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace lockstep::base
