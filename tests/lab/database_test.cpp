// The lab's records survive changes of the file, kills, damage and other versions.
#include "lab/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "lab/digest.h"
#include "lab/experiments.h"
#include "lab/measure_again.h"
#include "records/run_folders.h"

namespace lockstep::testing {
namespace {

using lab::Database;
using lab::RunState;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class LabDatabase : public ::testing::Test {
 protected:
  [[nodiscard]] Database open(Database::Access access = Database::Access::write) const {
    return {folder.path(), access};
  }
  static lab::Experiment experiment(const std::string& batches) {
    return parse(kBase + "grid: {batch: [" + batches + "]}\n");
  }
  [[nodiscard]] std::string file() const { return folder / "lab.sqlite"; }
  /// Opens the database as another program would.
  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  static lab::RunMeasured some() {
    return {{{"accuracy", 0.9}, {"seconds", 2}}, {{"worker:0", "node1", {{"seconds", 1.5}}}, {"ps:0", "node2", {}}}};
  }

  static void finish(Database& database, int64_t id, const std::string& key, const std::string& run = "x") {
    database.started(id, key, run);
    database.done(id, key, some());
  }

  TempDir folder;
};

TEST_F(LabDatabase, GivesBackWhatWasWritten) {
  const lab::Experiment planned = experiment("1, 2");
  lab::Environment environment;
  environment.program = "lockstep 1";
  environment.cores = 2;
  {
    Database database = open();
    const int64_t id = database.plan(planned, folder / "e", environment, "lockstep lab run test.yaml");
    database.started(id, "e-batch=1-r1", folder / "e/runs/e-batch=1-r1");
    database.done(id, "e-batch=1-r1", some());
    database.started(id, "e-batch=2-r1", folder / "e/runs/e-batch=2-r1");
    database.failed(id, "e-batch=2-r1", "no memory");
  }
  const Database database = open(Database::Access::read);
  const lab::ExperimentRow row = database.find("e", "");
  EXPECT_EQ(row.done, 1);
  EXPECT_EQ(row.failed, 1);
  const lab::Results results = database.results(row.id);
  ASSERT_EQ(results.runs.size(), 2U);
  EXPECT_EQ(results.folder, folder / "e");
  EXPECT_EQ(results.environment.cores, 2);
  EXPECT_EQ(results.runs[0].state, RunState::done);
  EXPECT_EQ(results.runs[0].folder, folder / "e/runs/e-batch=1-r1");
  EXPECT_EQ(results.runs[0].plan.settings, planned.groups[0].runs[0].settings);
  EXPECT_DOUBLE_EQ(results.runs[0].number("accuracy"), 0.9);
  EXPECT_DOUBLE_EQ(results.runs[0].number("batch"), 1);
  ASSERT_EQ(results.runs[0].measured.roles.size(), 2U);
  EXPECT_EQ(results.runs[0].measured.roles[0].node, "node1");
  EXPECT_DOUBLE_EQ(results.runs[0].measured.roles[0].values.at("seconds"), 1.5);
  EXPECT_EQ(results.runs[1].reason, "no memory");
  EXPECT_EQ(results.experiment.groups.size(), 1U);
}

TEST_F(LabDatabase, RunsAreMeasuredAgainFromTheirFolders) {
  int64_t id = 0;
  {
    Database database = open();
    id = database.plan(experiment("1, 2, 3"), folder / "e", {}, "");
    write_cluster_run(folder / "e/runs/first");
    std::filesystem::create_directories(folder / "e/runs/second");
    for (const char* name : {"first", "second"}) {
      const std::string key = std::string("e-batch=") + (name[0] == 'f' ? "1" : "2") + "-r1";
      database.started(id, key, folder / ("e/runs/" + std::string(name)));
      database.done(id, key, {{{"accuracy", 0.1}, {"gone", 1}, {"others_share", 0.2}, {"disturbed", 1}}, {}});
    }
  }
  const lab::MeasuredAgain again = lab::measure_again(folder.path(), id);
  EXPECT_EQ(again.runs, 1U);
  EXPECT_EQ(again.kept, 1U) << "the second folder is empty";
  const lab::Results results = open(Database::Access::read).results(id);
  const lab::RunResult& first = results.runs[0];
  EXPECT_EQ(first.state, RunState::done);
  EXPECT_DOUBLE_EQ(first.number("accuracy"), 0.892);
  EXPECT_EQ(first.measured.roles.size(), 3U);
  EXPECT_FALSE(first.measured.values.contains("gone"));
  EXPECT_DOUBLE_EQ(first.number("others_share"), 0.2) << "no folder knows it";
  EXPECT_DOUBLE_EQ(first.number("disturbed"), 1);
  EXPECT_DOUBLE_EQ(results.runs[1].number("accuracy"), 0.1);
  EXPECT_EQ(results.runs[2].state, RunState::planned);
}

TEST_F(LabDatabase, AChangedFileKeepsTheRunsThatAreTheSame) {
  Database database = open();
  const int64_t id = database.plan(experiment("1, 2"), folder / "e", {}, "");
  for (const char* key : {"e-batch=1-r1", "e-batch=2-r1"}) {
    database.started(id, key, "x");
    database.done(id, key, some());
  }
  EXPECT_EQ(database.plan(experiment("2, 3"), folder / "e", {}, ""), id);
  lab::Results results = database.results(id);
  ASSERT_EQ(results.runs.size(), 2U);
  EXPECT_EQ(results.runs[0].state, RunState::done);
  EXPECT_EQ(results.runs[1].state, RunState::planned);

  lab::Experiment other = parse("name: e\nbase: {model: lr, dataset: synthetic, epochs: 2}\ngrid: {batch: [1, 2]}\n");
  database.plan(other, folder / "e", {}, "");
  results = database.results(id);
  EXPECT_EQ(results.runs[0].state, RunState::planned) << "another number of epochs is another run";
  EXPECT_TRUE(results.runs[0].measured.values.empty());
}

TEST_F(LabDatabase, AForgottenRunAndOneWhoseLabDiedArePlannedAgain) {
  Database database = open();
  const int64_t id = database.plan(experiment("1, 2"), folder / "e", {}, "");
  database.started(id, "e-batch=1-r1", "x");
  database.forget(id, "e-batch=1-r1");
  database.started(id, "e-batch=2-r1", "x");
  database.plan(experiment("1, 2"), folder / "e", {}, "");
  for (const lab::RunResult& run : database.results(id).runs) {
    EXPECT_EQ(run.state, RunState::planned);
    EXPECT_EQ(run.started, 0);
  }
}

TEST_F(LabDatabase, OnlyTheRunsThatAreChosenLoseWhatTheyHad) {
  Database database = open();
  const int64_t id = database.plan(experiment("1, 2"), folder / "e", {}, "");
  for (const char* key : {"e-batch=1-r1", "e-batch=2-r1"}) finish(database, id, key);
  const lab::Experiment longer =
      parse("name: e\nbase: {model: lr, dataset: synthetic, epochs: 2}\ngrid: {batch: [1, 2]}\n");
  const std::vector<std::string> only{"e-batch=2-r1"};
  database.plan(longer, folder / "e", {}, "", &only);
  const lab::Results results = database.results(id);
  ASSERT_EQ(results.runs.size(), 2U);
  EXPECT_EQ(results.runs[0].state, RunState::done);
  EXPECT_EQ(results.runs[0].text("epochs"), "1") << "what it was made with";
  EXPECT_DOUBLE_EQ(results.runs[0].number("accuracy"), 0.9);
  EXPECT_EQ(results.runs[1].state, RunState::planned);
  EXPECT_EQ(results.runs[1].text("epochs"), "2");
  EXPECT_THAT(database.finished(longer), IsEmpty()) << "it is not what the file has now";
  EXPECT_THAT(database.finished(experiment("1, 2")), ElementsAre("e-batch=1-r1"));
}

TEST_F(LabDatabase, AGridThatGrowsKeepsItsFirstRun) {
  Database database = open();
  const int64_t id = database.plan(experiment("1"), folder / "e", {}, "");
  finish(database, id, "e-r1", folder / "e/runs/e-r1");
  EXPECT_THAT(database.finished(experiment("1, 2")), ElementsAre("e-batch=1-r1"));
  database.plan(experiment("1, 2"), folder / "e", {}, "");
  lab::Results results = database.results(id);
  EXPECT_EQ(results.runs[0].plan.key, "e-batch=1-r1");
  EXPECT_EQ(results.runs[0].state, RunState::done);
  EXPECT_DOUBLE_EQ(results.runs[0].number("accuracy"), 0.9);
  EXPECT_EQ(results.runs[0].folder, folder / "e/runs/e-r1");
  EXPECT_EQ(results.runs[1].state, RunState::planned);

  // The other value alone has the key of the first, but not its folder.
  database.plan(experiment("2"), folder / "e", {}, "");
  results = database.results(id);
  ASSERT_EQ(results.runs.size(), 1U);
  EXPECT_EQ(results.runs[0].state, RunState::planned);
  EXPECT_EQ(database.folder_for(id, "e-r1", folder / "e/runs/e-r1"), folder / "e/runs/e-r1-2");
  finish(database, id, "e-r1", folder / "e/runs/e-r1-2");
  database.plan(experiment("1"), folder / "e", {}, "");
  results = database.results(id);
  EXPECT_EQ(results.runs[0].folder, folder / "e/runs/e-r1") << "two runs change places under one key";
  EXPECT_EQ(results.runs[0].state, RunState::done);
  database.plan(experiment("2, 1"), folder / "e", {}, "");
  EXPECT_THAT(database.finished(experiment("2, 1")), ElementsAre("e-batch=1-r1", "e-batch=2-r1"));
}

TEST_F(LabDatabase, ARunThatIsMadeAgainKeepsWhatItHasUntilItIsDone) {
  const std::string key = "e-batch=1-r1";
  Database database = open();
  const int64_t id = database.plan(experiment("1, 2"), folder / "e", {}, "");
  finish(database, id, key);
  database.started(id, key, "x");
  EXPECT_EQ(open(Database::Access::read).find("e", "").done, 1) << "its lab has died";
  EXPECT_EQ(database.results(id).runs[0].state, RunState::done);
  database.plan(experiment("1, 2"), folder / "e", {}, "");
  EXPECT_DOUBLE_EQ(database.results(id).runs[0].number("accuracy"), 0.9);
  database.started(id, key, "x");
  database.forget(id, key);
  EXPECT_EQ(database.results(id).runs[0].state, RunState::done);
  database.started(id, key, "x");
  database.done(id, key, {{{"accuracy", 0.5}}, {}}, folder / "y", 3);
  const lab::RunResult run = database.results(id).runs[0];
  EXPECT_DOUBLE_EQ(run.number("accuracy"), 0.5);
  EXPECT_EQ(run.folder, folder / "y");
  EXPECT_NEAR(run.ended - run.started, 3, 0.1);
}

TEST_F(LabDatabase, AnotherModelInTheSameFileIsAnotherRun) {
  const std::string file = folder / "model.yaml";
  const auto planned = [&](const std::string& text) {
    put_file(file, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    lab::RunPlan plan;
    plan.settings = {{"model", file}};
    return lab::digest_of(plan);
  };
  const std::string first = planned("a");
  EXPECT_NE(planned("b"), first);
  EXPECT_EQ(planned("a"), first);
}

TEST_F(LabDatabase, AKillLosesNothingThatWasFinished) {
  const pid_t child = fork();
  if (child == 0) {
    Database database = open();
    const int64_t id = database.plan(experiment("1, 2"), folder / "e", {}, "");
    database.started(id, "e-batch=1-r1", "x");
    database.done(id, "e-batch=1-r1", some());
    std::ofstream(folder / "ready") << "1";
    while (true) {
      database.started(id, "e-batch=2-r1", "x");
      database.forget(id, "e-batch=2-r1");
    }
  }
  while (!std::filesystem::exists(folder / "ready")) usleep(1000);
  usleep(20000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  Database database = open();
  const lab::ExperimentRow row = database.find("e", "");
  EXPECT_EQ(row.done, 1);
  EXPECT_DOUBLE_EQ(database.results(row.id).runs[0].number("accuracy"), 0.9);
}

TEST_F(LabDatabase, ANewerVersionIsRefusedByNumber) {
  { (void)open(); }
  execute("PRAGMA user_version = 2");
  for (const Database::Access access : {Database::Access::read, Database::Access::write}) {
    EXPECT_EQ(message_of<DataError>([&] { (void)open(access); }),
              file() + ": was written by a newer lockstep (format 2; this one knows up to 1)");
  }
}

TEST_F(LabDatabase, DamagedFilesAreOneLine) {
  const std::string text(5000, 'x');
  put_file(file(), {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  for (const Database::Access access : {Database::Access::read, Database::Access::write}) {
    EXPECT_THAT(message_of<DataError>([&] { (void)open(access); }),
                AllOf(StartsWith(file() + ": "), HasSubstr("damaged")));
  }
}

TEST_F(LabDatabase, PagesThatAreDamagedAreFoundBeforeAnythingRuns) {
  {
    Database database = open();
    database.plan(experiment("1, 2, 3, 4, 5"), folder / "e", {}, "");
  }
  {
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(4096);
    stream << std::string(4000, '\x7F');
  }
  EXPECT_THAT(message_of<DataError>([&] { (void)open(); }), HasSubstr("damaged"));
}

TEST_F(LabDatabase, AnotherProgramsDatabaseIsLeftAlone) {
  execute("CREATE TABLE t (x)");
  EXPECT_EQ(message_of<DataError>([&] { (void)open(); }), file() + ": is another program's database");
}

TEST_F(LabDatabase, WhatIsNotThereIsSaidWithWhatIs) {
  EXPECT_THAT(message_of<UsageError>([&] { (void)open(Database::Access::read); }),
              HasSubstr("no experiment has been run"));
  Database database = open();
  EXPECT_THAT(message_of<UsageError>([&] { (void)database.find("x", ""); }), HasSubstr("this lab has none"));
  database.plan(experiment("1"), folder / "e", {}, "");
  EXPECT_THAT(message_of<UsageError>([&] { (void)database.find("f", ""); }), HasSubstr("(did you mean 'e'?)"));
}

TEST_F(LabDatabase, ReportedFiguresAreKept) {
  const std::string figures = "batch,seconds\n1,2\n";
  put_file(folder / "figures.csv", {reinterpret_cast<const uint8_t*>(figures.data()), figures.size()});
  Database database = open();
  const lab::Experiment made = lab::parse_experiment(kBase +
                                                         "grid: {batch: [1]}\nreport: {tables: [{name: t, rows: "
                                                         "[batch], columns: [seconds], reported: figures.csv}]}\n",
                                                     folder / "e.yaml", "");
  const int64_t id = database.plan(made, folder / "e", {}, "");
  std::filesystem::remove(folder / "figures.csv");
  EXPECT_EQ(lab::value_of(database.results(id).experiment.reported, "figures.csv"), figures);
}

}  // namespace
}  // namespace lockstep::testing
