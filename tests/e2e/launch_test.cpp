// `lockstep launch` with a real sshd on loopback: two hosts that are folders of this machine, and a program that
// simulates the roles, so that only the launching is tested.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "cluster/tar_files.h"
#include "e2e/sshd.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using Seconds = Process::Seconds;

bool alive(const std::string& pid) {
  const std::string stat = get_file("/proc/" + pid + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

/// Removes the end of a line.
std::string line_of(const std::string& path) {
  const std::string text = get_file(path);
  return text.substr(0, text.find('\n'));
}

class Launch : public SshTest {
 protected:
  void SetUp() override {
    SshTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* host : {"a", "b"}) fs::create_directories(folder / host);
    write_text(folder / "cluster.yaml",
               "nodes:\n  - host: 127.0.0.1\n    ssh: a\n    dir: " + (folder / "a") + "\n    roles: [ps]\n" +
                   "  - host: 127.0.0.2\n    ssh: b\n    dir: " + (folder / "b") + "\n    roles: [worker, worker]\n");
    // The program on the hosts: the real one, or a simulated role.
    write_text(folder / "program", "#!/bin/sh\n[ \"$1\" = under-launcher ] && exec " + program_path() + " \"$@\"\n" +
                                       "top=" + folder.path() + "\n" + kRole);
    chmod((folder / "program").c_str(), 0755);
  }
  void play(const std::string& script) const { write_text(folder / "play", script); }
  [[nodiscard]] Words words(const Words& more = {}) const {
    Words result{"launch", "--ssh", ssh(), "--program", folder / "program", "cluster.yaml",
                 "--",     "train", "lr",  "--dataset", "synthetic"};
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }
  /// Removes the collected files, then collects over an ssh that runs `scripts` when asked for a host's archive.
  [[nodiscard]] Words removing(const std::map<std::string, std::string>& scripts) const {
    std::string text = "#!/bin/sh\nfor last; do :; done\ncase $last in *' -cf - '*) for word; do case $word in\n";
    for (const auto& [host, script] : scripts) text += host + ") " + script + ";;\n";
    write_text(folder / "other-ssh", text + "esac; done;; esac\nexec " + ssh() + " \"$@\"\n");
    chmod((folder / "other-ssh").c_str(), 0755);
    Words result = words();
    result[2] = folder / "other-ssh";
    result.insert(result.begin() + 1, "--remove");
    return result;
  }
  /// Returns a script that answers with an archive.
  [[nodiscard]] std::string sends(const std::string& name, const std::vector<TarEntry>& entries) const {
    write_text(folder / name, make_tar(entries));
    return "exec cat " + (folder / name);
  }
  /// Expects the launch to fail with a line that says why, and all files to stay on the named hosts.
  void expect_kept(const Words& removing, const Words& hosts, const std::string& why) const {
    const Ended ended = run(removing);
    EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, HasSubstr(why));
    for (const std::string& host : hosts) {
      EXPECT_THAT(ended.err, HasSubstr("its files stay there in " + (folder / host) + "/runs/lr-1-"));
      int kept = 0;
      for (const auto& there : fs::directory_iterator(folder / (host + "/runs"))) {
        kept += fs::exists(there.path() / (host == "a" ? "ps-0/arguments" : "worker-0/arguments")) ? 1 : 0;
      }
      EXPECT_EQ(kept, 1) << host;
    }
    for (const auto& entry : fs::directory_iterator(folder / "runs/lr-1")) {
      EXPECT_THAT(entry.path().filename().string(), Not(StartsWith(".arriving")));
    }
  }
  [[nodiscard]] std::string pid(const std::string& role) const { return line_of(folder / (role + ".pid")); }
  void expect_nobody_left() const {
    for (const char* role : kRoles) {
      ASSERT_NE(pid(role), "") << role;
      EXPECT_TRUE(eventually([&] { return !alive(pid(role)); })) << role;
    }
  }
  /// Starts a launch whose roles wait, and returns once all are up.
  [[nodiscard]] std::unique_ptr<Process> start_waiting() const {
    auto process = std::make_unique<Process>(program_path(), words(), options());
    for (const char* role : kRoles) {
      EXPECT_TRUE(eventually([&] { return !pid(role).empty() && alive(pid(role)); })) << role;
    }
    return process;
  }

  static constexpr std::array<const char*, 3> kRoles{"ps-0", "worker-0", "worker-1"};

  // Finds out its role, writes its number and its arguments to files, and runs the test's script.
  static constexpr const char* kRole = R"sh(
for word in "$@"; do case $word in --run-dir=*|--resume=*) run=${word#*=};; esac; done
type=$(echo "$TF_CONFIG" | sed 's/.*"type":"\([a-z]*\)".*/\1/')
index=$(echo "$TF_CONFIG" | sed 's/.*"index":\([0-9]*\).*/\1/')
role=$type-$index
mkdir -p "$run/$role"
echo "$@" > "$run/$role/arguments"
echo $$ > "$top/$role.new" && mv "$top/$role.new" "$top/$role.pid"
. "$top/play"
)sh";
  static constexpr const char* kWait = "trap 'exit 130' INT; while :; do sleep 0.05; done\n";
};

TEST_F(Launch, RunsTheRolesShowsThemAndCollectsTheirFiles) {
  play(R"sh(
if [ $type = worker ]; then
  echo '{"event":"status","role":"'$type:$index'","step":7,"steps":9,"examples_per_s":100,"state":"training"}'
  if [ $index = 0 ]; then
    echo '{"event":"eval","step":9,"epoch":1,"loss":0.5,"accuracy":0.875,"best":true}'
    echo '{"steps":9,"seconds":2,"stop_reason":"steps","test_loss":0.5,"test_accuracy":0.875,"test_step":9,
           "workers":[{"role":"worker:0","iterations":5,"staleness_mean":1.5},{"role":"worker:1","iterations":4}]}' > "$run/summary.json"
  fi
  touch "$top/done-$index"
else
  echo '{"event":"log","level":"info","text":"all have joined"}'
  until [ -e "$top/done-0" ] && [ -e "$top/done-1" ]; do sleep 0.02; done
fi
)sh");
  const Ended ended = succeed(words({"--batch", "10"}));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("ps:0: all have joined"), HasSubstr("87.50 %"), HasSubstr("trained 9 steps"),
                               HasSubstr("worker:1           4"), HasSubstr("next:  lockstep eval runs/lr-1")));
  for (const char* role : {"ps-0", "worker-0", "worker-1"}) {
    const std::string arguments = line_of(folder / (std::string("runs/lr-1/") + role + "/arguments"));
    EXPECT_THAT(arguments, AllOf(StartsWith("train lr "), HasSubstr("--batch=10"), HasSubstr("--report=json"),
                                 HasSubstr("--run-dir=runs/lr-1-")));
  }
  EXPECT_EQ(summary("lr-1")["steps"], 9);
  EXPECT_EQ(fs::exists(folder / "runs/lr-1/config.yaml"), true);
}

TEST_F(Launch, AResumedRunGoesOnInItsFoldersOnTheHosts) {
  play("echo \"$run\" >> \"$run/$role/runs\"; exit 0\n");
  (void)run(words());
  const Words resume{"launch",       "--ssh", words()[2], "--program", folder / "program",
                     "cluster.yaml", "--",    "train",    "--resume",  "lr-1"};
  const Ended ended = run(resume);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(line_of(folder / "runs/lr-1/worker-1/arguments"), HasSubstr("--resume=runs/lr-1-"));
  const std::string runs = get_file(folder / "runs/lr-1/worker-1/runs");
  EXPECT_EQ(runs.substr(0, runs.size() / 2), runs.substr(runs.size() / 2)) << "the same folder twice";
}

TEST_F(Launch, AResumedRunGoesOnWithItsRolesOnOtherHosts) {
  const auto train = [this](const Words& what) {
    Words words{"launch", "--ssh", ssh(), "--program", program_path(), "cluster.yaml", "--", "train"};
    words.insert(words.end(), what.begin(), what.end());
    return run(words);
  };
  const Ended first = train({"lr", "--dataset", "synthetic", "--train-limit", "400", "--test-limit", "100", "--batch",
                             "10", "--epochs", "0", "--steps", "40"});
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  std::string text = get_file(folder / "cluster.yaml");
  text.replace(text.find("[ps]"), 4, "[worker]");
  text.replace(text.find("[worker, worker]"), 16, "[ps, worker]");
  write_text(folder / "cluster.yaml", text);
  fs::remove_all(folder / "b/runs");
  const Ended second = train({"--resume", "lr-1", "--steps", "80"});
  ASSERT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(summary("lr-1")["steps"], 80);
  EXPECT_EQ(get_file(folder / "runs/lr-1/steps.csv").find("\n1,"), std::string::npos) << "it began again";

  const std::string kept = get_file(folder / "runs/lr-1/summary.json");
  fs::remove_all(folder / "b/runs");
  const Ended finished = train({"--resume", "lr-1", "--steps", "80"});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("runs/lr-1 has already ended: trained 80 steps"));
  EXPECT_EQ(get_file(folder / "runs/lr-1/summary.json"), kept);
  EXPECT_FALSE(fs::exists(folder / "b/runs")) << "a role was started";
}

TEST_F(Launch, WhatWasCollectedCanBeRemovedFromTheHosts) {
  play("exit 0\n");
  Words removing = words();
  removing.insert(removing.begin() + 1, "--remove");
  EXPECT_EQ(run(removing).code, 0);
  EXPECT_TRUE(fs::exists(folder / "runs/lr-1/worker-1/arguments"));
  for (const char* host : {"a", "b"}) EXPECT_TRUE(fs::is_empty(folder / (std::string(host) + "/runs"))) << host;
}

TEST_F(Launch, NothingIsRemovedThatHasNotArrived) {
  play("exit 0\n");
  const std::string part = "tar -C " + (folder / "b") + "/runs/lr-1-* -cf - ./worker-1";
  expect_kept(removing({{"b", part + "; echo 'tar: ./worker-0: Cannot open' >&2; exit 2"}}), {"b"},
              "b: tar: ./worker-0: Cannot open");
  EXPECT_FALSE(fs::exists(folder / "runs/lr-1/worker-1")) << "part of a host is nothing";
  EXPECT_TRUE(fs::exists(folder / "runs/lr-1/ps-0/arguments"));
  EXPECT_TRUE(fs::is_empty(folder / "a/runs"));
}

TEST_F(Launch, AnArchiveWithoutSomeFilesHasNotArrived) {
  play("exit 0\n");
  expect_kept(removing({{"b", "exec tar -C " + (folder / "b") + "/runs/lr-1-* -cf - ./worker-1"}}), {"b"},
              "b: 1 of 2 files are missing or differ, first 'worker-0/arguments'");
}

TEST_F(Launch, AFileThatChangesAfterItsArchiveStays) {
  play("exit 0\n");
  const std::string there = (folder / "b") + "/runs/lr-1-*";
  expect_kept(removing({{"b", "tar -C " + there + " -cf - .; for file in " + there +
                                  "/worker-1/arguments; do echo more >> $file;" + " done; exit 0"}}),
              {"b"}, "b: 1 of 2 files are missing or differ, first 'worker-1/arguments'");
}

TEST_F(Launch, AHostCannotWriteOutsideItsFolder) {
  play("exit 0\n");
  fs::create_directories(folder / "outside");
  const std::string link = sends("link.tar", {{"x", "", '2', folder / "outside"}});
  const std::string through = sends("through.tar", {{"x/evil", "evil"}});
  expect_kept(removing({{"a", link}, {"b", through}}), {"a", "b"}, "a: its archive has 'x', a link");
  for (const char* name : {"../evil", "/evil"}) {
    const std::string path = name[0] == '/' ? (folder / "outside") + name : name;
    fs::remove_all(folder / "runs");
    fs::remove_all(folder / "a/runs");
    expect_kept(removing({{"a", sends("path.tar", {{path, "evil"}})}}), {"a"}, "a: its archive has '" + path);
  }
  EXPECT_TRUE(fs::is_empty(folder / "outside"));
  EXPECT_FALSE(fs::exists(folder / "runs/evil"));
}

TEST_F(Launch, AHostCannotReplaceTheLaunchersFilesOrFillTheDisk) {
  play("exit 0\n");
  expect_kept(removing({{"a", sends("own.tar", {{"launch-id", "runs"}})}}), {"a"},
              "'launch-id', a file of the launcher");
  EXPECT_THAT(get_file(folder / "runs/lr-1/launch-id"), StartsWith("runs/lr-1-"));
  fs::remove_all(folder / "runs");
  fs::remove_all(folder / "a/runs");
  write_text(folder / "huge.tar",
             tar_block({"huge", "", '0', "", "\x80" + std::string(5, '\0') + "\x7F" + std::string(5, '\0')}));
  expect_kept(removing({{"a", "cat " + (folder / "huge.tar") + " /dev/zero; exit 0"}}), {"a"},
              "a: its archive is too large: with 'huge' it has more than 68719476736 bytes");
}

TEST_F(Launch, AHostSendsOnlyFilesOfItsRoles) {
  play(R"sh(
cd "$run"
[ $role = worker-0 ] && echo '{"steps": 9}' > summary.json
if [ $role = ps-0 ]; then
  mkdir -p checkpoints worker-1 worker-7
  for file in config.yaml summary.json checkpoints/step-9.ckpt worker-1/steps.csv worker-7/steps.csv; do
    echo evil > $file
  done
fi
exit 0
)sh");
  expect_kept(
      removing({}), {"a"},
      "a: 5 of 6 files are not collected, because ps:0 does not write them; the first is 'checkpoints/step-9.ckpt'");
  EXPECT_TRUE(fs::exists(folder / "runs/lr-1/ps-0/arguments"));
  EXPECT_TRUE(fs::exists(folder / "runs/lr-1/worker-1/arguments"));
  for (const char* path : {"checkpoints/step-9.ckpt", "worker-1/steps.csv", "worker-7"}) {
    EXPECT_FALSE(fs::exists(folder / ("runs/lr-1/" + std::string(path)))) << path;
  }
  EXPECT_THAT(get_file(folder / "runs/lr-1/config.yaml"), HasSubstr("model: lr"));
  EXPECT_EQ(summary("lr-1")["steps"], 9);
  EXPECT_TRUE(fs::is_empty(folder / "b/runs")) << "what b sent is all its own";
}

TEST_F(Launch, HostsMayShareAFolder) {
  const std::string dir = folder / "a";
  write_text(folder / "cluster.yaml", "nodes:\n  - {host: 127.0.0.1, ssh: a, dir: " + dir + ", roles: [ps]}\n" +
                                          "  - {host: 127.0.0.2, ssh: b, dir: " + dir + ", roles: [worker, worker]}\n");
  play("cd \"$run\"; [ $role = worker-0 ] && echo '{\"steps\": 9}' > summary.json; exit 0\n");
  const Ended ended = run(removing({}));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  for (const char* role : {"ps-0", "worker-0", "worker-1"}) {
    EXPECT_TRUE(fs::exists(folder / ("runs/lr-1/" + std::string(role) + "/arguments"))) << role;
  }
  EXPECT_TRUE(fs::is_empty(folder / "a/runs")) << "removed once all is here";
}

TEST_F(Launch, AnyWorkerOfAnAllReduceMayHaveLed) {
  write_text(folder / "cluster.yaml",
             "nodes:\n  - {host: 127.0.0.1, ssh: a, dir: " + (folder / "a") + ", roles: [worker]}\n" +
                 "  - {host: 127.0.0.2, ssh: b, dir: " + (folder / "b") + ", roles: [worker]}\n");
  play("cd \"$run\"; mkdir -p checkpoints; touch checkpoints/$role.ckpt; exit 0\n");
  Words words = removing({});
  words.insert(words.end(), {"--strategy", "allreduce"});
  const Ended ended = run(words);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  for (const char* role : {"worker-0", "worker-1"}) {
    EXPECT_TRUE(fs::exists(folder / ("runs/lr-1/checkpoints/" + std::string(role) + ".ckpt"))) << role;
  }
}

TEST_F(Launch, TooFewOpenFilesAreNamedBeforeAnythingIsMade) {
  play("exit 0\n");
  ProcessOptions limited = options();
  for (const uint64_t files : {8, 16, 24, 31}) {
    limited.open_files = files;
    const Ended ended = lockstep(words(), limited);
    EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
    expect_one_line(ended.err);
    EXPECT_THAT(ended.err, HasSubstr("may open " + std::to_string(files) + " files, and a launcher of 3 roles needs"));
    EXPECT_FALSE(fs::exists(folder / "runs"));
  }
}

TEST_F(Launch, ADeadRoleIsNamedAndStartedAgain) {
  play(R"sh(
if [ $role != worker-1 ]; then while [ ! -e "$top/back" ]; do sleep 0.02; done; fi
if [ $role = worker-1 ]; then [ -e "$top/died" ] && touch "$top/back" || { touch "$top/died"; kill -9 $$; }; fi
exit 0
)sh");
  const Ended ended = run(words());
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("worker:1 died: exit code 137: killed by signal 9 (Killed); restarting it"));
}

TEST_F(Launch, CtrlCEndsEveryRole) {
  play(kWait);
  const auto process = start_waiting();
  process->signal(SIGINT);
  EXPECT_EQ(process->finish().code, 130);
  expect_nobody_left();
}

TEST_F(Launch, AKilledLauncherLeavesNobodyOnTheHosts) {
  play("trap '' INT TERM; (trap '' INT TERM; while :; do sleep 0.05; done) & " + std::string(kWait));
  const auto process = start_waiting();
  process->signal(SIGKILL);
  EXPECT_EQ(process->finish().code, 128 + SIGKILL);
  expect_nobody_left();
}

TEST_F(Launch, CtrlZStopsTheRolesOnTheHostsUntilItIsContinued) {
  play(kWait);
  const auto process = start_waiting();
  const auto all_stopped = [&](bool wanted) {
    return eventually([&] {
      return std::all_of(kRoles.begin(), kRoles.end(), [&](const char* role) {
        return (get_file("/proc/" + pid(role) + "/stat").find(") T ") != std::string::npos) == wanted;
      });
    });
  };
  process->signal(SIGTSTP);
  EXPECT_TRUE(all_stopped(true));
  process->signal(SIGCONT);
  EXPECT_TRUE(all_stopped(false));
  process->signal(SIGINT);
  EXPECT_EQ(process->finish().code, 128 + SIGINT);
  expect_nobody_left();
}

TEST_F(Launch, AHostThatCannotBeReachedIsOneClearLine) {
  play("exit 0\n");
  write_text(folder / "cluster.yaml", "nodes:\n  - {host: 127.0.0.1, ssh: nobody, roles: [ps, worker]}\n");
  const Ended ended = run(words());
  EXPECT_EQ(ended.code, 1);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err,
              HasSubstr("host nobody cannot be reached: ssh: connect to host 127.0.0.1 port 1: Connection refused"));
}

TEST_F(Launch, AProgramThatIsNotThereEndsTheJob) {
  fs::remove(folder / "program");
  const Ended ended = run(words());
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("program"), HasSubstr("No such file")));
}

TEST_F(Launch, WrongUsageIsFoundBeforeAnythingStarts) {
  EXPECT_THAT(fail(words({"--lr", "x"}), 2), HasSubstr("--lr"));
  EXPECT_THAT(fail(words({"--workers", "2"}), 2), HasSubstr("--workers"));
  EXPECT_THAT(fail({"launch", "cluster.yaml", "--", "eval", "lr-1"}, 2), HasSubstr("train MODEL"));
  EXPECT_THAT(fail({"launch", "nowhere.yaml", "--", "train", "lr"}, 1), HasSubstr("nowhere.yaml"));
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

}  // namespace
}  // namespace lockstep::testing
