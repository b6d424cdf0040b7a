// lockstep lab on the hosts of a cluster file: real trainings over a real sshd on loopback, whose hosts are addresses
// and folders of this machine.
#include <fmt/format.h>

#include <map>

#include "cluster/cluster_file.h"
#include "e2e/sshd.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kTiny =
    "name: tiny\n"
    "base: {model: lr, dataset: synthetic, train_limit: 500, test_limit: 100, epochs: 1, threads: 1, batch: 50}\n";

class LabHosts : public SshTest {
 protected:
  void SetUp() override {
    SshTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    put_cluster("cluster.yaml", {"a", "b"});
  }
  /// A server on the first host and a worker on each other host, in folders named after them.
  void put_cluster(const std::string& file, const Words& hosts) const {
    const std::string address = cluster::local_spec({.workers = 1, .ps = 1, .layout = {}}).ps.front();
    std::string text = fmt::format("port: {}\nnodes:\n", address.substr(address.find(':') + 1));
    for (size_t i = 0; i < hosts.size(); ++i) {
      fs::create_directories(folder / hosts[i]);
      text += fmt::format("  - {{host: 127.0.0.{}, ssh: {}, dir: {}, roles: {}}}\n", i + 1, hosts[i], folder / hosts[i],
                          i == 0 ? "ps" : "worker");
    }
    write_text(folder / file, text);
  }
  /// Returns a cluster of the experiment, reached through the test's hosts.
  [[nodiscard]] static std::string on(const std::string& file) {
    return fmt::format("{{hosts: {}, ssh: \"{}\", program: {}}}", file, ssh(), program_path());
  }
  void put(const std::string& text) const { write_text(folder / "tiny.yaml", text); }
  [[nodiscard]] json exported() const {
    return json::parse(succeed({"lab", "export", "tiny", "--to", "json", "--workers"}).out);
  }
  [[nodiscard]] std::map<std::string, json> runs() const {
    std::map<std::string, json> result;
    const json all = exported();
    for (const json& run : all["runs"]) result[run["label"]] = run;
    return result;
  }
};

TEST_F(LabHosts, RunsAnExperimentAndBringsItsRecordsHome) {
  put(kTiny + "warm_up: 1\ncases:\n  - {label: here}\n  - {label: hosts, mode: sync, cluster: " + on("cluster.yaml") +
      "}\n");
  const Ended ended = succeed({"lab", "run", "tiny.yaml"});
  EXPECT_THAT(ended.out, AllOf(HasSubstr("2 runs done"), HasSubstr("report: lab/tiny/report.html")));
  const json run = runs()["hosts"];
  EXPECT_EQ(run["state"], "done");
  EXPECT_EQ(run["hosts"], "cluster.yaml");
  ASSERT_EQ(run["roles"].size(), 2U);
  EXPECT_GT(run["measured"]["accuracy"], 0.2);
  EXPECT_EQ(run["measured"]["steps"], 10);
  EXPECT_GT(run["measured"]["network_per_step"], 1000);
  EXPECT_GT(run["measured"]["ps_memory"], 1e6);
  const std::string folder_here = folder / run["folder"].get<std::string>();
  for (const char* file : {"summary.json", "config.yaml", "monitor.csv", "evals.csv", "ps-0/monitor.csv"}) {
    EXPECT_TRUE(fs::exists(folder_here + "/" + file)) << file;
  }
  EXPECT_THAT(succeed({"show", folder_here}).out, HasSubstr("worker:0"));
  for (const char* host : {"a", "b"}) {
    EXPECT_TRUE(fs::is_empty(folder / (std::string(host) + "/runs"))) << "what nobody would go on with";
  }
  const std::string page = get_file(folder / "lab/tiny/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<dt>Hosts</dt>"), HasSubstr("(cluster.yaml)")));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("0 runs done, 2 done before"));
}

TEST_F(LabHosts, OneThatCannotBeReachedIsAFailedRunAndTheRestGoesOn) {
  put_cluster("gone.yaml", {"a", "nobody"});
  put(kTiny + "cases:\n  - {label: gone, cluster: " + on("gone.yaml") +
      "}\n  - {label: hosts, cluster: " + on("cluster.yaml") + "}\n  - {label: here}\n");
  const Ended ended = run({"lab", "run", "tiny.yaml"});
  EXPECT_EQ(ended.code, 1);
  expect_one_line(ended.err);
  const std::string reason = "host nobody cannot be reached: ssh: connect to host 127.0.0.1 port 1: Connection refused";
  EXPECT_THAT(ended.out, AllOf(HasSubstr("failed: "), HasSubstr(reason), HasSubstr("2 runs done, 1 failed")));
  const auto all = runs();
  EXPECT_EQ(all.at("gone")["state"], "failed");
  EXPECT_THAT(all.at("gone")["reason"].get<std::string>(), HasSubstr(reason));
  EXPECT_EQ(all.at("hosts")["state"], "done");
  EXPECT_EQ(all.at("here")["state"], "done");
  EXPECT_THAT(get_file(folder / "lab/tiny/report.html"), HasSubstr(reason));
  // Other hosts make another training.
  put_cluster("gone.yaml", {"a", "b"});
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml"}).out, HasSubstr("1 run done, 2 done before"));
}

TEST_F(LabHosts, AProgramThatIsNotThereIsAFailedRun) {
  put(kTiny + fmt::format("cluster: {{hosts: cluster.yaml, ssh: \"{}\", program: {}}}\n", ssh(), folder / "nothing"));
  EXPECT_EQ(run({"lab", "run", "tiny.yaml"}).code, 1);
  EXPECT_THAT(exported()["runs"][0]["reason"].get<std::string>(),
              AllOf(HasSubstr("nothing"), HasSubstr("No such file")));
}

TEST_F(LabHosts, WhatDoesNotGoWithTheClusterFileIsFoundBeforeAnythingRuns) {
  const auto refusal = [&](const std::string& rest) {
    put(kTiny + rest);
    return fail({"lab", "run", "tiny.yaml"}, 2);
  };
  EXPECT_THAT(refusal("cluster: {hosts: nowhere.yaml}\n"), AllOf(HasSubstr("tiny.yaml:3"), HasSubstr("nowhere.yaml")));
  EXPECT_THAT(refusal("cases: [{workers: 2, cluster: {hosts: cluster.yaml}}]\n"),
              HasSubstr("workers: the cluster file"));
  EXPECT_THAT(refusal("cases: [{strategy: allreduce, cluster: {hosts: cluster.yaml}}]\n"),
              HasSubstr("allreduce has no parameter servers"));
  EXPECT_THAT(refusal("cluster: {ssh: ssh -p 22}\n"), HasSubstr("ssh applies only to hosts"));
  write_text(folder / "far.yaml", "nodes: [{host: far.example, roles: [ps, worker]}]\n");
  EXPECT_THAT(refusal("cluster: {hosts: far.yaml}\n"), HasSubstr("--tls"));
  EXPECT_FALSE(fs::exists(folder / "lab"));
}

TEST_F(LabHosts, LocalTakesTheRolesOfTheClusterFile) {
  put(kTiny + "cases: [{tls: keys, cluster: " + on("cluster.yaml") + "}]\n");
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--dry-run"}).out, HasSubstr("hosts of cluster.yaml"));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--dry-run", "--local"}).out, HasSubstr("P-W, sync"));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--local"}).out, HasSubstr("1 run done"))
      << "without the keys, which are on the hosts";
}

TEST_F(LabHosts, ThePlanKnowsTheRolesOfTheClusterFileWhateverTheBaseSays) {
  write_text(folder / "equals.yaml", "nodes: [{host: 127.0.0.1, roles: worker}, {host: 127.0.0.2, roles: worker}]\n");
  put("name: tiny\nbase: {model: lr, dataset: synthetic, epochs: 9, workers: 3, ps: 2}\ncases:\n"
      "  - {label: here}\n  - {label: equals, cluster: {hosts: equals.yaml}}\n"
      "  - {label: served, cluster: {hosts: cluster.yaml}}\n");
  const std::string plan = succeed({"lab", "run", "tiny.yaml", "--dry-run"}).out;
  EXPECT_THAT(plan, AllOf(HasSubstr("3 workers, 2 servers, sync"), HasSubstr("hosts of equals.yaml, all-reduce"),
                          HasSubstr("hosts of cluster.yaml, sync")));
  EXPECT_THAT(succeed({"lab", "run", "tiny.yaml", "--dry-run", "--local"}).out,
              AllOf(HasSubstr("W-W, all-reduce"), HasSubstr("P-W, sync")));
}

TEST_F(LabHosts, AnyProgramRunsOnHostsAndItsFilesComeHome) {
  const char* source = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  ASSERT_NE(source, nullptr);
  const std::string program = fmt::format("python3 {}/tests/e2e/guest_program.py", source);
  write_text(folder / "two.yaml",
             fmt::format("nodes:\n  - {{host: 127.0.0.1, ssh: a, dir: {0}/a, roles: [ps, worker]}}\n"
                         "  - {{host: 127.0.0.2, ssh: b, dir: {0}/b, roles: worker}}\n",
                         folder.path()));
  write_text(folder / "one.yaml",
             fmt::format("nodes: [{{host: 127.0.0.1, ssh: a, dir: {}/a, roles: worker}}]\n", folder.path()));
  write_text(folder / "gone.yaml", "nodes: [{host: 127.0.0.1, ssh: nobody, roles: worker}]\n");
  put("name: tiny\nretries: 0\nbase: {monitor_every: 0.05}\ngroups:\n  - name: all\n    deadline: 60s\n"
      "    figures: {epoch: 'epoch (\\d+)', accuracy: 'accuracy ([0-9.]+)'}\n    cases:\n" +
      fmt::format("      - label: two\n        command: \"{} train --csv '{{run_dir}}/log.csv'\"\n"
                  "        figures: {{train_loss: {{csv: '{{run_dir}}/log.csv', column: val_loss}}}}\n"
                  "        cluster: {}\n",
                  program, on("two.yaml")) +
      fmt::format("      - {{label: leaves, command: {} leave --note {}/note.json, cluster: {}}}\n", program,
                  folder.path(), on("one.yaml")) +
      fmt::format("      - {{label: gone, command: {} train, cluster: {}}}\n", program, on("gone.yaml")));
  const Ended ended = run({"lab", "run", "tiny.yaml"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out, HasSubstr("2 runs done, 1 failed"));
  EXPECT_THAT(ended.err, AllOf(HasSubstr("left processes behind, which were ended: python3 ("), HasSubstr(" on a")));
  auto all = runs();
  EXPECT_EQ(all.at("two")["measured"]["accuracy"], 0.53);
  EXPECT_THAT(all.at("two")["measured"]["train_loss"].get<double>(), ::testing::DoubleNear(2.0 / 3, 1e-6));
  EXPECT_GT(all.at("two")["measured"]["memory"], 1e6);
  ASSERT_EQ(all.at("two")["roles"].size(), 3U);
  const std::string here = folder / all.at("two")["folder"].get<std::string>();
  EXPECT_THAT(get_file(here + "/output.log"), HasSubstr("received 1048576, "));
  for (const char* file : {"log.csv", "monitor.csv", "worker-1/monitor.csv", "ps-0/monitor.csv"}) {
    EXPECT_TRUE(fs::exists(here + "/" + file)) << file;
  }
  EXPECT_EQ(::kill(json::parse(get_file(folder / "note.json"))["pid"].get<pid_t>(), 0), -1);
  EXPECT_THAT(all.at("gone")["reason"].get<std::string>(), AllOf(HasSubstr("host nobody: "), HasSubstr("refused")));
  for (const char* host : {"a", "b"}) EXPECT_TRUE(fs::is_empty(folder / (std::string(host) + "/runs"))) << host;
}

TEST_F(LabHosts, FaultsOnScheduleHitTheRolesOfHosts) {
  const std::string cluster = on("cluster.yaml");
  const auto with = [&](const std::string& fault) {
    put("name: tiny\nbase: {model: lr, dataset: synthetic, train_limit: 500, test_limit: 100, epochs: 0, seconds: 3, "
        "threads: 1, batch: 50, eval_every: 100000}\ncases: [{mode: async, cluster: " +
        cluster.substr(0, cluster.size() - 1) + ", faults: [" + fault + "]}}]\n");
  };
  with("at 1s cut node1 for 1s");
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml"}, 2), AllOf(HasSubstr("tiny.yaml:3"), HasSubstr("needs emulate")));
  with("at 1s kill worker:4");
  EXPECT_THAT(fail({"lab", "run", "tiny.yaml"}, 2), HasSubstr("the run has no worker:4"));
  with("at 0.5s stop ps:0 for 0.3s, at 1.5s kill worker:0");
  (void)succeed({"lab", "run", "tiny.yaml"});
  const json run = exported()["runs"][0];
  EXPECT_EQ(run["state"], "done");
  const std::string faults = get_file(folder / (run["folder"].get<std::string>() + "/faults.jsonl"));
  EXPECT_THAT(faults, AllOf(HasSubstr("\"stop\""), HasSubstr("ps:0 goes on"), HasSubstr("kill worker:0\"")));
  EXPECT_THAT(get_file(folder / ("lab/tiny/logs/" + run["key"].get<std::string>() + ".log")),
              AllOf(HasSubstr("worker:0 died: "), HasSubstr("killed by signal 9")));
}

}  // namespace
}  // namespace lockstep::testing
