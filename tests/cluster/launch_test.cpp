// Commands that start the processes of a cluster, here and over ssh, and the far end of an ssh connection.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/cores.h"
#include "base/parallel.h"
#include "cluster/cluster_file.h"
#include "cluster/processes.h"
#include "cluster/tf_config.h"
#include "launch/local_launch.h"
#include "launch/mpi_launch.h"
#include "launch/ssh_launch.h"

namespace lockstep::testing {
namespace {

using cluster::Role;
using cluster::Spec;
using cluster::Task;
using process::Child;
using process::Stream;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Spec small() {
  Spec spec;
  spec.workers = {"127.0.0.1:21000", "[::1]:21001"};
  spec.ps = {"127.0.0.1:21002"};
  spec.evaluator = {"127.0.0.1:21003"};
  return spec;
}

TEST(LocalLaunch, ItsClusterFileReadsBackAsTheSameSpec) {
  EXPECT_EQ(cluster::parse_cluster_file(launch::cluster_yaml(small()), "cluster.yaml").spec, small());
}

TEST(LocalLaunch, TheCoresAreSharedByTheWorkers) {
  EXPECT_EQ(launch::share_cores(16, small()).worker_threads, 8);
  EXPECT_EQ(launch::share_cores(1, small()).worker_threads, 1);
  EXPECT_EQ(launch::share_cores(16, small(), 3).worker_threads, 3);
}

TEST(LocalLaunch, ThreadsMaySpinOnlyWhereAllHaveACore) {
  EXPECT_FALSE(launch::share_cores(2, small()).all_fit);
  EXPECT_FALSE(launch::share_cores(16, small()).all_fit) << "the server and the evaluator have threads too";
  EXPECT_TRUE(launch::share_cores(16, small(), 7).all_fit);
  launch::LocalJob job{small(), "/proc/self/exe", "lockstep", {"train", "lr"}, "c.yaml", {1, false}};
  EXPECT_THAT(launch::local_roles(job)[0].command.argv, Contains("--wait-policy=block"));
  job.wait_policy = "spin";
  EXPECT_THAT(launch::local_roles(job)[0].command.argv, Contains("--wait-policy=spin"));
}

TEST(LocalLaunch, MembersThatTakeAllCoresAreEachKeptToTheirOwn) {
  Spec workers;
  for (int i = 0; i < base::available_cores(); ++i) workers.workers.push_back(fmt::format("127.0.0.1:{}", 21000 + i));
  launch::LocalJob job{workers,         "/proc/self/exe", "lockstep",
                       {"train", "lr"}, "c.yaml",         launch::share_cores(base::available_cores(), workers)};
  std::vector<int> cores;
  for (const launch::RoleProcess& role : launch::local_roles(job)) {
    ASSERT_EQ(role.command.cores.size(), 1U);
    cores.push_back(role.command.cores.front());
  }
  EXPECT_EQ(cores, base::share_of_cores(0, 1));
  job.shares = launch::share_cores(base::available_cores() + 1, workers, 1);
  EXPECT_TRUE(launch::local_roles(job)[0].command.cores.empty()) << "a core is free: they may move";
  job.shares = launch::share_cores(base::available_cores(), workers, 2);
  EXPECT_TRUE(launch::local_roles(job)[0].command.cores.empty()) << "more threads than cores";
}

TEST(LocalLaunch, MembersAreKeptApartWhereAllHaveAsManyCores) {
  Spec members;
  members.workers.resize(4);
  EXPECT_TRUE(launch::share_cores(16, members, 4).apart);
  EXPECT_TRUE(launch::share_cores(16, members, 3).apart) << "a core each is left for their other threads";
  EXPECT_FALSE(launch::share_cores(18, members, 4).apart) << "two would have more than the others";
  EXPECT_FALSE(launch::share_cores(16, members, 5).apart) << "more threads than cores";
  EXPECT_TRUE(launch::share_cores(8, members, 2, 16).apart) << "the quota allows half of the cores";
  EXPECT_FALSE(launch::share_cores(8, members, 2, 18).apart) << "two would have more than the others";
  members.ps.resize(1);
  EXPECT_FALSE(launch::share_cores(16, members, 3).apart) << "the server needs cores, too";
  members.workers.resize(1);
  members.ps.clear();
  EXPECT_FALSE(launch::share_cores(16, members, 3).apart) << "one process may move";
}

TEST(LocalLaunch, EveryRoleIsTheSameProgramWithItsTask) {
  const launch::LocalJob job{small(), "/proc/self/exe", "lockstep", {"train", "lr"}, "c.yaml", {4, true}};
  const std::vector<launch::RoleProcess> roles = launch::local_roles(job);
  ASSERT_EQ(roles.size(), 4U);
  EXPECT_EQ(roles[0].task, (Task{Role::ps, 0}));
  EXPECT_THAT(roles[0].command.argv, ElementsAre("lockstep", "train", "lr", "--cluster=c.yaml", "--task=ps:0",
                                                 "--report=json", "--threads=1", "--wait-policy=auto"));
  EXPECT_THAT(roles[2].command.argv, AllOf(Contains("--task=worker:1"), Contains("--threads=4")));
}

TEST(MpiLaunch, IsOneMpirunForAllWorkers) {
  Spec workers;
  workers.workers = {"127.0.0.1:21000", "127.0.0.1:21001", "127.0.0.1:21002"};
  const launch::LocalJob job{workers, "/opt/lockstep", "lockstep", {"train", "lr"}, "c.yaml", {4, true}};
  const launch::RoleProcess process = launch::mpi_job(job, {{"SLURM_JOB_ID", "7"}, {"PATH", "/bin"}});
  EXPECT_EQ(process.name(), "mpirun");
  std::string words;
  for (const std::string& word : process.command.argv) words += word + " ";
  EXPECT_THAT(words, HasSubstr("-n 3 /opt/lockstep train lr --report=json --threads=4 --wait-policy=auto "));
  EXPECT_THAT(words, AllOf(Not(HasSubstr("--task")), Not(HasSubstr("--cluster"))));
  EXPECT_THAT(process.command.environment, AllOf(Contains(std::pair<std::string, std::string>("SLURM_JOB_ID", "")),
                                                 Not(Contains(std::pair<std::string, std::string>("PATH", "")))));
}

TEST(ResumeCommand, StartsWhatTheUserStarted) {
  const cluster::Environment mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(launch::resume_command(mpi, "lockstep", "runs/lenet-3"),
            "mpirun -n 4 lockstep train --resume runs/lenet-3");
  cluster::Environment slurm{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", "n[1-2]"}};
  EXPECT_EQ(launch::resume_command(slurm, "lockstep", "my runs/a", "--insecure"),
            "srun -n 2 lockstep train --resume 'my runs/a' --insecure");
  slurm["PMIX_RANK"] = "1";
  EXPECT_THAT(launch::resume_command(slurm, "lockstep", "a"), HasSubstr("srun --mpi=pmix -n 2 lockstep"));
  EXPECT_EQ(launch::resume_command({}, "lockstep", "a"), "lockstep train --resume a");
}

TEST(SshLaunch, QuotesWhatAShellWouldObey) {
  const std::string odd = "it's $HOME; `rm` \"x\" \\ \n*";
  process::Command command;
  command.argv = {"sh", "-c", "printf %s " + launch::shell_quoted(odd) + " | od -An -c | tr -d '\\n'"};
  Child child(command);
  std::string seen;
  EXPECT_TRUE(eventually([&] { return child.reap().has_value(); }));
  child.read_rest(Stream::out, [&](const std::string& line) { seen += line; });
  EXPECT_THAT(seen, AllOf(HasSubstr("i   t   '   s       $   H   O   M   E   ;"), HasSubstr("\\n   *")));
}

TEST(SshLaunch, ARoleLearnsItsClusterFromTfConfig) {
  const auto config = cluster::parse_tf_config(launch::tf_config_text(small(), {Role::worker, 1}));
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->spec, small());
  EXPECT_EQ(config->task, (Task{Role::worker, 1}));
}

TEST(SshLaunch, EachRoleRunsInTheFolderOfItsHostUnderTheFarEnd) {
  launch::SshJob job;
  job.cluster = cluster::parse_cluster_file(
      "nodes:\n  - {host: a, ssh: me@gate, dir: /data/x, roles: [ps, worker]}\n  - {host: b, roles: [worker]}\n", "f");
  job.program = "/opt/lockstep";
  job.words = {"train", "lr"};
  job.run_dir = "runs/lr-1-abc";
  const std::vector<launch::RoleProcess> roles = launch::ssh_roles(job);
  ASSERT_EQ(roles.size(), 3U);
  EXPECT_TRUE(roles[0].remote);
  EXPECT_THAT(roles[0].command.argv, AllOf(Contains("BatchMode=yes"), Contains("me@gate")));
  EXPECT_THAT(roles[0].command.argv.back(), AllOf(HasSubstr("/data/x"), HasSubstr("under-launcher -- "),
                                                  HasSubstr("--run-dir=runs/lr-1-abc"), HasSubstr("--threads=1")));
  EXPECT_THAT(roles[1].command.argv.back(), HasSubstr("--wait-policy=block"));
  EXPECT_THAT(roles[2].command.argv.back(), AllOf(Not(HasSubstr("--wait-policy")), Not(HasSubstr("cd "))));
  EXPECT_EQ(launch::ssh_collections(job).back().host, "me@gate") << "the chief's files stand";
}

/// Starts the helper as the far end of a launcher, which this test plays.
process::Command far_end(const Words& words, const std::string& silence = "100000") {
  Words all{"under"};
  all.insert(all.end(), words.begin(), words.end());
  process::Command command = helper(all);
  command.hold_stdin = true;
  command.environment = {{"LOCKSTEP_SILENCE", silence}};
  return command;
}

/// Reads until the first line is complete.
std::string first_line(Child& child) {
  std::string first;
  EXPECT_TRUE(eventually([&] {
    child.read(Stream::out, [&](const std::string& line) { first = first.empty() ? line : first; });
    return !first.empty();
  }));
  return first;
}

int code_of(Child& child) {
  std::optional<process::Ending> ending;
  EXPECT_TRUE(eventually([&] { return (ending = child.reap()).has_value(); }));
  return ending ? ending->code() : -1;
}

TEST(UnderLauncher, PassesOnTheExitCodeAndTheOutput) {
  Child child(far_end({"out=hello", "exit=5"}));
  EXPECT_EQ(first_line(child), "hello");
  EXPECT_EQ(code_of(child), 5);
}

TEST(UnderLauncher, PassesALineOnToTheRole) {
  Child child(far_end({"echo"}));
  child.write("\ntell register 1 won held 1 1 0:1\n");
  EXPECT_EQ(first_line(child), "register 1 won held 1 1 0:1");
}

TEST(UnderLauncher, WordsBecomeSignals) {
  Child child(far_end({"on=2:33", "out=up", "wait"}));
  first_line(child);
  child.write("\nint\n");
  EXPECT_EQ(code_of(child), 33);
  Child other(far_end({"ignore=2", "ignore=15", "out=up", "wait"}));
  first_line(other);
  other.write("term\nint\nkill\n");
  EXPECT_EQ(code_of(other), 128 + SIGKILL);
}

TEST(UnderLauncher, APausedCommandMayBeStoppedForLong) {
  process::Command command = far_end({"on=2:33", "pid", "wait"});
  command.environment.emplace_back("LOCKSTEP_STOPPED", "0");  // another stopped command is killed at the second look
  Child child(command);
  const pid_t role = number_in(first_line(child));
  child.write("pause\n");
  EXPECT_TRUE(eventually([&] { return is_stopped(role); }));
  for (int i = 0; i < 20; ++i) {  // each line causes a look
    child.write("\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  child.write("resume\nint\n");
  EXPECT_EQ(code_of(child), 33);
}

TEST(UnderLauncher, TheEndOfItsInputEndsAll) {
  Child child(far_end({"ignore=2", "ignore=15", "fork", "wait"}));
  const pid_t grandchild = number_in(first_line(child));
  EXPECT_TRUE(alive(grandchild));
  child.close_input();
  EXPECT_EQ(code_of(child), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

TEST(UnderLauncher, ALauncherThatIsSilentTooLongIsGone) {
  Child child(far_end({"pid", "wait"}));
  const pid_t role = number_in(first_line(child));
  Child silent(far_end({"wait"}, "100"));
  EXPECT_EQ(code_of(silent), 128 + SIGKILL);
  EXPECT_TRUE(alive(role));
}

TEST(UnderLauncher, ItsOwnDeathEndsTheCommandToo) {
  Child child(far_end({"fork", "wait"}));
  const pid_t grandchild = number_in(first_line(child));
  kill(child.pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

}  // namespace
}  // namespace lockstep::testing
