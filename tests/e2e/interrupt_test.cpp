// Stopping and resuming: Ctrl-C, --resume, checkpoints that are damaged or of another model.
#include <csignal>
#include <fstream>

#include "checkpoint/checkpoint_store.h"
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

const Words kEndless{"--epochs", "0", "--steps", "1000000000", "--eval-every", "20", "--batch", "10"};

class Interrupt : public ProgramTest {
 protected:
  [[nodiscard]] checkpoint::Checkpoint newest(const std::string& run) const {
    std::string path;
    return checkpoint::CheckpointStore(folder / ("runs/" + run + "/checkpoints")).load_newest(path);
  }
  /// Starts a run that would not end, signals it after its first evaluation, and returns how it ended.
  [[nodiscard]] Ended interrupt(int signal) const {
    Process process(program_path(), quick_train("lenet", kEndless), options());
    EXPECT_TRUE(process.wait_for("train loss"));
    process.signal(signal);
    return process.finish();
  }
  void damage_newest(const std::string& run) const {
    const auto files = checkpoint::CheckpointStore(folder / ("runs/" + run + "/checkpoints")).list();
    std::string bytes = get_file(files.back().path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    put_file(files.back().path, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }
};

TEST_F(Interrupt, CtrlCThenResumeGivesTheBitsOfARunNeverStopped) {
  const Ended stopped = interrupt(SIGINT);
  EXPECT_EQ(stopped.code, 130) << stopped.out << stopped.err;
  EXPECT_THAT(stopped.out,
              AllOf(HasSubstr("interrupted after step"), HasSubstr("lockstep train --resume runs/lenet-1")));
  EXPECT_EQ(summary("lenet-1")["stop_reason"], "interrupted");
  const uint64_t steps = newest("lenet-1").header.state.step + 130;

  const Ended resumed = succeed({"train", "--resume", "runs/lenet-1", "--steps", std::to_string(steps)});
  EXPECT_THAT(resumed.out, HasSubstr("resuming after step"));
  Words whole = quick_train("lenet", kEndless);
  whole.insert(whole.end(), {"--steps", std::to_string(steps)});
  (void)succeed(whole);
  EXPECT_EQ(newest("lenet-1").header.state.step, steps);
  EXPECT_EQ(newest("lenet-1").values, newest("lenet-2").values);
  EXPECT_EQ(summary("lenet-1")["test_loss"], summary("lenet-2")["test_loss"]);
}

TEST_F(Interrupt, SigtermEndsCleanlyToo) {
  const Ended stopped = interrupt(SIGTERM);
  EXPECT_EQ(stopped.code, 143) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("--resume"));
  EXPECT_EQ(summary("lenet-1")["stop_reason"], "interrupted");
}

TEST_F(Interrupt, AClosedTerminalEndsCleanlyWithACheckpointUnlessUnderNohup) {
  Process process(program_path(), quick_train("lenet", kEndless), options());
  ASSERT_TRUE(process.wait_for("train loss"));
  process.signal(SIGHUP);
  process.signal(SIGHUP);  // from the kernel and from the shell
  EXPECT_EQ(process.finish().code, 128 + SIGHUP);
  EXPECT_EQ(summary("lenet-1")["stop_reason"], "interrupted");
  EXPECT_EQ(newest("lenet-1").header.state.step, summary("lenet-1")["steps"].get<uint64_t>());

  Words words = quick_train("lenet", kEndless);
  words.insert(words.begin(), program_path());
  Process kept("/usr/bin/nohup", words, options());
  ASSERT_TRUE(kept.wait_for("train loss"));
  kept.signal(SIGHUP);
  kept.signal(SIGINT);
  EXPECT_EQ(kept.finish().code, 128 + SIGINT);
}

TEST_F(Interrupt, TheSecondCtrlCEndsAtOnce) {
  Process process(program_path(), quick_train("lenet", kEndless), options());
  ASSERT_TRUE(process.wait_for("train loss"));
  process.signal(SIGINT);
  process.signal(SIGINT);
  EXPECT_EQ(process.finish().code, 130);
}

TEST_F(Interrupt, AFinishedRunSaysSoAndExitsWithZero) {
  (void)succeed(quick_train("lr"));
  const auto before = std::filesystem::last_write_time(folder / "runs/lr-1/summary.json");
  EXPECT_THAT(succeed({"train", "--resume", "lr-1"}).out, HasSubstr("has already ended"));
  EXPECT_EQ(std::filesystem::last_write_time(folder / "runs/lr-1/summary.json"), before);
  // The memory is that of the training, not of this look at it.
  std::ofstream(folder / "runs/lr-1/summary.json") << R"({"role": "worker:0", "peak_memory_bytes": 123400000000})";
  EXPECT_THAT(succeed({"train", "--resume", "lr-1"}).out, HasSubstr("peak memory     123 GB in worker:0\n"));
  std::filesystem::remove(folder / "runs/lr-1/summary.json");
  EXPECT_THAT(succeed({"train", "--resume", "lr-1"}).out, Not(HasSubstr("peak memory")));
}

TEST_F(Interrupt, AFinishedRunCanBeTrainedLonger) {
  (void)succeed(quick_train("lr"));
  (void)succeed({"train", "--resume", "lr-1", "--epochs", "4"});
  (void)succeed(quick_train("lr", {"--epochs", "4"}));
  EXPECT_EQ(newest("lr-1").values, newest("lr-2").values);
}

TEST_F(Interrupt, ADamagedCheckpointIsRefusedAndThePreviousOffered) {
  (void)succeed(quick_train("lr"));
  damage_newest("lr-1");
  const std::string error = fail({"train", "--resume", "lr-1", "--epochs", "4"}, 1);
  EXPECT_THAT(error, AllOf(HasSubstr("step-000000040.ckpt"), HasSubstr("step-000000020.ckpt"), HasSubstr("checksum")));
  (void)succeed({"train", "--resume", "lr-1", "--epochs", "4", "--checkpoint", "step-000000020.ckpt"});
  EXPECT_EQ(summary("lr-1")["epochs"], 4);
}

TEST_F(Interrupt, ResumeRefusesAnotherModel) {
  (void)succeed(quick_train("lr"));
  EXPECT_THAT(fail({"train", "lenet", "--resume", "lr-1"}, 2), AllOf(HasSubstr("lenet"), HasSubstr("lr")));
  (void)succeed(quick_train("lenet", {"--epochs", "1"}));
  const std::string other = folder / "runs/lenet-1/checkpoints/step-000000020.ckpt";
  EXPECT_THAT(run({"train", "--resume", "lr-1", "--epochs", "4", "--checkpoint", other}).err, HasSubstr("lenet"));
}

TEST_F(Interrupt, ResumeRefusesChangesThatWouldMakeItAnotherRun) {
  (void)succeed(quick_train("lr"));
  EXPECT_THAT(fail({"train", "--resume", "lr-1", "--batch", "10"}, 2), HasSubstr("--batch"));
  EXPECT_THAT(fail({"train", "--resume", "lr-9"}, 2), HasSubstr("no run 'lr-9'"));
}

}  // namespace
}  // namespace lockstep::testing
