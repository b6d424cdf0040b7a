#include "dash/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "base/temp_dir.h"
#include "records/run_folders.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;
using lockstep::testing::put_text;
using lockstep::testing::TempDir;
using lockstep::testing::write_cluster_run;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Folders {
  TempDir dir;
  std::string runs = dir.path() + "/runs";
  std::string lab = dir.path() + "/lab";
  RunStore store{runs, lab};

  std::vector<std::string> ids() {
    std::vector<std::string> result;
    for (const RowPtr& row : store.rows()) result.push_back(row->place.id);
    return result;
  }
  /// Returns the changes of the next look that finds any: frequently read files are not looked at every time.
  std::vector<std::string> next_changes() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      std::vector<std::string> found = store.changes();
      if (!found.empty() || std::chrono::steady_clock::now() > end) return found;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
};

TEST(RunStore, RunsOfTheFolderAndOfTheLabHaveIds) {
  Folders folders;
  EXPECT_THAT(folders.ids(), IsEmpty());
  write_cluster_run(folders.runs + "/b");
  write_cluster_run(folders.runs + "/a");
  write_cluster_run(folders.lab + "/study-quick/runs/lr=1-r1");
  put_text(folders.runs + "/no-run/notes.txt", "x");
  put_text(folders.runs + "/.hidden/config.yaml", "model: lr\n");
  EXPECT_THAT(folders.ids(), ElementsAre("a", "b", "study-quick~lr=1-r1"));
  ASSERT_TRUE(folders.store.find("a"));
  EXPECT_EQ(folders.store.find("study-quick~lr=1-r1")->name, "lr=1-r1");
  for (const char* id : {"", ".", "..", "../runs/a", "a/worker-1", "no-run", ".hidden", "study-quick", "/etc"}) {
    EXPECT_FALSE(folders.store.find(id)) << id;
  }
}

TEST(RunStore, NoTwoRunsHaveTheSameId) {
  Folders folders;
  write_cluster_run(folders.runs + "/study~lr-r1");
  write_cluster_run(folders.runs + "/~study~lr-r1");
  write_cluster_run(folders.lab + "/study/runs/lr-r1");
  write_cluster_run(folders.lab + "/study/runs/lr~r1");
  EXPECT_THAT(folders.ids(), ElementsAre("study~lr-r1", "study~lr~r1", "~study~lr-r1", "~~study~lr-r1"));
  for (const std::string& id : folders.ids()) {
    EXPECT_EQ(folders.store.find(id)->path.starts_with(folders.lab), !experiment_of(id).empty()) << id;
  }
}

TEST(RunStore, LinksThatLeadElsewhereAreNotFollowed) {
  Folders folders;
  write_cluster_run(folders.runs + "/a");
  write_cluster_run(folders.dir.path() + "/outside");
  put_text(folders.dir.path() + "/secret", "model: secret\n");
  fs::create_directory_symlink(folders.dir.path() + "/outside", folders.runs + "/out");
  fs::create_directory_symlink(folders.runs + "/a", folders.runs + "/again");
  write_cluster_run(folders.runs + "/leaky");
  fs::remove(folders.runs + "/leaky/config.yaml");
  fs::create_symlink(folders.dir.path() + "/secret", folders.runs + "/leaky/config.yaml");
  write_cluster_run(folders.runs + "/role");
  fs::remove_all(folders.runs + "/role/worker-1");
  fs::create_directory_symlink(folders.dir.path() + "/outside", folders.runs + "/role/worker-1");
  fs::create_directories(folders.lab + "/x");
  fs::create_directory_symlink(folders.dir.path(), folders.lab + "/x/runs");
  EXPECT_THAT(folders.ids(), ElementsAre("a", "again"));
  for (const char* id : {"out", "leaky", "role", "x~outside"}) EXPECT_FALSE(folders.store.find(id)) << id;
}

TEST(RunStore, WhatChangedIsTold) {
  Folders folders;
  write_cluster_run(folders.runs + "/a");
  write_cluster_run(folders.runs + "/b");
  EXPECT_THAT(folders.store.changes(), ElementsAre("a", "b"));
  EXPECT_THAT(folders.store.changes(), IsEmpty());
  put_text(folders.runs + "/b/evals.csv",
           std::string(lockstep::testing::kEvalsCsv) + "300,1,0.71,0.4,0.95,10000,0.004,1\n");
  EXPECT_THAT(folders.next_changes(), ElementsAre("b"));
  write_cluster_run(folders.runs + "/c");
  fs::remove_all(folders.runs + "/a");
  EXPECT_THAT(folders.store.changes(), ElementsAre("a", "c"));
  EXPECT_FALSE(folders.store.find("a"));
  EXPECT_THAT(folders.store.changes(), IsEmpty());
}

TEST(RunStore, ARunThatWasAskedForIsToldToBeGone) {
  Folders folders;
  EXPECT_THAT(folders.store.changes(), IsEmpty());
  write_cluster_run(folders.runs + "/short-lived");
  EXPECT_TRUE(folders.store.find("short-lived"));
  fs::remove_all(folders.runs + "/short-lived");
  EXPECT_THAT(folders.store.changes(), ElementsAre("short-lived"));
  EXPECT_THAT(folders.store.changes(), IsEmpty());
}

TEST(RunStore, ARunIsReadAgainOnlyWhenItChanged) {
  Folders folders;
  write_cluster_run(folders.runs + "/a");
  const RunPtr first = folders.store.find("a");
  EXPECT_EQ(folders.store.find("a"), first);
  put_text(folders.runs + "/a/worker-1/steps.csv", "step,loss\n1,2.5\n");
  const RunPtr second = folders.store.find("a");
  EXPECT_NE(second, first);
  EXPECT_EQ(second->role("worker:1")->steps.rows(), 1U);
}

TEST(RunStore, ARunThatTrainsIsSeenToBreakOff) {
  Folders folders;
  put_text(folders.runs + "/a/config.yaml", "model: lr\n");
  {
    const auto lock = base::LockFile::try_lock(folders.runs + "/a/.lock");
    EXPECT_EQ(folders.store.rows().at(0)->state, records::RunState::running);
    folders.store.changes();
  }
  EXPECT_THAT(folders.next_changes(), ElementsAre("a"));
  EXPECT_EQ(folders.store.rows().at(0)->state, records::RunState::broken);
}

TEST(RunStore, DamagedRunsAreRowsWithWarnings) {
  Folders folders;
  put_text(folders.runs + "/a/config.yaml", "\x01\xff: [");
  put_text(folders.runs + "/a/summary.json", "{\"test_accuracy\": tru");
  put_text(folders.runs + "/a/steps.csv", "step,loss\n1,x\n2,3,4\n");
  put_text(folders.runs + "/a/nodes.json", "[1, {\"node\": 3}, ");
  const nlohmann::json row = nlohmann::json::parse(folders.store.rows().at(0)->json);
  EXPECT_EQ(row["state"], "broken");
  EXPECT_GT(row["warnings"].get<int>(), 0);
  EXPECT_TRUE(row["accuracy"].is_null());
}

TEST(RunStore, ManyMayAskWhileRunsComeAndGo) {
  Folders folders;
  write_cluster_run(folders.runs + "/a");
  std::atomic<bool> ended{false};
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      while (!ended) {
        folders.store.rows();
        folders.store.find("a");
        folders.store.find("b");
        folders.store.changes();
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    write_cluster_run(folders.runs + "/b");
    fs::remove_all(folders.runs + "/b");
  }
  ended = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_THAT(folders.ids(), ElementsAre("a"));
}

}  // namespace
}  // namespace lockstep::dash
