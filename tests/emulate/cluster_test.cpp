// Emulated clusters with real namespaces and control groups. Tests are skipped with the reason if the machine does not
// allow them.
#include "emulate/cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/file.h"
#include "base/parallel.h"
#include "base/temp_dir.h"
#include "emulate/claims.h"
#include "emulate/owner.h"
#include "emulate/rights.h"
#include "lockstep/error.h"
#include "process/child_process.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using emulate::EmulatedCluster;
using emulate::NodeSpec;
using emulate::Seat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

#define RIGHTS_OR_SKIP() \
  if (const std::string why = emulate::why_no_emulation(); !why.empty()) GTEST_SKIP() << why

constexpr int kPort = 4000;

std::vector<std::string> left_by(const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/run/netns", error)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
  }
  for (const auto& entry : fs::directory_iterator("/run/lockstep", error)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path().string());
  }
  fs::recursive_directory_iterator at("/sys/fs/cgroup", error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) continue;
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path().string());
  }
  return found;
}

/// A process on a node that runs `work`, whose result is its exit code.
class OnNode {
 public:
  OnNode(const Seat& seat, const std::function<int()>& work) {
    pid_ = fork();
    if (pid_ != 0) return;
    for (const std::string& file : seat.groups) std::ofstream(file) << 0 << std::flush;
    const base::FileHandle network(open(seat.network_namespace.c_str(), O_RDONLY));
    if (setns(network.get(), CLONE_NEWNET) != 0) _exit(99);
    _exit(work());
  }
  OnNode(const OnNode&) = delete;
  OnNode& operator=(const OnNode&) = delete;
  ~OnNode() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait();
  }
  /// Returns the exit code, or the negative signal.
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

sockaddr_in address_of(const std::string& host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

/// Accepts one connection and counts the bytes: returns 0 if as many came as expected.
int take(const std::string& host, size_t expected) {
  const base::FileHandle listening(socket(AF_INET, SOCK_STREAM, 0));
  const int yes = 1;
  setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(host);
  if (bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 1;
  if (listen(listening.get(), 1) != 0) return 2;
  const base::FileHandle peer(accept(listening.get(), nullptr, nullptr));
  std::vector<char> buffer(65536);
  size_t all = 0;
  for (ssize_t count = 0; (count = read(peer.get(), buffer.data(), buffer.size())) > 0;)
    all += static_cast<size_t>(count);
  return all == expected ? 0 : 3;
}

/// Retries until it can connect, then sends; returns 0 if all bytes were sent.
int give(const std::string& host, size_t bytes) {
  const sockaddr_in address = address_of(host);
  for (int turn = 0; turn < 30'000; ++turn) {
    const base::FileHandle peer(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      usleep(2000);
      continue;
    }
    std::vector<char> buffer(65536);
    while (bytes > 0) {
      const ssize_t count = write(peer.get(), buffer.data(), std::min(bytes, buffer.size()));
      if (count <= 0) return 5;
      bytes -= static_cast<size_t>(count);
    }
    shutdown(peer.get(), SHUT_WR);
    char end = 0;
    return read(peer.get(), &end, 1) == 0 ? 0 : 6;  // until all have arrived
  }
  return 4;
}

/// Returns the seconds of a transfer from the first node to the second.
double send_between(const EmulatedCluster& cluster, size_t bytes) {
  OnNode taking(cluster.seat(1), [&] { return take(cluster.address(1), bytes); });
  const auto begun = Clock::now();
  OnNode giving(cluster.seat(0), [&] { return give(cluster.address(1), bytes); });
  EXPECT_EQ(giving.wait(), 0);
  EXPECT_EQ(taking.wait(), 0);
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

std::string output_of(const std::vector<std::string>& words) {
  process::Command command;
  command.argv = words;
  process::Child child(command);
  std::string text;
  const auto keep = [&](const std::string& line) { text += line + "\n"; };
  while (!child.reap()) {
    pollfd end{child.end_fd(), POLLIN, 0};
    poll(&end, 1, 50);
    child.read(process::Stream::out, keep);
  }
  child.read_rest(process::Stream::out, keep);
  return text;
}

std::string namespace_name(const Seat& seat) { return fs::path(seat.network_namespace).filename(); }

TEST(EmulatedCluster, NodesReachEachOtherAndNobodyElse) {
  RIGHTS_OR_SKIP();
  const EmulatedCluster cluster({{.cores = 0.5}, {.cores = 0.5}});
  EXPECT_EQ(cluster.name(1), "node2");
  EXPECT_EQ(cluster.address(1), "10.77.0.2");
  send_between(cluster, 100'000);
  EXPECT_THAT(output_of({"ip", "addr"}), Not(HasSubstr("10.77.0.")));
  const std::string inside = output_of({"ip", "-n", namespace_name(cluster.seat(1)), "-o", "-4", "addr"});
  EXPECT_THAT(inside, HasSubstr("eth0"));
  EXPECT_THAT(inside, HasSubstr("10.77.0.2/24"));
  EXPECT_THAT(inside, HasSubstr("127.0.0.1/8"));
}

TEST(EmulatedCluster, TwoAtOnceDoNotMeet) {
  RIGHTS_OR_SKIP();
  const EmulatedCluster one({{.cores = 0.25}, {.cores = 0.25}});
  const EmulatedCluster other({{.cores = 0.25}, {.cores = 0.25}});
  // Both clusters use the same address, and each reaches its own.
  OnNode taking(one.seat(1), [&] { return take(one.address(1), 1000); });
  OnNode taking_too(other.seat(1), [&] { return take(other.address(1), 2000); });
  OnNode giving(one.seat(0), [&] { return give(one.address(1), 1000); });
  OnNode giving_too(other.seat(0), [&] { return give(other.address(1), 2000); });
  EXPECT_EQ(giving.wait(), 0);
  EXPECT_EQ(giving_too.wait(), 0);
  EXPECT_EQ(taking.wait(), 0);
  EXPECT_EQ(taking_too.wait(), 0);
}

TEST(EmulatedCluster, TwoAtOnceAreAddedUpAndHaveCoresOfTheirOwn) {
  RIGHTS_OR_SKIP();
  const double host = base::available_cores();
  const auto make = [&](double part) { EmulatedCluster cluster(std::vector<NodeSpec>{{.cores = part * host}}); };
  {
    const EmulatedCluster one({{.cores = 0.5 * host}, {.cores = 0.25 * host}});
    const std::string said = message_of<UsageError>([&] { make(0.5); });
    EXPECT_THAT(said, HasSubstr(fmt::format("process {} (", getpid())));
    EXPECT_THAT(said, HasSubstr(fmt::format("`kill -INT {}`", getpid())));
    EXPECT_NO_THROW(make(0.25));
  }
  EXPECT_NO_THROW(make(0.5));
  if (host < 2) return;
  const EmulatedCluster one(std::vector<NodeSpec>{{.cores = 1}});
  const EmulatedCluster other(std::vector<NodeSpec>{{.cores = 1}});
  ASSERT_EQ(one.seat(0).cores.size(), 1U);
  ASSERT_EQ(other.seat(0).cores.size(), 1U);
  EXPECT_NE(one.seat(0).cores, other.seat(0).cores);
}

TEST(EmulatedCluster, IsAPartOfWhatItsParentClaimed) {
  RIGHTS_OR_SKIP();
  const std::vector<NodeSpec> all{{.cores = static_cast<double>(base::available_cores())}};
  const emulate::ClaimFile claim(all, emulate::ClaimFile::Cores::leave);
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    {
      const EmulatedCluster cluster(all);
      const std::vector<emulate::Claim> both = emulate::claims();
      const bool told = both.size() == 2 && both.back().within == getppid();
      code = told && both.front().frame && !both.back().frame ? 0 : 2;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(emulate::claims().size(), 1U);
}

TEST(EmulatedCluster, NobodyElseCanLockWhatItsClaimIsWrittenUnder) {
  RIGHTS_OR_SKIP();
  namespace fs = std::filesystem;
  const fs::path claims = "/run/lockstep";
  fs::create_directories(claims);
  fs::permissions(claims, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  const emulate::ClaimFile claim({{.cores = 0.01}}, emulate::ClaimFile::Cores::leave);
  EXPECT_EQ(fs::status(claims).permissions(), fs::perms::owner_all);
}

TEST(EmulatedCluster, ALinkLetsThroughItsRateEachWay) {
  RIGHTS_OR_SKIP();
  constexpr double kRate = 16e6;
  constexpr size_t kBytes = 1'500'000;
  for (const size_t slow : {0, 1}) {  // both directions are limited
    std::vector<NodeSpec> nodes(2, NodeSpec{.cores = 0.5});
    nodes[slow].rate = kRate;
    const EmulatedCluster cluster(nodes);
    const std::string queue =
        output_of({"tc", "-n", namespace_name(cluster.seat(slow)), "qdisc", "show", "dev", "eth0"});
    EXPECT_THAT(queue, HasSubstr("tbf"));
    EXPECT_THAT(queue, HasSubstr("16Mbit"));
    // On a slow machine, too, no more than that passes; only the bucket's size passes at once.
    const double measured = kBytes * 8.0 / send_between(cluster, kBytes);
    EXPECT_LT(measured, 1.4 * kRate);
    EXPECT_GT(measured, 0.05 * kRate);
  }
}

TEST(EmulatedCluster, ACutLinkCarriesNothingUntilItIsBack) {
  RIGHTS_OR_SKIP();
  EmulatedCluster cluster({{.cores = 0.5}, {.cores = 0.5}});
  cluster.cut(1);
  OnNode taking(cluster.seat(1), [&] { return take(cluster.address(1), 1000); });
  const auto try_once = [&] {
    const base::FileHandle peer(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const sockaddr_in address = address_of(cluster.address(1));
    (void)connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    pollfd ready{peer.get(), POLLOUT, 0};
    return poll(&ready, 1, 300) > 0 && (ready.revents & (POLLERR | POLLHUP)) == 0 ? 1 : 0;
  };
  EXPECT_EQ(OnNode(cluster.seat(0), try_once).wait(), 0);
  cluster.restore(1);
  EXPECT_EQ(OnNode(cluster.seat(0), [&] { return give(cluster.address(1), 1000); }).wait(), 0);
  EXPECT_EQ(taking.wait(), 0);
}

/// Returns the CPU seconds per second of a process that wants a whole core.
double burn_on(const EmulatedCluster& cluster, size_t node) {
  const auto burn = [] {
    const auto until = Clock::now() + std::chrono::seconds(1);
    timespec used{};
    while (Clock::now() < until) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<int>(used.tv_sec * 100 + used.tv_nsec / 10'000'000);
  };
  return OnNode(cluster.seat(node), burn).wait() / 100.0;
}

TEST(EmulatedCluster, ANodeHasItsCoresAndLessWhenItIsSlowed) {
  RIGHTS_OR_SKIP();
  EmulatedCluster cluster({{.cores = 0.5}, {.cores = 0.25}});
  // Never more than its share, and up to it; on a busy machine that may take several seconds.
  const auto comes_to = [&](double least, double most) {
    double used = 0;
    for (int second = 0; second < 30 && used <= least; ++second) {
      used = burn_on(cluster, 0);
      EXPECT_LT(used, most);
    }
    return used > least;
  };
  EXPECT_TRUE(comes_to(0.2, 0.65));
  EXPECT_LT(burn_on(cluster, 1), 0.35);
  for (int second = 0; second < 30 && cluster.throttling(0).throttled_periods <= 5; ++second) burn_on(cluster, 0);
  EXPECT_GT(cluster.throttling(0).throttled_periods, 5U);
  cluster.slow(0, 0.2);
  EXPECT_TRUE(comes_to(0, 0.2));
  cluster.slow(0, 1);
  EXPECT_TRUE(comes_to(0.2, 0.65));
}

TEST(EmulatedCluster, AMemoryLimitKillsOnItsNodeAlone) {
  RIGHTS_OR_SKIP();
  const EmulatedCluster cluster({{.cores = 0.5, .memory_bytes = 32e6}, {.cores = 0.5}});
  const auto take_memory = [] {
    constexpr size_t kMuch = 100'000'000;
    auto* bytes = static_cast<char*>(mmap(nullptr, kMuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t at = 0; at < kMuch; at += 4096) bytes[at] = 1;
    return 7;
  };
  EXPECT_EQ(OnNode(cluster.seat(0), take_memory).wait(), -SIGKILL);
  EXPECT_EQ(OnNode(cluster.seat(1), take_memory).wait(), 7);
}

TEST(EmulatedCluster, ACommandIsOnItsNodeBeforeItIsTheProgram) {
  RIGHTS_OR_SKIP();
  const EmulatedCluster cluster(std::vector<NodeSpec>{{.cores = 0.5, .memory_bytes = 64e6}});
  const Seat seat = cluster.seat(0);
  process::Command command;
  command.argv = {"sh", "-c",
                  "cat /proc/self/cgroup; cat /proc/self/net/dev; echo $LOCKSTEP_NODE $LOCKSTEP_NODE_CORES"};
  command.network_namespace = seat.network_namespace;
  command.groups = seat.groups;
  command.environment = seat.environment;
  process::Child child(command);
  std::string text;
  const auto keep = [&](const std::string& line) { text += line + "\n"; };
  while (!child.reap()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  child.read_rest(process::Stream::out, keep);
  EXPECT_THAT(text, HasSubstr(emulate::owner_prefix() + "1-node1"));
  EXPECT_THAT(text, HasSubstr("eth0"));
  EXPECT_THAT(text, HasSubstr("node1 0.5"));
  command.network_namespace = "/run/netns/none-of-that-name";
  EXPECT_THAT(message_of<IoError>([&] { process::Child none(command); }), HasSubstr("none-of-that-name"));
}

/// Returns the refusal of an emulated cluster in a process that has given up rights.
std::string refusal_after(const std::function<bool()>& give_up) {
  int said[2];
  if (pipe(said) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    if (!give_up()) _exit(1);
    const std::string text =
        message_of<UsageError>([] { EmulatedCluster cluster(std::vector<NodeSpec>{{.cores = 0.5}}); });
    _exit(write(said[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  close(said[1]);
  std::string text(1000, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(said[0], text.data(), text.size()))));
  close(said[0]);
  return text;
}

TEST(EmulatedCluster, NeedsRootAndInAContainerCapabilities) {
  EXPECT_THAT(refusal_after([] { return geteuid() != 0 || seteuid(65534) == 0; }),
              HasSubstr("emulate: network namespaces need root; without --emulate"));
  if (geteuid() != 0) return;
  const auto drop = [](unsigned capability) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) return false;
    data[0].effective &= ~(1U << capability);
    return syscall(SYS_capset, &header, data.data()) == 0;
  };
  EXPECT_THAT(refusal_after([&] { return drop(CAP_SYS_ADMIN); }), HasSubstr("network namespaces need CAP_SYS_ADMIN"));
  if (!emulate::why_no_emulation().empty()) return;  // refused here for an earlier reason
  EXPECT_THAT(refusal_after([&] { return drop(CAP_NET_ADMIN); }), HasSubstr("network namespaces need CAP_NET_ADMIN"));
  const auto read_only = [] {
    return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("/sys", "/sys", nullptr, MS_BIND, nullptr) == 0;  // without the mounts below it
  };
  EXPECT_THAT(refusal_after(read_only), HasSubstr("emulate: no control groups with a CPU controller"));
}

TEST(EmulatedCluster, NothingIsLeftOfIt) {
  RIGHTS_OR_SKIP();
  {
    const EmulatedCluster cluster({{.cores = 0.5}, {.cores = 0.5}});
    EXPECT_GE(left_by(emulate::owner_prefix()).size(), 5U);
  }
  EXPECT_THAT(left_by(emulate::owner_prefix()), IsEmpty());
}

TEST(EmulatedCluster, WhatAKilledOwnerLeftGoesAtTheNextStart) {
  RIGHTS_OR_SKIP();
  const EmulatedCluster mine(std::vector<NodeSpec>{{.cores = 0.5}});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    const EmulatedCluster cluster(std::vector<NodeSpec>{{.cores = 0.5}});
    (void)!write(ready[1], "x", 1);
    pause();
  }
  char word = 0;
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  const std::string prefix = fmt::format("lockstep-{}-", owner);
  emulate::remove_leftovers();
  EXPECT_GE(left_by(prefix).size(), 3U) << "the living keep theirs";
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_GE(left_by(prefix).size(), 3U);
  emulate::remove_leftovers();
  EXPECT_THAT(left_by(prefix), IsEmpty());
  EXPECT_GE(left_by(emulate::owner_prefix()).size(), 3U);
  close(ready[0]);
  close(ready[1]);
}

TEST(EmulatedCluster, DelayNeedsAKernelThatHasIt) {
  RIGHTS_OR_SKIP();
  try {
    const EmulatedCluster cluster({{.cores = 0.5, .rate = 1e9, .delay_seconds = 0.02}, {.cores = 0.5}});
    // The delay occurs at least twice: to connect, and to see the end.
    EXPECT_GT(send_between(cluster, 1000), 0.04);
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("netem, CONFIG_NET_SCH_NETEM"));
    EXPECT_THAT(left_by(emulate::owner_prefix()), IsEmpty());
  }
}

}  // namespace
}  // namespace lockstep::testing
