// Groups over Gloo: sums that are right to the bit, and an end with a reason for everyone, whatever happens.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <numeric>

#include "base/file.h"
#include "collective/gloo_groups.h"
#include "transport/convert.h"

namespace lockstep::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_threads;
using testing::make_gloo_group;

using Group = std::vector<std::unique_ptr<Collective>>;
using Bytes = std::vector<std::byte>;

std::vector<float> numbers(size_t count, int rank) {
  std::vector<float> values(count);
  uint32_t state = static_cast<uint32_t>(rank) * 7919 + 17;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = (static_cast<float>(state >> 8) * 0x1p-24F - 0.5F) * static_cast<float>(1 << (state % 7));
  }
  return values;
}

transport::Element wire(Element element) {
  switch (element) {
    case Element::bfloat16:
      return transport::Element::kBfloat16;
    case Element::float16:
      return transport::Element::kFloat16;
    default:
      return transport::Element::kFloat32;
  }
}

Bytes packed(const std::vector<float>& values, Element element) {
  Bytes bytes(values.size() * bytes_of(element));
  transport::pack(wire(element), values, bytes);
  return bytes;
}

std::vector<float> unpacked(const Bytes& bytes, Element element) {
  std::vector<float> values(bytes.size() / bytes_of(element));
  transport::unpack(wire(element), bytes, values);
  return values;
}

/// The sum in the order of ranks, rounded after every addition.
Bytes expected_sum(size_t count, int size, Element element) {
  Bytes sum = packed(numbers(count, 0), element);
  for (int rank = 1; rank < size; ++rank) {
    std::vector<float> a = unpacked(sum, element);
    const std::vector<float> b = unpacked(packed(numbers(count, rank), element), element);
    for (size_t i = 0; i < count; ++i) a[i] += b[i];
    sum = packed(a, element);
  }
  return sum;
}

class GlooSizes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, GlooSizes, ::testing::Values(1, 2, 3, 4));

TEST_P(GlooSizes, EveryoneGetsTheSumInTheOrderOfRanksToTheBit) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  for (const size_t count : {0UL, 1UL, 3UL, 1000UL, 4097UL, 62500UL, 77777UL, 1000003UL}) {
    for (const Element element : {Element::float32, Element::bfloat16, Element::float16}) {
      const Bytes expected = expected_sum(count, size, element);
      in_threads(size, [&](int rank) {
        Bytes data = packed(numbers(count, rank), element);
        const auto result = group[static_cast<size_t>(rank)]->all_reduce(data.data(), count, element);
        ASSERT_TRUE(result) << result.failure().message;
        EXPECT_TRUE(data == expected) << count << " elements of " << bytes_of(element) << " bytes, rank " << rank;
      });
    }
  }
}

TEST_P(GlooSizes, EveryoneGetsTheBytesOfAnyRoot) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  for (const size_t count : {0UL, 1UL, 5000UL, 300001UL}) {
    for (int root = 0; root < size; ++root) {
      const Bytes expected = packed(numbers(count, root), Element::float32);
      in_threads(size, [&](int rank) {
        Bytes data = packed(numbers(count, rank), Element::float32);
        const auto result = group[static_cast<size_t>(rank)]->broadcast(data, root);
        ASSERT_TRUE(result) << result.failure().message;
        EXPECT_TRUE(data == expected);
      });
    }
  }
}

TEST_P(GlooSizes, BlocksAreGatheredInTheOrderOfRanks) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  for (const size_t count : {0UL, 1UL, 100UL, 100001UL}) {
    Bytes expected;
    for (int rank = 0; rank < size; ++rank) {
      const Bytes block = packed(numbers(count, rank), Element::bfloat16);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    in_threads(size, [&](int rank) {
      Bytes all(expected.size());
      const auto result =
          group[static_cast<size_t>(rank)]->all_gather(packed(numbers(count, rank), Element::bfloat16), all);
      ASSERT_TRUE(result) << result.failure().message;
      EXPECT_TRUE(all == expected);
    });
  }
}

TEST_P(GlooSizes, NobodyPassesABarrierBeforeAllHaveCome) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  std::atomic<int> come{0};
  in_threads(size, [&](int rank) {
    for (int round = 1; round <= 200; ++round) {
      ++come;
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->barrier());
      EXPECT_GE(come.load(), round * size);
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->barrier());
    }
  });
}

TEST(Gloo, SpinningChangesNothingButTime) {
  const Group group = make_gloo_group(2, {.spin = std::chrono::microseconds(50)});
  const Bytes expected = expected_sum(1000, 2, Element::float32);
  in_threads(2, [&](int rank) {
    for (int i = 0; i < 50; ++i) {
      Bytes data = packed(numbers(1000, rank), Element::float32);
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->all_reduce(data.data(), 1000, Element::float32));
      EXPECT_TRUE(data == expected);
    }
  });
}

TEST(Gloo, OneGroupFollowsAnother) {
  for (int i = 0; i < 3; ++i) {
    const Group group = make_gloo_group(3);
    in_threads(3, [&](int rank) {
      std::vector<float> data(1000, static_cast<float>(rank + i));
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->all_reduce(data));
      EXPECT_EQ(data[999], static_cast<float>(3 + 3 * i));
    });
  }
}

TEST(Gloo, CountsWhatItMoves) {
  const Group group = make_gloo_group(2);
  const Traffic before = group[0]->traffic();
  in_threads(2, [&](int rank) {
    std::vector<float> data(1'000'000, 1.0F);
    ASSERT_TRUE(group[static_cast<size_t>(rank)]->all_reduce(data));
  });
  EXPECT_EQ(group[0]->traffic().sent - before.sent, 4'000'000U);
  EXPECT_EQ(group[0]->traffic().received - before.received, 4'000'000U);
}

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
    EXPECT_EQ(result.failure().message, "worker:1 is gone");
    const auto later = group[0]->barrier();
    ASSERT_FALSE(later);
    EXPECT_EQ(later.failure().message, "worker:1 is gone");
    std::vector<float> data(count);
    (void)group[1]->all_reduce(data);  // what had been sent before may be enough for a small one
    EXPECT_FALSE(group[1]->all_reduce(data)) << "the connection is closed";
  }
}

TEST(Gloo, AMemberThatDoesNotTakePartIsNamedAfterTheDeadline) {
  const Group group = make_gloo_group(3, {.deadline = Seconds(0.3)});
  in_threads(2, [&](int rank) {
    std::vector<float> data(100);
    const auto result = group[static_cast<size_t>(rank)]->all_reduce(data);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.failure().message, HasSubstr("all-reduce of 400 bytes"));
  });
}

TEST(Gloo, AGroupMayBeDestroyedWhileACallIsUnderWay) {
  Group group = make_gloo_group(2);
  Collective* abandoned = group[0].get();
  std::atomic<bool> started{false};
  auto waiting = std::async(std::launch::async, [&] {
    std::vector<float> data(10);
    started = true;
    return abandoned->all_reduce(data);
  });
  while (!started) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(50));
  group[0].reset();
  EXPECT_FALSE(waiting.get());
}

TEST(Gloo, ConnectingIsGivenUpWhenAsked) {
  const auto alone = join_over_gloo("127.0.0.1", 0, 2, {});
  const auto other = join_over_gloo("127.0.0.1", 1, 2, {});
  const auto result = alone->connect({alone->address(), other->address()}, [] { return true; });
  ASSERT_FALSE(result);
  EXPECT_THAT(result.failure().message, HasSubstr("rank 0 of 2: given up"));
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
  EXPECT_THAT(result.failure().message, HasSubstr("rank 0 of 2"));
}

/// Another process (gloo_peer.cpp), which can be killed.
class Process {
 public:
  explicit Process(int rank, int size, const std::string& count) {
    int out[2];
    int in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) throw Error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl(LOCKSTEP_GLOO_PEER, LOCKSTEP_GLOO_PEER, std::to_string(rank).c_str(), std::to_string(size).c_str(),
            count.c_str(), nullptr);
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
  /// One line that it printed.
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

/// Processes that all-reduce `count` numbers over and over, and print the hash of the first sum.
std::vector<std::unique_ptr<Process>> start(int size, size_t count) {
  std::vector<std::unique_ptr<Process>> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<Process>(rank, size, std::to_string(count)));
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

TEST(GlooProcesses, OneThatIsSilentIsNamedAfterTheDeadline) {
  auto members = start(2, 1000);
  for (auto& member : members) EXPECT_THAT(member->line(), ::testing::StartsWith("sum "));
  members[1]->stop();
  EXPECT_THAT(members[0]->line(), HasSubstr("nothing came from rank 1 within 3 s"));
}

/// Where one of two waits for the other: in its address, after a line, the token and how it waits.
sockaddr_in listening_place(const std::string& address, int rank) {
  size_t at = address.find('\n') + 1;
  for (int field = 0; field < 2 + (1 - rank); ++field) {
    uint16_t length = 0;
    std::memcpy(&length, address.data() + at, sizeof(length));
    at += sizeof(length) + length;
  }
  sockaddr_in place{};
  std::memcpy(&place, address.data() + at + sizeof(uint16_t), sizeof(place));
  return place;
}

/// Whoever connects first where a member waits for another, and says this.
base::FileHandle intrude(const std::string& address, int rank, const std::string& text) {
  const sockaddr_in place = listening_place(address, rank);
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
    std::array<base::FileHandle, 2> intruders;  // either may be the one that is connected to
    for (int rank = 0; rank < 2; ++rank) {
      const auto i = static_cast<size_t>(rank);
      intruders[i] = intrude(addresses[i], rank, GetParam());
      if (!stays) intruders[i].reset();
    }
    std::this_thread::sleep_for(milliseconds(20));
    in_threads(2, [&](int rank) {
      const auto result = joinings[static_cast<size_t>(rank)]->connect(addresses, [] { return false; });
      ASSERT_FALSE(result);
      EXPECT_THAT(result.failure().message, HasSubstr("gloo: rank "));
    });
  }
}

TEST(Gloo, AHostThatIsNotOfThisMachineIsRefused) {
  EXPECT_THROW(join_over_gloo("203.0.113.1", 0, 2, {}), IoError);
  EXPECT_THROW(join_over_gloo("no.such.host.invalid", 0, 2, {}), IoError);
}

TEST(Gloo, AddressesThatAreNoneAreRefused) {
  for (const std::string& address : {std::string(), std::string("garbage"), std::string("lockstep gloo 1\n\xff\xff")}) {
    const auto joining = join_over_gloo("127.0.0.1", 0, 2, {});
    const auto result = joining->connect({joining->address(), address}, [] { return false; });
    ASSERT_FALSE(result);
    EXPECT_THAT(result.failure().message, HasSubstr("address of rank 1"));
  }
}

}  // namespace
}  // namespace lockstep::collective
