// `lockstep tensorboard`: the program it starts, and its errors. tests/observe uses a real TensorBoard.
#include "e2e/support.h"
#include "observe/tensorboard/summary_writer.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class TensorBoardCommand : public ProgramTest {
 protected:
  void SetUp() override {
    fs::create_directories(folder / "bin");
    fs::create_directories(folder / "runs/lenet-1");
    fs::create_directories(folder / "runs/old-1");
    put_file(folder / "runs/lenet-1/config.yaml", {});
    put_file(folder / "runs/old-1/config.yaml", {});
    const observe::SummaryWriter writer(folder / "runs/lenet-1", {});
  }
  /// A program that prints its arguments.
  void install(const std::string& name, const std::string& script = "") const {
    const std::string text = "#!/bin/sh\n" + script + "echo " + name + " \"$@\"\n";
    put_file(folder / ("bin/" + name), {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    fs::permissions(folder / ("bin/" + name), fs::perms::owner_all);
  }
  /// Runs with nothing else in PATH.
  [[nodiscard]] Ended start(Words words) const {
    words.insert(words.begin(), "tensorboard");
    ProcessOptions with = options();
    with.environment = {{"PATH", folder / "bin"}};
    return lockstep(words, with);
  }
};

TEST_F(TensorBoardCommand, StartsItOverOneRunAFolderOrAllRuns) {
  install("tensorboard");
  EXPECT_EQ(start({}).out, "tensorboard --logdir runs --port 6006\n");
  EXPECT_EQ(start({"lenet-1"}).out, "tensorboard --logdir runs/lenet-1 --port 6006\n");
  EXPECT_EQ(start({"runs/lenet-1", "--port", "0", "--host", "::1"}).out,
            "tensorboard --logdir runs/lenet-1 --port 0 --host ::1\n");
  EXPECT_EQ(start({"lenet-1", "--runs-dir", "runs"}).code, 0);
}

TEST_F(TensorBoardCommand, FollowsARunToItsSummaryDir) {
  install("tensorboard");
  (void)succeed(quick_train("lr", {"--summary-dir", "elsewhere", "--quiet"}));
  EXPECT_EQ(start({"lr-1"}).out, "tensorboard --logdir elsewhere/lr-1 --port 6006\n");
  EXPECT_EQ(start({"runs/lr-1/"}).out, "tensorboard --logdir elsewhere/lr-1 --port 6006\n");
  fs::remove_all(folder / "elsewhere");
  const Ended ended = start({"lr-1"});
  EXPECT_EQ(ended.code, 2);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, HasSubstr("neither runs/lr-1 nor its summary-dir elsewhere/lr-1 has"));
}

TEST_F(TensorBoardCommand, TakesTheModuleOfPythonWhereThereIsNoProgram) {
  install("python3", "[ \"$1\" != -c ] || exit 0\n");
  EXPECT_EQ(start({"lenet-1"}).out, "python3 -m tensorboard.main --logdir runs/lenet-1 --port 6006\n");
}

TEST_F(TensorBoardCommand, SaysHowToInstallItWhereItIsNot) {
  Ended ended = start({"lenet-1"});
  EXPECT_EQ(ended.code, 1);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, HasSubstr("pip install tensorboard"));
  install("python3", "exit 1\n");
  ended = start({"lenet-1"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("pip install tensorboard"));
}

TEST_F(TensorBoardCommand, SaysSoWhereThereIsNothingToShow) {
  install("tensorboard");
  for (const auto& [words, text] :
       std::vector<std::pair<Words, std::string>>{{{"old-1"}, "runs/old-1 has no event files"},
                                                  {{"lenet-9"}, "no run 'lenet-9'"},
                                                  {{"--runs-dir", "nowhere"}, "there is no folder nowhere"},
                                                  {{"lenet-1", "--port", "65536"}, "--port 65536: 0 to 65535"}}) {
    const Ended ended = start(words);
    EXPECT_EQ(ended.code, 2) << text;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, HasSubstr(text));
  }
}

}  // namespace
}  // namespace lockstep::testing
