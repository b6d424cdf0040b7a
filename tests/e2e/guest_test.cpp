// Any program in the lab: figures, usage and failures of a program that is not ours, with real processes.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>

#include "e2e/sshd.h"
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;

class Guest : public ProgramTest {
 protected:
  void SetUp() override {
    const char* source = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
    ASSERT_NE(source, nullptr);
    std::filesystem::copy_file(std::string(source) + "/tests/e2e/guest_program.py", folder / "program.py");
  }
  void put(const std::string& text) const {
    put_file(folder / "guests.yaml", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  [[nodiscard]] std::map<std::string, json> runs() const {
    std::map<std::string, json> result;
    const json all = json::parse(succeed({"lab", "export", "guests", "--to", "json", "--workers"}).out);
    for (const json& run : all["runs"]) result[run["label"]] = run;
    return result;
  }
};

const std::string kGroup = R"(name: guests
retries: 0
base: {seed: 1, monitor_every: 0.05}
groups:
  - name: all
    deadline: 60s
    figures:
      epoch: 'epoch (\d+)'
      step: 'step (\d+)'
      loss: 'loss ([0-9.]+)'
      accuracy: 'accuracy ([0-9.]+)'
    cases:
)";

bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int reuse = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const bool is_free = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return is_free;
}

TEST_F(Guest, FiguresAndUseOfAProgramStandBesideATraining) {
  put(kGroup + R"(      - label: theirs
        workers: 2
        ps: 1
        batch: 20
        epochs: 4
        command: python3 program.py train --batch {batch} --epochs {epochs} --csv '{run_dir}/log.csv'
        figures:
          train_loss: {csv: '{run_dir}/log.csv', column: val_loss}
          examples_per_second: '(\d+) examples per second'
      - {label: ours, model: lr, dataset: synthetic, train_limit: 500, test_limit: 100, epochs: 2, threads: 1}
report:
  tables: [{name: both, rows: [label], columns: [accuracy, loss, examples_per_second, memory]}]
  plots: [{name: curves, kind: curves, x: epoch, y: [accuracy, loss], series: [label]}]
  findings: [{name: better, says: Theirs is better., tests: [{compare: accuracy, first: {label: theirs}, second: {label: ours}, is: greater}]}]
)");
  const Ended ended = succeed({"lab", "run", "guests.yaml"});
  EXPECT_THAT(ended.out, HasSubstr("2 runs done"));
  const json run = runs()["theirs"];
  const json& measured = run["measured"];
  EXPECT_EQ(run["settings"]["batch"], "20");
  EXPECT_EQ(measured["accuracy"], 0.54);
  EXPECT_EQ(measured["loss"], 0.5);
  EXPECT_EQ(measured["train_loss"], 0.5);
  EXPECT_EQ(measured["steps"], 12);
  EXPECT_EQ(measured["epochs"], 4);
  EXPECT_EQ(measured["examples_per_second"], 20000);
  EXPECT_GT(measured["memory"], 1e6);
  ASSERT_EQ(run["roles"].size(), 3U);
  for (const json& role : run["roles"]) {
    EXPECT_EQ(role["measured"].value("accuracy", 0.54), role["role"] == "worker:1" ? 0.541 : 0.54);
  }
  const std::string place = folder / run["folder"].get<std::string>();
  EXPECT_THAT(get_file(place + "/evals.csv"), AllOf(StartsWith("step,epoch,seconds,loss,accuracy\n3,1,"),
                                                    HasSubstr("\n12,4,"), EndsWith(",0.5,0.54\n")));
  EXPECT_THAT(get_file(place + "/output.log"), HasSubstr("received 1048576, "));
  EXPECT_THAT(get_file(place + "/ps-0/monitor.csv"), StartsWith("time,seconds,cpu_percent"));
  EXPECT_THAT(get_file(folder / "lab/guests/report.html"), AllOf(HasSubstr("theirs"), HasSubstr("ours")));
  EXPECT_THAT(succeed({"lab", "run", "guests.yaml"}).out, HasSubstr("0 runs done, 2 done before"));
}

TEST_F(Guest, ProgramsThatHangDieOrLeaveProcessesEndAndTheOtherRunsGoOn) {
  put(kGroup + R"(      - {label: hangs, workers: 2, deadline: 1s, command: python3 program.py hang}
      - {label: dies, workers: 2, command: python3 program.py die}
      - {label: leaves, command: "python3 program.py leave --note note.json"}
      - {label: silent, command: "sh -c 'echo nothing of interest'"}
      - {label: missing, command: ./no-such-program}
      - {label: killed, workers: 2, command: python3 program.py hang, cluster: {faults: at 0.3s kill worker:1}}
      - {label: stopped, workers: 2, command: python3 program.py train, cluster: {faults: at 0.1s stop worker:1 for 1s}}
      - {label: last, command: python3 program.py train}
)");
  const Ended ended = run({"lab", "run", "guests.yaml"});
  EXPECT_EQ(ended.code, 1);
  const std::vector<std::string> said = lines_of(ended.err);
  ASSERT_EQ(said.size(), 2U) << ended.err;
  EXPECT_THAT(said[0], StartsWith("lockstep: warning: the program left processes behind, which were ended: python3 ("));
  EXPECT_THAT(said[1], StartsWith("lockstep: 5 of 8 runs failed"));
  auto all = runs();
  const auto reason = [&](const char* label) { return all[label]["reason"].get<std::string>(); };
  EXPECT_EQ(reason("hangs"), "worker:0, worker:1 still ran at the deadline of 1 s");
  EXPECT_EQ(reason("dies"), "worker:1: exit code 1: this program has a fault");
  EXPECT_THAT(reason("silent"),
              AllOf(HasSubstr("process: reported no epoch, no step, no loss, no accuracy"), HasSubstr("output.log")));
  EXPECT_THAT(reason("missing"), AllOf(HasSubstr("no-such-program"), HasSubstr("No such file")));
  EXPECT_THAT(reason("killed"), AllOf(StartsWith("worker:1: killed by signal 9"), HasSubstr("at 0.3s kill worker:1")));
  EXPECT_EQ(all["stopped"]["state"], "done");
  EXPECT_THAT(get_file(folder / all["stopped"]["folder"].get<std::string>() + "/faults.jsonl"),
              HasSubstr("worker:1 goes on"))
      << "it could not end before";
  EXPECT_EQ(all["last"]["state"], "done");
  EXPECT_EQ(all["leaves"]["state"], "done");
  EXPECT_EQ(all["leaves"]["measured"]["accuracy"], 0.75);
  const json note = json::parse(get_file(folder / "note.json"));
  EXPECT_EQ(::kill(note["pid"].get<pid_t>(), 0), -1);
  EXPECT_TRUE(is_free(note["port"].get<int>()));
}

TEST_F(Guest, NothingOfAProgramIsLeftWhenTheLabIsKilled) {
  put(kGroup + "      - {label: stays, command: \"python3 program.py stay --note note.json\"}\n");
  Process lab(program_path(), {"lab", "run", "guests.yaml"}, options());
  const auto note = [&] { return get_file(folder / "note.json"); };
  ASSERT_TRUE(eventually([&] { return note().ends_with("}"); }));
  const auto daemon = json::parse(note())["pid"].get<pid_t>();
  EXPECT_EQ(::kill(daemon, 0), 0);
  lab.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return ::kill(daemon, 0) != 0; })) << "its session was its own";
}

TEST_F(Guest, OnEmulatedNodesEveryRoleHasItsOwnNode) {
  if (const std::string why = why_not("emulate"); !why.empty()) GTEST_SKIP() << why;
  const Ended ended =
      run({"guest", "--layout=P-W-W", "--emulate=cores=0.3", "--run-dir=there",
           "--figure=accuracy=output:accuracy ([0-9.]+)", "--", "python3", "program.py", "train", "--epochs", "2"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  const json nodes = json::parse(get_file(folder / "there/nodes.json"));
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[1]["roles"][0], "worker:0");
  EXPECT_EQ(json::parse(get_file(folder / "there/summary.json"))["host"], "node2");
  EXPECT_EQ(get_file(folder / "there/hosts"), "10.77.0.2 slots=1\n10.77.0.3 slots=1\n");
  EXPECT_THAT(get_file(folder / "there/output.log"), HasSubstr("received 1048576, "));
  EXPECT_THAT(get_file(folder / "there/worker-1/monitor.csv"), HasSubstr("eth0_sent"));
}

TEST_F(Guest, WrongUseIsOneLine) {
  EXPECT_THAT(fail({"guest", "--run-dir=x", "--figure=accuracy=line:x", "--", "true"}, 2),
              HasSubstr("figure 'accuracy=line:x': it takes FIGURE=SOURCE"));
  EXPECT_THAT(fail({"guest", "--run-dir=x", "--deadline=soon", "--", "true"}, 2), HasSubstr("--deadline: 'soon'"));
  EXPECT_THAT(fail({"guest", "--run-dir=x", "--", "echo", "{bach}", "{rank}"}, 2), HasSubstr("'{bach}'"));
  EXPECT_THAT(fail({"guest", "--run-dir=x"}, 2), HasSubstr("lockstep guest"));
  EXPECT_THAT(fail({"guest", "--workers=2", "--run-dir=y", "--faults=at 1s kill worker:7", "--", "true"}, 2),
              HasSubstr("faults: 'kill worker:7': there is no worker:7"));
}

}  // namespace
}  // namespace lockstep::testing
