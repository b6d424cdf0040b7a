// Groups over Gloo: every failure ends all members with a reason.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>

#include "base/file.h"
#include "collective/gloo_groups.h"

namespace lockstep::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_threads;
using testing::make_gloo_group;

using Group = std::vector<std::unique_ptr<Collective>>;

TEST(Gloo, AnAbortEndsWhatWaitsAndEverythingAfterIt) {
  for (const size_t count : {10UL, 3'000'000UL}) {
    const Group group = make_gloo_group(2);
    auto waiting = std::async(std::launch::async, [&] {
      std::vector<float> data(count);
      return group[0]->all_reduce(data);
    });
    EXPECT_EQ(waiting.wait_for(milliseconds(50)), std::future_status::timeout);
    group[0]->abort("worker:1 is gone");
    const auto result = waiting.get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.failure().message(), "worker:1 is gone");
    const auto later = group[0]->barrier();
    ASSERT_FALSE(later);
    EXPECT_EQ(later.failure().message(), "worker:1 is gone");
    std::vector<float> data(count);
    (void)group[1]->all_reduce(data);  // data already sent may be enough for a small one
    EXPECT_FALSE(group[1]->all_reduce(data)) << "the connection is closed";
  }
}

TEST(Gloo, AMemberThatDoesNotTakePartIsNamedAfterTheDeadline) {
  const Group group = make_gloo_group(3, {.deadline = Seconds(0.3)});
  in_threads(2, [&](int rank) {
    std::vector<float> data(100);
    const auto result = group[static_cast<size_t>(rank)]->all_reduce(data);
    ASSERT_FALSE(result);
    // The first to notice closes its connections, so the other may see that before its own deadline.
    EXPECT_THAT(result.failure().ranks, ::testing::SizeIs(1));
    EXPECT_THAT(result.failure().message(), HasSubstr("all-reduce of 400 bytes"));
  });
}

TEST(Gloo, AGroupMayBeDestroyedWhileACallIsUnderWay) {
  Group group = make_gloo_group(2);
  Collective* abandoned = group[0].get();
  const uint64_t before = abandoned->traffic().sent;
  auto waiting = std::async(std::launch::async, [&] {
    std::vector<float> data(10);
    return abandoned->all_reduce(data);
  });
  while (abandoned->traffic().sent == before) std::this_thread::yield();
  group[0].reset();
  EXPECT_FALSE(waiting.get());
}

TEST(Gloo, ConnectingIsGivenUpWhenAsked) {
  const auto alone = join_over_gloo("127.0.0.1", 0, 2, {});
  const auto other = join_over_gloo("127.0.0.1", 1, 2, {});
  const auto result = alone->connect({alone->address(), other->address()}, [] { return true; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().kind, base::FailureKind::interrupted);
}

TEST(Gloo, ConnectingFailsAfterTheDeadline) {
  const GroupOptions options{.deadline = Seconds(0.3)};
  std::string gone;
  {
    const auto other = join_over_gloo("127.0.0.1", 1, 2, options);
    gone = other->address();
  }
  const auto alone = join_over_gloo("127.0.0.1", 0, 2, options);
  const auto result = alone->connect({alone->address(), gone}, [] { return false; });
  ASSERT_FALSE(result);
  EXPECT_THAT(result.failure().message(), HasSubstr("gloo: connecting 2 members: "));
}

/// Another process (gloo_peer.cpp), which can be killed.
class Process {
 public:
  Process(int rank, int size, const std::string& count, const std::string& deadline) {
    int out[2];
    int in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) throw Error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl(LOCKSTEP_GLOO_PEER, LOCKSTEP_GLOO_PEER, std::to_string(rank).c_str(), std::to_string(size).c_str(),
            count.c_str(), deadline.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    out_ = fdopen(out[0], "r");
    in_ = fdopen(in[1], "w");
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill();
    fclose(out_);
    fclose(in_);
  }
  /// Reads one line that it printed.
  std::string line() {
    std::string text;
    for (int c = 0; (c = fgetc(out_)) != EOF && c != '\n';) text.push_back(static_cast<char>(c));
    return text;
  }
  void tell(const std::string& text) {
    fputs((text + "\n").c_str(), in_);
    fflush(in_);
  }
  void stop() const { ::kill(pid_, SIGSTOP); }
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
  FILE* in_ = nullptr;
};

/// Starts processes that all-reduce `count` numbers repeatedly, and print the hash of the first sum.
std::vector<std::unique_ptr<Process>> start(int size, size_t count, int deadline = 100) {
  std::vector<std::unique_ptr<Process>> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<Process>(rank, size, std::to_string(count), std::to_string(deadline)));
  }
  std::vector<std::string> addresses;
  for (auto& member : members) addresses.push_back(member->line());
  for (auto& member : members) {
    for (const std::string& address : addresses) member->tell(address);
  }
  return members;
}

TEST(GlooProcesses, TwoRunsGiveTheSameBits) {
  for (const int size : {2, 3, 4}) {
    std::vector<std::string> hashes;
    for (int run = 0; run < 2; ++run) {
      for (auto& member : start(size, 62501)) hashes.push_back(member->line());
    }
    for (const std::string& hash : hashes) {
      EXPECT_THAT(hash, ::testing::StartsWith("sum "));
      EXPECT_EQ(hash, hashes[0]);
    }
  }
}

TEST(GlooProcesses, ADeathInTheMiddleOfAnAllReduceIsNoticedByAll) {
  for (const size_t count : {100UL, 5'000'000UL}) {
    auto members = start(3, count);
    for (auto& member : members) EXPECT_THAT(member->line(), ::testing::StartsWith("sum "));
    members[1]->kill();
    for (const int survivor : {0, 2}) {
      EXPECT_THAT(members[static_cast<size_t>(survivor)]->line(),
                  AllOf(HasSubstr("gloo: all-reduce of"), HasSubstr("rank")));
    }
  }
}

/// Returns one member's error after the other was stopped after their first sum; or the output in place of it.
std::string said_of_silence(size_t count, int deadline) {
  auto members = start(2, count, deadline);
  for (auto& member : members) {
    const std::string sum = member->line();
    if (!sum.starts_with("sum ")) return sum;
  }
  members[1]->stop();
  return members[0]->line();
}

TEST(GlooProcesses, OneThatIsSilentIsNamedAfterTheDeadline) {
  for (const size_t count : {1000UL, 5'000'000UL}) {
    std::string said;
    // On a busy machine other delays may exceed a short deadline.
    for (const int deadline : {3, 12, 48}) {
      said = said_of_silence(count, deadline);
      if (said.ends_with("within " + std::to_string(deadline) + " s")) break;
    }
    EXPECT_THAT(said, ::testing::ContainsRegex("rank 1: .* nothing.* within [0-9]+ s"));
  }
}

/// Returns where one of two waits for the other. Its address has this after a line, the token, how it waits and its
/// machine.
sockaddr_in listening_place(const std::string& address) {
  size_t at = address.find('\n') + 1;
  for (int field = 0; field < 3; ++field) {
    uint16_t length = 0;
    std::memcpy(&length, address.data() + at, sizeof(length));
    at += sizeof(length) + length;
  }
  sockaddr_in place{};
  std::memcpy(&place, address.data() + at + sizeof(uint16_t), sizeof(place));
  return place;
}

/// Connects in a member's place before it does, and sends this text.
base::FileHandle intrude(const std::string& address, const std::string& text) {
  const sockaddr_in place = listening_place(address);
  base::FileHandle intruder(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(intruder.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0) throw Error("refused");
  if (send(intruder.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) throw Error("not sent");
  return intruder;
}

std::string words(std::initializer_list<uint64_t> values) {
  std::string text;
  for (const uint64_t value : values) text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return text;
}

class GlooIntruders : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, GlooIntruders,
                         ::testing::Values(std::string(), std::string("GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
                                           std::string(100'000, '\0'), std::string(100'000, '\xff'),
                                           words({48 + 131072, 0, 1, 0, 131072, 0}) + std::string(131072, 'x'),
                                           words({48, 0, 1, 0, UINT64_MAX, 1}), words({48, 2, 1, 0, 0, 0}),
                                           words({48, 3, 1, 0, 0, 0})));

TEST_P(GlooIntruders, MakeTheGroupFailAndNothingElse) {
  for (const bool stays : {true, false}) {
    const GroupOptions options{.deadline = Seconds(0.4)};
    std::array<std::unique_ptr<Joining>, 2> joinings;
    for (int rank = 0; rank < 2; ++rank) {
      joinings[static_cast<size_t>(rank)] = join_over_gloo("127.0.0.1", rank, 2, options);
    }
    const std::vector<std::string> addresses{joinings[0]->address(), joinings[1]->address()};
    std::array<base::FileHandle, 2> intruders;  // a member may connect to either of them
    for (int rank = 0; rank < 2; ++rank) {
      const auto i = static_cast<size_t>(rank);
      intruders[i] = intrude(addresses[i], GetParam());
      if (!stays) intruders[i].reset();
    }
    std::this_thread::sleep_for(milliseconds(20));
    in_threads(2, [&](int rank) {
      const auto result = joinings[static_cast<size_t>(rank)]->connect(addresses, [] { return false; });
      ASSERT_FALSE(result);
      EXPECT_THAT(result.failure().message(), HasSubstr("gloo: connecting 2 members: "));
    });
  }
}

TEST(Gloo, AHostMayBeAName) {
  const auto joining = join_over_gloo("localhost", 0, 1, {});
  EXPECT_TRUE(joining->connect({joining->address()}, [] { return false; }));
}

TEST(Gloo, AHostThatIsNotOfThisMachineIsRefused) {
  for (const char* host : {"203.0.113.1", "no.such.host.invalid", "2001:db8::1"}) {
    try {
      join_over_gloo(host, 0, 2, {});
      ADD_FAILURE() << host;
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("gloo: cannot listen at ") + host + ": "));
    }
  }
}

TEST(Gloo, AddressesThatAreNoneAreRefused) {
  for (const std::string& address : {std::string(), std::string("garbage"), std::string("lockstep gloo 2\n\xff\xff")}) {
    const auto joining = join_over_gloo("127.0.0.1", 0, 2, {});
    const auto result = joining->connect({joining->address(), address}, [] { return false; });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.failure().kind, base::FailureKind::corrupt);
    EXPECT_THAT(result.failure().ranks, ::testing::ElementsAre(1));
  }
}

}  // namespace
}  // namespace lockstep::collective
