#include "run/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <set>
#include <thread>

#include "base/csv_file.h"
#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::train {
namespace {

using Bytes = std::vector<uint8_t>;
using lockstep::testing::get_file;
using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RunDirectory, CountsUpAndNeverReusesAFolder) {
  const TempDir dir;
  EXPECT_EQ(run::RunDirectory::create(dir / "runs", "lr").path(), dir / "runs/lr-1");
  EXPECT_EQ(run::RunDirectory::create(dir / "runs", "lr").path(), dir / "runs/lr-2");
  EXPECT_EQ(run::RunDirectory::create(dir / "runs", "lenet").path(), dir / "runs/lenet-1");
  std::filesystem::create_directory(dir / "runs/lr-17");
  std::filesystem::create_directory(dir / "runs/lr-x");
  EXPECT_EQ(run::RunDirectory::create(dir / "runs", "lr").path(), dir / "runs/lr-18");
}

TEST(RunDirectory, AFolderThatIsGoneCannotBeDiscarded) {
  const TempDir dir;
  EXPECT_FALSE(run::RunDirectory::discard_if_unused(dir / "gone"));
}

TEST(RunDirectory, ThoseWhoStartTogetherGetFoldersOfTheirOwn) {
  const TempDir dir;
  constexpr size_t kThreads = 8;
  std::vector<std::string> paths(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { paths[i] = run::RunDirectory::create(dir / "runs", "lr").path(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), kThreads);
}

TEST(RunDirectory, AnExplicitFolderMustBeNewOrEmpty) {
  const TempDir dir;
  EXPECT_EQ(run::RunDirectory::create_at(dir / "deep/mine").path(), dir / "deep/mine");
  EXPECT_THAT(message_of<UsageError>([&] { run::RunDirectory::create_at(dir / "deep/mine"); }),
              AllOf(HasSubstr("already exists"), HasSubstr("--resume")));
  std::filesystem::create_directory(dir / "empty");
  EXPECT_NO_THROW(run::RunDirectory::create_at(dir / "empty"));
  put_file(dir / "file", {});
  EXPECT_THAT(message_of<UsageError>([&] { run::RunDirectory::create_at(dir / "file"); }), HasSubstr("already exists"));
}

/// Makes a run, lets `fill` write into it, and fails.
void fail_after(const std::string& run_dir, const std::function<void(const run::RunDirectory&)>& fill) {
  try {
    const run::RunDirectory run = run::RunDirectory::create_at(run_dir);
    fill(run);
    throw Error("the start failed");
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): it was meant to
  }
}

TEST(RunDirectory, AFailedStartLeavesItsNumberFree) {
  const TempDir dir;
  fail_after(dir / "a", [](const run::RunDirectory& run) {
    put_file(run.config_file(), Bytes{1, 2, 3});
    put_file(run.steps_file(), Bytes{'s', '\n'});
  });
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
}

TEST(RunDirectory, AFailureKeepsWhatIsWorthKeeping) {
  const TempDir dir;
  fail_after(dir / "logged", [](const run::RunDirectory& run) {
    put_file(run.steps_file(), Bytes{'s', '\n', '1', '\n'});
  });
  EXPECT_TRUE(std::filesystem::exists(dir / "logged/steps.csv"));
  fail_after(dir / "saved",
             [](const run::RunDirectory& run) { put_file(run.checkpoints() + "/step-1.ckpt", Bytes{1}); });
  EXPECT_TRUE(std::filesystem::exists(dir / "saved/checkpoints/step-1.ckpt"));
  std::filesystem::create_directory(dir / "theirs");
  fail_after(dir / "theirs", [](const run::RunDirectory&) {});
  EXPECT_TRUE(std::filesystem::exists(dir / "theirs")) << "it was there before";
}

TEST(RunDirectory, OneThatCannotBeMadeSaysWhy) {
  const TempDir dir;
  put_file(dir / "file", {});
  EXPECT_THAT(message_of<IoError>([&] { run::RunDirectory::create(dir / "file", "lr"); }), HasSubstr(dir / "file"));
  EXPECT_THAT(message_of<IoError>([&] { run::RunDirectory::create("/proc/runs", "lr"); }), HasSubstr("/proc/runs"));
  EXPECT_THAT(message_of<UsageError>([&] { run::RunDirectory::create(dir.path(), "a/b"); }), HasSubstr("'a/b'"));
}

TEST(RunDirectory, IsFoundByPathOrName) {
  const TempDir dir;
  const std::string path = run::RunDirectory::create(dir / "runs", "lr").path();
  EXPECT_THAT(message_of<UsageError>([&] { run::RunDirectory::open(path, "runs"); }), HasSubstr("no config.yaml"));
  put_file(path + "/config.yaml", {});
  EXPECT_EQ(run::RunDirectory::open(path, "runs").path(), path);
  EXPECT_EQ(run::RunDirectory::open("lr-1", dir / "runs").path(), path);
  EXPECT_THAT(message_of<UsageError>([&] { run::RunDirectory::open("lr-9", dir / "runs"); }),
              AllOf(HasSubstr("no run 'lr-9'"), HasSubstr(dir / "runs/lr-9"), HasSubstr("did you mean 'lr-1'?")));
  EXPECT_THAT(message_of<UsageError>([&] { run::RunDirectory::open("my-long-study", dir / "runs"); }),
              HasSubstr(dir / "runs has lr-1"));
}

TEST(RunDirectory, IsNotSharedByTwo) {
  const TempDir dir;
  const run::RunDirectory first = run::RunDirectory::create(dir / "runs", "lr");
  put_file(first.config_file(), {});
  EXPECT_THAT(message_of<IoError>([&] { run::RunDirectory::open(first.path(), "runs"); }),
              HasSubstr("in use by another"));
}

TEST(CsvFile, GrowsByWholeLines) {
  const TempDir dir;
  base::CsvFile file = base::CsvFile::create(dir / "a.csv", "step,loss");
  file.add("1,0.5");
  EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n");
  file.flush();
  EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n1,0.5\n");
  for (int i = 2; i < 20000; ++i) file.add(std::to_string(i) + ",0.25");
  const std::string content = get_file(dir / "a.csv");
  EXPECT_GT(content.size(), 65536U);
  EXPECT_EQ(content.back(), '\n');
  EXPECT_THROW(base::CsvFile::create(dir / "a.csv", "step,loss"), IoError);
}

TEST(CsvFile, ResumesAfterAStepAndDropsWhatCameLater) {
  const TempDir dir;
  {
    base::CsvFile file = base::CsvFile::create(dir / "a.csv", "step,loss");
    for (const char* line : {"10,1", "20,2", "30,3"}) file.add(line);
    file.flush();
  }
  std::ofstream(dir / "a.csv", std::ios::app) << "40,4.";
  base::CsvFile file = base::CsvFile::resume(dir / "a.csv", "step,loss", 20);
  EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n10,1\n20,2\n");
  file.add("30,3.5");
  file.flush();
  EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n10,1\n20,2\n30,3.5\n");
  base::CsvFile::resume(dir / "new.csv", "step,loss", 20);
  EXPECT_EQ(get_file(dir / "new.csv"), "step,loss\n");
  EXPECT_THAT(message_of<DataError>([&] { base::CsvFile::resume(dir / "a.csv", "other", 20); }), HasSubstr("a.csv"));
}

TEST(CsvFile, OneWhoseWriterWasKilledWithinItsHeaderIsBegunAnew) {
  const TempDir dir;
  for (const char* left : {"", "step,lo", "step,loss"}) {
    std::ofstream(dir / "a.csv") << left;
    base::CsvFile file = base::CsvFile::resume(dir / "a.csv", "step,loss", 20);
    file.add("21,0.5");
    file.flush();
    EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n21,0.5\n") << left;
  }
}

TEST(CsvFile, LateLinesOfAnEarlierWriterDoNotReachTheFile) {
  const TempDir dir;
  base::CsvFile earlier = base::CsvFile::create(dir / "a.csv", "step,loss");
  earlier.add("10,1");
  earlier.flush();
  earlier.add("20,2");
  base::CsvFile later = base::CsvFile::resume(dir / "a.csv", "step,loss", 25);
  later.add("30,3");
  later.flush();
  earlier.flush();
  EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n10,1\n30,3\n");
}

TEST(CsvFile, AFullDiskLeavesWholeLines) {
  const TempDir dir;
  base::CsvFile file = base::CsvFile::create(dir / "a.csv", "step,loss");
  file.add("1,1");
  file.flush();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  file.add("2,0.123456789");
  const std::string message = message_of<IoError>([&] { file.flush(); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, HasSubstr("cannot write " + (dir / "a.csv")));
  EXPECT_EQ(get_file(dir / "a.csv"), "step,loss\n1,1\n");
}

}  // namespace
}  // namespace lockstep::train
