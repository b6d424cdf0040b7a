// Bad data, disks and folders: one clear line, no crash, nothing left half-made.
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class BadInput : public ProgramTest {
 protected:
  [[nodiscard]] std::string data_file(const std::string& name) const { return folder / ("data/" + name); }
  /// Trains on the small data set in data/, which must fail, and returns the message.
  [[nodiscard]] std::string fail_on_data(int code = 1) const {
    return fail({"train", "lr", "--data", "data", "--batch", "10", "--epochs", "1", "--threads", "1"}, code);
  }
  void cut(const std::string& path, size_t keep) const {
    const std::string bytes = get_file(path);
    put_file(path, {reinterpret_cast<const uint8_t*>(bytes.data()), std::min(keep, bytes.size())});
  }
};

TEST_F(BadInput, SmallDataItselfIsFine) {
  SmallData{}.write(folder / "data");
  (void)succeed({"train", "lr", "--data", "data", "--batch", "10", "--epochs", "1"});
}

TEST_F(BadInput, TruncatedImages) {
  SmallData{}.write(folder / "data");
  cut(data_file("train-images-idx3-ubyte"), 20000);
  EXPECT_THAT(fail_on_data(), AllOf(HasSubstr("train-images-idx3-ubyte"), Not(HasSubstr("\n\n"))));
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
}

TEST_F(BadInput, WrongMagic) {
  SmallData{}.write(folder / "data");
  put_file(data_file("train-images-idx3-ubyte"), make_idx({60, 28, 28}, ramp(60 * 784), 13));
  EXPECT_THAT(fail_on_data(), HasSubstr("train-images-idx3-ubyte"));
}

TEST_F(BadInput, CorruptGzip) {
  SmallData{}.write(folder / "data");
  Bytes packed = gzip(make_idx({20}, ramp(20, 10)));
  packed[packed.size() / 2] ^= 0xFF;
  std::filesystem::remove(data_file("t10k-labels-idx1-ubyte"));
  put_file(data_file("t10k-labels-idx1-ubyte.gz"), packed);
  EXPECT_THAT(fail_on_data(), HasSubstr("t10k-labels-idx1-ubyte.gz"));
}

TEST_F(BadInput, LabelOutOfRange) {
  SmallData data;
  data.largest_label = 10;
  data.write(folder / "data");
  EXPECT_THAT(fail_on_data(), AllOf(HasSubstr("label"), HasSubstr("10")));
}

TEST_F(BadInput, CountsThatDiffer) {
  SmallData{}.write(folder / "data");
  put_file(data_file("train-labels-idx1-ubyte"), make_idx({59}, ramp(59, 10)));
  EXPECT_THAT(fail_on_data(), AllOf(HasSubstr("60"), HasSubstr("59")));
}

TEST_F(BadInput, EmptyData) {
  SmallData data;
  data.train = 0;
  data.write(folder / "data");
  const Ended ended = run({"train", "lr", "--data", "data", "--epochs", "1"});
  EXPECT_NE(ended.code, 0);
  expect_one_line(ended.err);
}

TEST_F(BadInput, BatchLargerThanTheData) {
  SmallData{}.write(folder / "data");
  EXPECT_THAT(fail({"train", "lr", "--data", "data", "--batch", "61"}, 2), AllOf(HasSubstr("61"), HasSubstr("60")));
}

TEST_F(BadInput, SomeFilesMissing) {
  SmallData{}.write(folder / "data");
  std::filesystem::remove(data_file("t10k-images-idx3-ubyte"));
  EXPECT_THAT(fail_on_data(), HasSubstr("t10k-images-idx3-ubyte"));
}

TEST_F(BadInput, NoDataAndNoInternetSaysHowToProvideIt) {
  const std::string error = fail({"train", "lr"}, 1);
  EXPECT_THAT(error, AllOf(HasSubstr("--data DIR"), HasSubstr("fashion-mnist")));
  EXPECT_THAT(fail({"data", "get", "mnist"}, 1), HasSubstr("fashion-mnist"));
  EXPECT_THAT(fail({"train", "lr", "--data", "absent"}, 1), HasSubstr("absent"));
}

TEST_F(BadInput, ARunFolderThatCannotBeMade) {
  put_file(folder / "runs", {});
  EXPECT_THAT(fail(quick_train("lr"), 1), HasSubstr("runs"));
  EXPECT_THAT(fail(quick_train("lr", {"--run-dir", "/proc/lockstep-run"}), 1), HasSubstr("/proc/lockstep-run"));
}

TEST_F(BadInput, AFullDiskEndsTheRunWithAReason) {
  ProcessOptions limited = options();
  limited.file_size_limit = 20'000;  // config.yaml fits, a checkpoint of 31 kB does not
  const Ended ended = lockstep(quick_train("lr", {"--summary-every", "never"}), limited);
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("step-000000020.ckpt"), HasSubstr("File too large")));
  EXPECT_THAT(std::filesystem::directory_iterator(folder / "runs/lr-1/checkpoints"),
              std::filesystem::directory_iterator{});
  EXPECT_EQ(summary("lr-1")["stop_reason"], "error");
}

TEST_F(BadInput, AFailedStartLeavesNoRunFolder) {
  ProcessOptions limited = options();
  limited.file_size_limit = 1024;  // config.yaml does not fit; the memory that clang's OpenMP shares does
  for (const Words& more : {Words{}, Words{"--workers", "2", "--ps", "1", "--sync"}}) {
    const Ended ended = lockstep(quick_train("lr", more), limited);
    EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("File too large"), Not(HasSubstr(".tmp-"))));
    EXPECT_FALSE(std::filesystem::exists(folder / "runs/lr-1"));
  }
}

/// System limits end the program with one line that names the limit.
class Limits : public BadInput {
 protected:
  void put_text(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }
  static bool sanitized() { return get_file(program_path()).find("__asan_init") != std::string::npos; }

  const std::vector<Words> jobs{{},
                                {"--workers", "2", "--ps", "1", "--sync"},
                                {"--workers", "2", "--ps", "1", "--async", "--evaluator"},
                                {"--workers", "2", "--strategy", "allreduce"}};
};

TEST_F(Limits, TooFewOpenFilesAreNamedBeforeAnythingIsMade) {
  ProcessOptions limited = options();
  for (const uint64_t files : {8, 16, 24, 31}) {
    for (const Words& job : jobs) {
      if (job.empty() && files > 16) continue;  // enough for one process
      limited.open_files = files;
      const Ended ended = lockstep(quick_train("lr", job), limited);
      EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
      expect_one_line(ended.err);
      EXPECT_THAT(ended.err,
                  AllOf(HasSubstr("may open " + std::to_string(files) + " files"), HasSubstr("raise `ulimit -n`")));
      EXPECT_FALSE(std::filesystem::exists(folder / "runs/lr-1"));
    }
  }
}

TEST_F(Limits, TooLittleMemoryEndsAClusterWithItsLimit) {
  if (sanitized()) GTEST_SKIP() << "the sanitizer itself needs terabytes";
  ProcessOptions limited = options();
  for (const Words& job : jobs) {
    if (job.empty()) continue;  // the limit at which one process fails depends on the machine
    limited.address_space = 200'000 * 1024;
    const Ended ended = lockstep(quick_train("lenet", job), limited);
    EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("200000 kB of memory"), HasSubstr("`ulimit -v`"), Not(HasSubstr("what()"))));
    EXPECT_THAT(ended.out, Not(HasSubstr("restarting it"))) << "a restart raises no limit";
  }
}

/// Threads need room for their stacks. Which thread is refused, ours or a library's, changes from run to run.
TEST_F(Limits, AThreadThatIsRefusedEndsAClusterWithItsLimit) {
  if (sanitized()) GTEST_SKIP() << "the sanitizer itself needs terabytes";
  ProcessOptions limited = options();
  for (uint64_t kilobytes = 180'000; kilobytes <= 300'000; kilobytes += 10'000) {
    limited.address_space = kilobytes * 1024;
    const Ended ended = lockstep(quick_train("lr", {"--workers", "2", "--ps", "1", "--threads", "1"}), limited);
    if (ended.code == 0) continue;  // enough
    EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, HasSubstr(std::to_string(kilobytes) + " kB of memory"));
  }
}

TEST_F(Limits, TheDashboardAndTheLabNameTooFewOpenFiles) {
  put_text("tiny.yaml",
           "name: tiny\ntitle: Tiny\nbase: {model: lr, dataset: synthetic, train_limit: 500, epochs: 1}\n");
  ProcessOptions limited = options();
  for (const uint64_t files : {5, 8, 12, 16, 23}) {
    limited.open_files = files;
    for (const Words& command : {Words{"dash", "--port", "0"}, Words{"lab", "run", "tiny.yaml"}}) {
      const Ended ended = lockstep(command, limited);
      EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
      expect_one_line(ended.err);
      EXPECT_THAT(ended.err,
                  AllOf(HasSubstr("may open " + std::to_string(files) + " files"), HasSubstr("raise `ulimit -n`")));
      EXPECT_FALSE(std::filesystem::exists(folder / "lab"));
    }
  }
}

TEST_F(Limits, TooLittleMemoryEndsTheDashboardAndRunsOfTheLab) {
  if (sanitized()) GTEST_SKIP() << "the sanitizer itself needs terabytes";
  put_text("tiny.yaml",
           "name: tiny\ntitle: Tiny\nbase: {model: lenet, dataset: synthetic, train_limit: 500, epochs: 1, workers: 2, "
           "ps: 1}\n");
  ProcessOptions limited = options();
  limited.address_space = 100'000 * 1024;
  const Ended dash = lockstep({"dash", "--port", "0"}, limited);
  EXPECT_EQ(dash.code, 1) << dash.out << dash.err;
  expect_one_line(dash.err);
  EXPECT_THAT(dash.err, HasSubstr("100000 kB of memory"));
  limited.address_space = 160'000 * 1024;
  const Ended lab = lockstep({"lab", "run", "tiny.yaml"}, limited);
  EXPECT_EQ(lab.code, 1) << lab.out << lab.err;
  expect_one_line(lab.err);
  EXPECT_THAT(lab.err, HasSubstr("1 of 1 run failed"));
  EXPECT_THAT(lab.out, HasSubstr("160000 kB of memory"));
}

}  // namespace
}  // namespace lockstep::testing
