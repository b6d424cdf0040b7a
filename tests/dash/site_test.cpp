// The answers at each address.
#include "dash/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/temp_dir.h"
#include "records/run_folders.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;
using lockstep::testing::put_text;
using lockstep::testing::TempDir;
using lockstep::testing::write_cluster_run;
using nlohmann::json;
using ::testing::HasSubstr;

class SiteTest : public ::testing::Test {
 protected:
  http::Response answer(const std::string& target) {
    http::Response refused;
    const std::optional<http::Request> request =
        http::parse_request("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n", refused);
    return request ? site_.answer(*request) : refused;
  }
  json asked(const std::string& target) {
    const http::Response response = answer(target);
    EXPECT_EQ(response.status, 200) << target << response.body;
    return json::parse(response.body);
  }

  TempDir dir_;
  std::string runs_ = dir_.path() + "/runs";
  std::string lab_ = dir_.path() + "/lab";
  Site site_{Options{.runs_dir = runs_, .lab_dir = lab_}, Access("127.0.0.1", "", 6007)};
};

TEST_F(SiteTest, ThePageAndItsPartsAreThere) {
  EXPECT_THAT(answer("/").body, HasSubstr("<title>Lockstep</title>"));
  for (const char* name :
       {"app.js", "chart.js", "page.js", "runs_view.js", "columns.js", "pictures.js", "cluster_view.js"}) {
    const http::Response response = answer(std::string("/static/") + name);
    EXPECT_EQ(response.status, 200) << name;
    EXPECT_EQ(response.type, "text/javascript; charset=utf-8");
  }
  EXPECT_EQ(answer("/static/dash.css").type, "text/css; charset=utf-8");
  for (const char* path :
       {"/static", "/static/", "/static/nothing.js", "/static/a/b", "/index.html", "/runs/a/config.yaml", "/api",
        "/api/nothing", "/api/runs/x", "/api/run", "/api/run/a/steps.csv", "/report", "/lab.sqlite"}) {
    EXPECT_EQ(answer(path).status, 404) << path;
  }
}

TEST_F(SiteTest, AFolderWithoutRunsIsAnEmptyList) {
  EXPECT_EQ(asked("/api/runs")["runs"].size(), 0U);
  EXPECT_EQ(asked("/api/nodes")["runs"].size(), 0U);
  EXPECT_EQ(asked("/api/experiments")["experiments"].size(), 0U);
}

TEST_F(SiteTest, ARunIsGivenWithItsFiguresRolesAndReasons) {
  write_cluster_run(runs_ + "/a b");
  const json row = asked("/api/runs")["runs"][0];
  EXPECT_EQ(row["id"], "a b");
  EXPECT_EQ(row["how"], "ps sync");
  EXPECT_DOUBLE_EQ(row["accuracy"], 0.892);
  const json run = asked("/api/run/a%20b");
  EXPECT_EQ(run["roles"].size(), 3U);
  EXPECT_EQ(run["roles"][1]["role"], "worker:1");
  EXPECT_EQ(run["roles"][1]["restarts"], 1);
  EXPECT_EQ(run["roles"][0]["state"], "ended");
  EXPECT_FALSE(run["why"]["headline"].get<std::string>().empty());
  EXPECT_EQ(run["settings"][0], json::array({"model", "lr"}));
  const json charts = asked("/api/run/a%20b/charts?over=seconds")["charts"];
  ASSERT_GE(charts.size(), 4U);
  EXPECT_EQ(charts[0]["group"], "curves");
  EXPECT_EQ(charts[0]["chart"]["series"][0]["y"].size(), 2U);
  EXPECT_EQ(answer("/api/run/b").status, 404);
  EXPECT_EQ(answer("/api/run/b/charts").status, 404);
}

/// Writes runs of three learning rates, the last one in the lab.
class ListTest : public SiteTest {
 protected:
  ListTest() {
    for (const auto& [path, lr] :
         {std::pair{runs_ + "/a", "0.1"}, {runs_ + "/b", "0.02"}, {lab_ + "/study/runs/c", "0.005"}}) {
      write_cluster_run(path);
      put_text(path + "/config.yaml", fmt::format("model: lr\ndataset: mnist\nbatch: 100\nlr: {}\nmode: sync\n", lr));
    }
  }
  std::vector<std::string> listed(const std::string& question) {
    const json list = asked("/api/runs?" + question);
    std::vector<std::string> ids;
    for (const json& run : list["runs"]) ids.push_back(run["id"]);
    return ids;
  }
};

TEST_F(ListTest, TheListTakesTheWordsOfTheCommandLine) {
  EXPECT_EQ(listed("q=lr%3C0.05"), (std::vector<std::string>{"b", "study~c"}));
  EXPECT_EQ(listed("q=model%3Dlr%20accuracy%3E88%25%20lr%3D0.1"), std::vector<std::string>{"a"});
  EXPECT_EQ(listed("q=accuracy%3E0.95"), std::vector<std::string>{});
  EXPECT_EQ(listed("q=state%3Drunning"), std::vector<std::string>{});
  EXPECT_EQ(listed("q=experiment%3Dstudy"), std::vector<std::string>{"study~c"});
  EXPECT_EQ(listed("q=study"), std::vector<std::string>{"study~c"})
      << "a word is searched in the experiment's name, too";
}

TEST_F(ListTest, AnUnknownKeyIsSaidAndListsNothing) {
  const json answer_json = asked("/api/runs?q=acuracy%3E0.5");
  EXPECT_EQ(answer_json["problem"], "runs have no 'acuracy' (did you mean 'accuracy'?)");
  EXPECT_EQ(answer_json["runs"].size(), 0U);
  EXPECT_EQ(answer_json["all"], 3);
  EXPECT_THAT(asked("/api/runs?q=lr%3Cfast")["problem"].get<std::string>(), HasSubstr("'fast' is not a number"));
}

TEST_F(ListTest, ChosenColumnsAreAddedToTheRows) {
  const json answer_json = asked("/api/runs?columns=lr,best_accuracy");
  EXPECT_EQ(answer_json["columns"][0]["kind"], "number");
  EXPECT_EQ(answer_json["columns"][1]["kind"], "share");
  EXPECT_DOUBLE_EQ(answer_json["runs"][1]["values"]["lr"], 0.02);
  EXPECT_DOUBLE_EQ(answer_json["runs"][1]["values"]["best_accuracy"], 0.892);
  EXPECT_THAT(asked("/api/runs?columns=nothing")["problem"].get<std::string>(), HasSubstr("nothing"));
  const json keys = asked("/api/keys")["keys"];
  const auto has = [&](const char* key) {
    return std::any_of(keys.begin(), keys.end(), [&](const json& one) { return one["key"] == key; });
  };
  EXPECT_TRUE(has("accuracy"));
  EXPECT_TRUE(has("lr")) << "a setting of the runs";
}

TEST_F(ListTest, OnlyTheRunsThatChangedAreAskedFor) {
  EXPECT_EQ(listed("ids=b"), std::vector<std::string>{"b"});
  EXPECT_EQ(listed("ids=b&q=lr%3E0.05"), std::vector<std::string>{}) << "it does not pass the filter";
  fs::remove_all(runs_ + "/a");
  const json answer_json = asked("/api/runs?ids=a,b");
  EXPECT_EQ(answer_json["gone"], json::array({"a"}));
  EXPECT_EQ(answer_json["all"], 2);
}

TEST_F(SiteTest, AnInterruptedRunStoppedItsRoles) {
  write_cluster_run(runs_ + "/a");
  put_text(runs_ + "/a/summary.json",
           R"({"model": "lr", "steps": 200, "stop_reason": "interrupted", "host": "north"})");
  const json run = asked("/api/run/a");
  EXPECT_EQ(run["stop_reason"], "interrupted");
  EXPECT_EQ(run["roles"][0]["state"], "stopped");
  EXPECT_EQ(run["roles"][2]["step"], 200) << "a server's steps are its updates";
}

TEST_F(SiteTest, AServerTellsItsUpdatesWhileItServes) {
  write_cluster_run(runs_ + "/a");
  fs::remove(runs_ + "/a/ps-0/summary.json");
  put_text(runs_ + "/a/ps-0/phases.csv",
           "step,seconds,pushes,receive,wait,apply,send,store\n40,1,80,0.5,0.25,0.1,0.1,0\n70,2,60,0.5,0,0,0,0\n");
  EXPECT_EQ(asked("/api/run/a")["roles"][2]["step"], 70);
}

TEST_F(SiteTest, TheTimeLeftComesFromThePace) {
  write_cluster_run(runs_ + "/a");
  fs::remove(runs_ + "/a/summary.json");
  put_text(runs_ + "/a/config.yaml", "model: lr\nepochs: 4\n");
  put_text(runs_ + "/a/steps.csv",
           "step,epoch,seconds,loss,learning_rate\n1,1,1,2,0.1\n101,2,11,1,0.05\n201,3,21,1,0.025\n");
  const auto lock = base::LockFile::try_lock(runs_ + "/a/.lock");
  const json run = asked("/api/run/a");
  EXPECT_EQ(run["learning_rate"], 0.025);
  EXPECT_NEAR(run["seconds_left"], 20.1, 0.2) << "half of 402 steps, at 10 a second";
  EXPECT_NEAR(run["progress"], 0.5, 0.01);
  const json charts = asked("/api/run/a/charts")["charts"];
  EXPECT_TRUE(std::any_of(charts.begin(), charts.end(), [](const json& one) {
    return one["chart"]["id"] == "learning_rate";
  })) << "a learning rate that changes has a curve";
}

TEST_F(SiteTest, AnOpenEndedRunHasNoProgress) {
  write_cluster_run(runs_ + "/a");
  put_text(runs_ + "/a/config.yaml", "model: lr\nepochs: 0\nseconds: 60\n");
  EXPECT_TRUE(asked("/api/run/a")["progress"].is_null());
}

TEST_F(SiteTest, OnlyPicturesOfARunAreServed) {
  write_cluster_run(runs_ + "/a");
  put_text(dir_.path() + "/secret.png", "secret");
  for (const char* name : {"reconstruction-00000096.png", "reconstruction-00000032.png", "notes.txt", "plain.png"}) {
    put_text(runs_ + "/a/pictures/" + name, name);
  }
  fs::create_symlink(dir_.path() + "/secret.png", runs_ + "/a/pictures/linked-00000001.png");
  const json pictures = asked("/api/run/a")["pictures"];
  ASSERT_EQ(pictures.size(), 3U);
  EXPECT_EQ(pictures[2]["step"], 96);
  const http::Response shown = answer("/picture/a/reconstruction-00000096.png");
  EXPECT_EQ(shown.type, "image/png");
  EXPECT_EQ(shown.body, "reconstruction-00000096.png");
  for (const char* path : {"/picture/a/notes.txt", "/picture/a/plain.png", "/picture/a/linked-00000001.png",
                           "/picture/b/reconstruction-00000096.png", "/picture/a/..%2fconfig.yaml", "/picture/a"}) {
    EXPECT_EQ(answer(path).status, 404) << path;
  }
}

TEST_F(SiteTest, ARunSaysWhatItCanGoOnFrom) {
  write_cluster_run(runs_ + "/a");
  write_cluster_run(lab_ + "/study/runs/a");
  json run = asked("/api/run/a");
  EXPECT_EQ(run["folder"], runs_ + "/a");
  EXPECT_EQ(run["checkpoint"], false);
  EXPECT_EQ(run["experiment"], "");
  put_text(runs_ + "/a/checkpoints/step-100.ckpt", "x");
  EXPECT_EQ(asked("/api/run/a")["checkpoint"], true);
  EXPECT_EQ(asked("/api/run/study~a")["experiment"], "study");
}

TEST_F(SiteTest, ComparedRunsShowTheSettingsThatDiffer) {
  write_cluster_run(runs_ + "/a");
  write_cluster_run(runs_ + "/b");
  put_text(runs_ + "/b/config.yaml", "model: lr\ndataset: mnist\nbatch: 200\naccumulate: 1\nmode: sync\n");
  write_cluster_run(lab_ + "/study/runs/a");
  const json answer_json = asked("/api/compare?runs=a,b,gone,study~a&over=epoch");
  EXPECT_EQ(answer_json["missing"], json::array({"gone"}));
  const json table = answer_json["table"];
  ASSERT_EQ(table["runs"].size(), 3U);
  std::map<std::string, json> values;
  for (const json& row : table["settings"]) values[row["name"]] = row["values"];
  EXPECT_EQ(values.at("batch"), json::array({"100", "200", "100"}));
  EXPECT_FALSE(values.contains("mode"));
  const json series = answer_json["curves"]["charts"][0]["chart"]["series"];
  EXPECT_EQ(series[0]["name"], "a");
  EXPECT_EQ(series[2]["name"], "study~a") << "two runs of one name are told apart";
  EXPECT_EQ(answer("/api/compare").status, 400);
  EXPECT_EQ(answer("/api/compare?runs=").status, 400);
  std::string many;
  for (int i = 0; i < 20; ++i) many += fmt::format("r{},", i);
  EXPECT_EQ(answer("/api/compare?runs=" + many).status, 400);
}

TEST_F(SiteTest, NodesOfARunThatTrainsAreAliveOrSilent) {
  write_cluster_run(runs_ + "/a");
  fs::remove(runs_ + "/a/summary.json");
  fs::remove(runs_ + "/a/worker-1/summary.json");
  fs::remove(runs_ + "/a/ps-0/summary.json");
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  put_text(runs_ + "/a/monitor.csv", fmt::format("time,seconds,cpu_percent,node_cpu_percent\n{:.1f},1,90,55\n", now));
  put_text(runs_ + "/a/nodes.json", R"([{"node":"node1","address":"10.77.0.1","cores":0.5,"roles":["ps:0","worker:0"]},
                                       {"node":"node2","address":"10.77.0.2","cores":0.5,"roles":["worker:1"]}])");
  const std::string cut =
      R"({"seconds": 3, "fault": "cut node2 for 10s", "kind": "cut", "target": "node2", "ended": false})"
      "\n";
  put_text(runs_ + "/a/faults.jsonl", cut);
  const auto lock = base::LockFile::try_lock(runs_ + "/a/.lock");
  const json run = asked("/api/nodes")["runs"][0];
  EXPECT_EQ(run["faults"][0]["fault"], "cut node2 for 10s");
  ASSERT_EQ(run["nodes"].size(), 2U);
  EXPECT_EQ(run["nodes"][0]["cpu_percent"], 55);
  EXPECT_EQ(run["nodes"][0]["roles"][1]["state"], "alive");
  EXPECT_EQ(run["nodes"][0]["roles"][0]["state"], "starting") << "the server has recorded nothing yet";
  EXPECT_EQ(run["nodes"][1]["roles"][0]["state"], "silent") << "its last sample is old";
  EXPECT_EQ(run["nodes"][1]["state"], "cut") << "by the faults on schedule";
  put_text(
      runs_ + "/a/faults.jsonl",
      cut + R"({"seconds": 13, "fault": "node2 is back", "kind": "cut", "target": "node2", "ended": true})" + "\n");
  EXPECT_EQ(asked("/api/nodes")["runs"][0]["nodes"][1]["state"], "silent");
}

TEST_F(SiteTest, OnlyReportsOfTheLabAreServed) {
  put_text(lab_ + "/study/report.html", "<h1>report</h1>");
  put_text(dir_.path() + "/secret.html", "secret");
  fs::create_directories(lab_ + "/linked");
  fs::create_symlink(dir_.path() + "/secret.html", lab_ + "/linked/report.html");
  put_text(dir_.path() + "/elsewhere/report.html", "secret");
  fs::create_directory_symlink(dir_.path() + "/elsewhere", lab_ + "/away");
  EXPECT_EQ(answer("/report/study").body, "<h1>report</h1>");
  for (const char* path :
       {"/report/linked", "/report/away", "/report/none", "/report/..", "/report/%2e%2e%2felsewhere"}) {
    EXPECT_EQ(answer(path).status, 404) << path;
  }
}

TEST_F(SiteTest, ADamagedLabIsANotice) {
  put_text(lab_ + "/lab.sqlite", "this is no database");
  const json lab = asked("/api/experiments");
  EXPECT_EQ(lab["experiments"].size(), 0U);
  EXPECT_THAT(lab["notice"].get<std::string>(), HasSubstr("lab.sqlite"));
  EXPECT_EQ(asked("/api/runs")["runs"].size(), 0U);
}

}  // namespace
}  // namespace lockstep::dash
