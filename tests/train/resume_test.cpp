#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "checkpoint/checkpoint_store.h"
#include "role/session.h"
#include "support.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using testing::dropout_model;
using testing::Flags;
using testing::get_file;
using ::testing::HasSubstr;
using testing::message_of;
using testing::put_file;
using testing::Recorder;
using testing::TempDir;

struct Result {
  Outcome outcome;
  std::vector<float> losses;
};

Result run(const Flags& flags, uint64_t interrupt_at = 0) {
  static const data::Dataset dataset = testing::small_data(600, 100);
  const std::vector<nn::ModelDef> models{dropout_model()};
  Recorder recorder;
  recorder.interrupt_at = interrupt_at;
  const Outcome outcome = testing::train_session(flags, recorder, models, dataset);
  return {outcome, recorder.losses()};
}

/// 10 steps per epoch, the last one short.
Flags base_flags(const TempDir& dir, const Flags& more = {}) {
  Flags flags{{"model", "lenet"},
              {"dataset", "synthetic"},
              {"train-limit", "600"},
              {"test-limit", "100"},
              {"batch", "64"},
              {"epochs", "3"},
              {"threads", "2"},
              {"log-every", "1"},
              {"eval-every", "4"},
              {"seed", "7"},
              {"runs-dir", dir / "runs"},
              {"keep", "3"}};
  for (const auto& [name, text] : more) flags[name] = text;
  return flags;
}

checkpoint::Checkpoint newest(const std::string& run_dir) {
  std::string path;
  return checkpoint::CheckpointStore(run_dir + "/checkpoints").load_newest(path);
}

/// Returns the CSV without the columns that hold times.
std::string without_times(const std::string& path, const std::vector<size_t>& time_columns) {
  std::istringstream in(get_file(path));
  std::string result;
  for (std::string line; std::getline(in, line); result += "\n") {
    std::istringstream cells(line);
    std::string cell;
    for (size_t i = 0; std::getline(cells, cell, ','); ++i) {
      const bool time = std::find(time_columns.begin(), time_columns.end(), i) != time_columns.end();
      result += (time ? "" : cell) + ",";
    }
  }
  return result;
}

void expect_same_run(const std::string& a, const std::string& b) {
  const checkpoint::Checkpoint first = newest(a);
  const checkpoint::Checkpoint second = newest(b);
  EXPECT_EQ(first.values, second.values) << "parameters and optimizer state, bit by bit";
  checkpoint::TrainingState state = second.header.state;
  state.seconds = first.header.state.seconds;
  state.aside_seconds = first.header.state.aside_seconds;
  EXPECT_EQ(first.header.state, state);
  EXPECT_EQ(without_times(a + "/steps.csv", {2, 6, 7}), without_times(b + "/steps.csv", {2, 6, 7}));
  EXPECT_EQ(without_times(a + "/evals.csv", {2, 6}), without_times(b + "/evals.csv", {2, 6}));
}

class Resume : public ::testing::TestWithParam<Flags> {};

TEST_P(Resume, GoesOnWithTheSameBitsAsIfNeverStopped) {
  const TempDir dir;
  const Result whole = run(base_flags(dir, GetParam()));
  ASSERT_EQ(whole.outcome.reason, StopReason::epochs);
  for (const uint64_t stop_at : {uint64_t{3}, uint64_t{10}, uint64_t{17}}) {
    if (stop_at >= whole.outcome.steps) continue;
    Result parts = run(base_flags(dir, GetParam()), stop_at);
    ASSERT_EQ(parts.outcome.reason, StopReason::interrupted);
    ASSERT_EQ(parts.outcome.steps, stop_at);
    const Result rest = run({{"resume", parts.outcome.run_dir}});
    EXPECT_EQ(rest.outcome.reason, StopReason::epochs);
    parts.losses.insert(parts.losses.end(), rest.losses.begin(), rest.losses.end());
    EXPECT_EQ(whole.losses, parts.losses) << "stopped at " << stop_at;
    expect_same_run(whole.outcome.run_dir, parts.outcome.run_dir);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllThatHasState, Resume,
    ::testing::Values(Flags{}, Flags{{"model", "lr"}, {"optimizer", "momentum"}, {"nesterov", "true"}},
                      Flags{{"model", "lr"}, {"schedule", "cosine"}, {"warmup-steps", "5"}, {"shuffle", "100"}},
                      Flags{{"model", "lr"}, {"accumulate", "3"}, {"batch", "16"}},
                      Flags{{"model", "lr"}, {"steps-per-epoch", "7"}, {"optimizer", "adam"}, {"clip-norm", "0.5"}},
                      Flags{{"model", "dropout"}, {"batch", "64"}}));

/// Rewrites the checkpoint as an older program would have written it: with the number of the next batch.
void make_older(const std::string& path, const std::string& position) {
  std::string file = get_file(path);
  uint32_t bytes = 0;
  std::memcpy(&bytes, file.data() + 12, 4);
  const size_t begin = file.find("\"remainder\":");
  const size_t end = file.find("},", begin) + 1;
  file.replace(begin, end - begin, position);
  bytes -= static_cast<uint32_t>(end - begin - position.size());
  std::memcpy(file.data() + 12, &bytes, 4);
  const auto sum = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size() - 4));
  std::memcpy(file.data() + file.size() - 4, &sum, 4);
  put_file(path, {reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

TEST(ResumeFromAnOlderProgram, GoesOnWithTheSameBits) {
  for (const Flags& flags : {Flags{}, Flags{{"steps-per-epoch", "7"}}}) {
    const TempDir dir;
    Flags all = base_flags(dir, {{"model", "lr"}});
    all.insert(flags.begin(), flags.end());
    const Result whole = run(all);
    const Result first = run(all, 13);
    make_older(checkpoint::CheckpointStore(first.outcome.run_dir + "/checkpoints").path_of(13),
               R"("pass":1,"batch":3)");
    run({{"resume", first.outcome.run_dir}});
    expect_same_run(whole.outcome.run_dir, first.outcome.run_dir);
  }
}

TEST(ResumeFromACluster, WhatIsLeftNeedNotBeWholeBatches) {
  const TempDir dir;
  const Result first = run(base_flags(dir, {{"model", "lr"}}), 3);
  checkpoint::Checkpoint checkpoint = newest(first.outcome.run_dir);
  EXPECT_EQ(checkpoint.header.state.data, (data::Remainder{{{0, {{192, 600}}}}, 1}));
  checkpoint.header.state.data = {{{0, {{192, 250}, {300, 600}}}, {1, {{7, 600}}}}, 2};
  const std::vector<std::span<const float>> arrays{checkpoint.parameters()};
  checkpoint::write_checkpoint(checkpoint::CheckpointStore(first.outcome.run_dir + "/checkpoints").path_of(3),
                               checkpoint.header, arrays);
  const Result rest = run({{"resume", first.outcome.run_dir}});
  EXPECT_EQ(rest.outcome.epochs, 3);
  EXPECT_EQ(rest.losses.size(), 6U + 10U + 10U);
  EXPECT_EQ(rest.outcome.examples, 3U * 64U + 358U + 593U + 600U);
}

TEST(ResumeTwice, StillGivesTheSameBits) {
  const TempDir dir;
  const Result whole = run(base_flags(dir, {{"model", "lr"}}));
  const Result first = run(base_flags(dir, {{"model", "lr"}}), 4);
  EXPECT_EQ(run({{"resume", first.outcome.run_dir}}, 13).outcome.reason, StopReason::interrupted);
  run({{"resume", first.outcome.run_dir}});
  expect_same_run(whole.outcome.run_dir, first.outcome.run_dir);
}

TEST(ResumeAfterACrash, DropsWhatTheLogsHoldBeyondTheCheckpoint) {
  const TempDir dir;
  const Flags flags = base_flags(dir, {{"model", "lr"}, {"checkpoint-every", "6"}});
  const Result whole = run(flags);
  const Result crashed = run(flags, 14);
  // Looks like a kill: the checkpoint of the interrupt is missing, and there is a half-written one.
  const checkpoint::CheckpointStore store(crashed.outcome.run_dir + "/checkpoints");
  std::filesystem::remove(store.path_of(14));
  std::filesystem::remove(crashed.outcome.run_dir + "/summary.json");
  put_file(store.path_of(18) + ".tmp-1-0", {});
  run({{"resume", crashed.outcome.run_dir}});
  expect_same_run(whole.outcome.run_dir, crashed.outcome.run_dir);
  EXPECT_FALSE(std::filesystem::exists(store.path_of(18) + ".tmp-1-0"));
}

TEST(ResumeFinished, ReportsThatItIsFinishedAndChangesNothing) {
  const TempDir dir;
  const Result done = run(base_flags(dir, {{"model", "lr"}}));
  const std::string summary = get_file(done.outcome.run_dir + "/summary.json");
  const Result again = run({{"resume", done.outcome.run_dir}});
  EXPECT_TRUE(again.outcome.already_finished);
  EXPECT_EQ(again.outcome.reason, StopReason::epochs);
  EXPECT_EQ(again.outcome.steps, done.outcome.steps);
  EXPECT_TRUE(again.losses.empty());
  EXPECT_EQ(get_file(done.outcome.run_dir + "/summary.json"), summary);
}

TEST(ResumeFinished, GoesOnWhenTheLimitIsRaised) {
  const TempDir dir;
  const Result whole = run(base_flags(dir, {{"model", "lr"}, {"epochs", "3"}}));
  const Result part = run(base_flags(dir, {{"model", "lr"}, {"epochs", "1"}}));
  const Result rest = run({{"resume", part.outcome.run_dir}, {"epochs", "3"}});
  EXPECT_EQ(rest.outcome.epochs, 3);
  EXPECT_EQ(newest(whole.outcome.run_dir).values, newest(part.outcome.run_dir).values);
  EXPECT_TRUE(run({{"resume", part.outcome.run_dir}}).outcome.already_finished) << "the new limit is remembered";
}

TEST(ResumeFinished, AReachedGoalStaysReached) {
  const TempDir dir;
  const Result done = run(base_flags(dir, {{"model", "lr"}, {"stop-accuracy", "0.05"}, {"epochs", "50"}}));
  ASSERT_EQ(done.outcome.reason, StopReason::accuracy);
  EXPECT_EQ(run({{"resume", done.outcome.run_dir}}).outcome.reason, StopReason::accuracy);
  EXPECT_GT(run({{"resume", done.outcome.run_dir}, {"stop-accuracy", "1"}, {"epochs", "2"}}).outcome.steps,
            done.outcome.steps);
}

TEST(ResumeMistakes, WhatARunIsCannotChange) {
  const TempDir dir;
  const Result part = run(base_flags(dir, {{"model", "lr"}}), 5);
  const auto error = [&](const std::string& name, const std::string& text) {
    return message_of<UsageError>([&] { run({{"resume", part.outcome.run_dir}, {name, text}}); });
  };
  EXPECT_THAT(error("model", "lenet"), AllOf(HasSubstr("--model: 'lenet'"), HasSubstr("which has 'lr'")));
  EXPECT_THAT(error("batch", "32"), AllOf(HasSubstr("--batch: '32'"), HasSubstr("which has '64'")));
  EXPECT_THAT(error("seed", "8"), HasSubstr("--seed"));
  EXPECT_THAT(error("optimizer", "adam"), HasSubstr("--optimizer"));
  EXPECT_THAT(error("dataset", "mnist"), HasSubstr("--dataset"));
  EXPECT_NO_THROW(run({{"resume", part.outcome.run_dir}, {"batch", "64"}, {"eval-every", "0"}}));
}

TEST(ResumeMistakes, AnEditedConfigIsFoundOut) {
  const TempDir dir;
  const Result part = run(base_flags(dir, {{"model", "lr"}}), 5);
  const std::string config = part.outcome.run_dir + "/config.yaml";
  std::string yaml = get_file(config);
  yaml.replace(yaml.find("batch: 64"), 9, "batch: 32");
  put_file(config, {reinterpret_cast<const uint8_t*>(yaml.data()), yaml.size()});
  EXPECT_THAT(message_of<UsageError>([&] {
                run({{"resume", part.outcome.run_dir}});
              }),
              AllOf(HasSubstr("batch: '32'"), HasSubstr("made with '64'")));
}

TEST(ResumeMistakes, MissingRunsAndCheckpointsAreNamed) {
  const TempDir dir;
  EXPECT_THAT(message_of<UsageError>([&] {
                run({{"resume", "lr-7"}, {"runs-dir", dir / "runs"}});
              }),
              HasSubstr("no run 'lr-7'"));
  const Result part = run(base_flags(dir, {{"model", "lr"}}), 5);
  EXPECT_THAT(message_of<UsageError>([&] {
                run({{"resume", part.outcome.run_dir}, {"checkpoint", "nope"}});
              }),
              HasSubstr("nope"));
  std::filesystem::remove_all(part.outcome.run_dir + "/checkpoints");
  EXPECT_THAT(message_of<UsageError>([&] {
                run({{"resume", part.outcome.run_dir}});
              }),
              AllOf(HasSubstr("before its first checkpoint"), HasSubstr("--config " + part.outcome.run_dir)));
}

TEST(ResumeMistakes, AnotherModelsCheckpointIsRefused) {
  const TempDir dir;
  const Result lr = run(base_flags(dir, {{"model", "lr"}}), 5);
  const Result lenet = run(base_flags(dir), 5);
  const std::string other = checkpoint::CheckpointStore(lenet.outcome.run_dir + "/checkpoints").path_of(5);
  EXPECT_THAT(message_of<UsageError>([&] {
                run({{"resume", lr.outcome.run_dir}, {"checkpoint", other}});
              }),
              AllOf(HasSubstr("model: 'lr'"), HasSubstr("'lenet'")));
}

TEST(ResumeMistakes, OtherDataIsFoundOut) {
  const TempDir dir;
  const Result part = run(base_flags(dir, {{"model", "lr"}}), 15);
  const data::Dataset smaller = testing::small_data(100, 10);
  Recorder recorder;
  EXPECT_THAT(message_of<DataError>([&] {
                testing::train_session({{"resume", part.outcome.run_dir}}, recorder, {}, smaller);
              }),
              AllOf(HasSubstr("training examples 600"), HasSubstr("has 100")));
}

TEST(ResumeDamaged, OffersThePreviousCheckpointWhichThenWorks) {
  const TempDir dir;
  const Flags flags = base_flags(dir, {{"model", "lr"}, {"checkpoint-every", "5"}, {"eval-every", "5"}});
  const Result whole = run(flags);
  const Result part = run(flags, 15);
  const checkpoint::CheckpointStore store(part.outcome.run_dir + "/checkpoints");
  std::string content = get_file(store.path_of(15));
  content[content.size() / 2] ^= 1;
  put_file(store.path_of(15), {reinterpret_cast<const uint8_t*>(content.data()), content.size()});
  EXPECT_THAT(message_of<DataError>([&] {
                run({{"resume", part.outcome.run_dir}});
              }),
              AllOf(HasSubstr("step-000000015.ckpt: is damaged"), HasSubstr("--checkpoint " + store.path_of(10))));
  run({{"resume", part.outcome.run_dir}, {"checkpoint", store.path_of(10)}});
  expect_same_run(whole.outcome.run_dir, part.outcome.run_dir);
}

TEST(ResumeFinished, KeepsItsScheduleWhenTheLimitIsRaised) {
  const TempDir dir;
  const Result part = run(base_flags(dir, {{"model", "lr"}, {"schedule", "cosine"}, {"epochs", "2"}}), 10);
  run({{"resume", part.outcome.run_dir}, {"epochs", "4"}});
  const checkpoint::CheckpointHeader header = newest(part.outcome.run_dir).header;
  EXPECT_EQ(header.state.step, 40U);
  EXPECT_EQ(header.settings.at("decay-steps"), "20");
}

TEST(ResumeFromAnOlder, ForgetsABestCheckpointThatIsGone) {
  const TempDir dir;
  const Flags flags = base_flags(dir, {{"model", "lr"}, {"eval-every", "0"}, {"checkpoint-every", "7"}});
  const Result part = run(flags, 21);
  const checkpoint::CheckpointStore store(part.outcome.run_dir + "/checkpoints");
  const auto best = newest(part.outcome.run_dir).header.state.best_checkpoint;
  ASSERT_TRUE(best);
  std::filesystem::remove(store.path_of(best->step));
  run({{"resume", part.outcome.run_dir}}, 23);
  EXPECT_FALSE(newest(part.outcome.run_dir).header.state.best_checkpoint);
}

TEST(ResumeFromTheBest, WorksByName) {
  const TempDir dir;
  const Result part = run(base_flags(dir, {{"model", "lr"}}), 13);
  ASSERT_TRUE(part.outcome.best_eval);
  const Result rest = run({{"resume", part.outcome.run_dir}, {"checkpoint", "best"}});
  EXPECT_EQ(rest.losses.size(), 30 - part.outcome.best_eval->step);
}

TEST(ResumeQuiet, IsNotInheritedEvenFromAnOlderConfig) {
  const TempDir dir;
  const Result part = run(base_flags(dir, {{"model", "lr"}, {"quiet", "true"}}), 5);
  const std::string config = part.outcome.run_dir + "/config.yaml";
  const std::string yaml = get_file(config) + "quiet: true\n";
  put_file(config, {reinterpret_cast<const uint8_t*>(yaml.data()), yaml.size()});
  settings::Configuration configuration;
  configuration.resume_from(config);
  EXPECT_FALSE(configuration.resolve().quiet);
}

}  // namespace
}  // namespace lockstep::train
