// A server when peers reconnect, parameters are set again, or it dies at the wrong moment.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "server_support.h"
#include "transport/sockets.h"

namespace lockstep::ps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Peer;
using testing::Ps0;
using train::StopReason;

StopReason stop_of(const wire::Reply& reply) { return static_cast<StopReason>(reply.stop()); }

transport::Header stop_for(StopReason reason) {
  transport::Header header = ps::header(Kind::stop);
  header.extra = static_cast<uint64_t>(reason);
  return header;
}

TEST(Generations, ALaterOneEndsTheConnectionsOfThoseWhoWaitedForTheFirst) {
  Ps0 ps(2, Durability::process);
  Peer worker(ps, "worker:1", 1);  // before there are parameters
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1);
  EXPECT_TRUE(worker.pulls()) << "it goes on with the first ones";
  chief.initialise(2);
  EXPECT_FALSE(worker.pulls()) << "its gradients are of other parameters";
}

/// Only the chief can set them, so a server restarted at this moment must not make it wait.
TEST(FirstParameters, TheChiefDoesNotWaitForThemWhateverItAsks) {
  for (const Kind kind : {Kind::join, Kind::pull, Kind::hold, Kind::leave, Kind::wait_end}) {
    Ps0 ps(2, Durability::checkpoint);
    Peer chief(ps, "worker:0", 0);
    chief.say(header(kind));
    const auto answer = chief.stream().read();
    ASSERT_TRUE(answer) << answer.failure().message();
    EXPECT_THAT(answer.value().text(), HasSubstr("the chief must set the parameters before"));
    Peer again(ps, "worker:0", 0);
    again.initialise(1);
    EXPECT_EQ(stop_of(again.join()), StopReason::none);
  }
}

TEST(ControlStreams, TheLateEndOfAnOldOneDoesNotCountAProcessOut) {
  Ps0 ps(1, Durability::process);
  Peer old_control(ps, "worker:0", 0, true);
  Peer control(ps, "worker:0", 0, true);
  Peer data(ps, "worker:0", 0);
  data.initialise(1);
  EXPECT_EQ(stop_of(data.join()), StopReason::none);
  ASSERT_EQ(ps.server().progress().active, 1);
  old_control.close();
  EXPECT_EQ(ps.server().progress().active, 1);
  EXPECT_TRUE(data.pulls());
  EXPECT_THAT(ps.lines(), IsEmpty());
  control.close();
  EXPECT_EQ(ps.server().progress().active, 0);
  ASSERT_EQ(ps.lines().size(), 1U);
  EXPECT_THAT(ps.lines().front(), HasSubstr("its connection closed; training goes on"));
}

/// A control stream of another process that says it is worker:1.
std::unique_ptr<transport::Stream> another_worker_1(const Ps0& ps) {
  std::unique_ptr<transport::Stream> stream = transport::testing::connected(ps.spec().ps.front());
  wire::Hello hello;
  hello.set_protocol(kProtocol);
  hello.set_role("worker:1");
  hello.set_member(1);
  hello.set_incarnation(7);
  hello.set_job(ps.job());
  hello.set_host("far");
  hello.set_pid(4711);
  hello.set_folder("/elsewhere");
  transport::Header first = header(Kind::hello);
  first.flags = kControl;
  EXPECT_TRUE(send(*stream, first, hello).ok());
  return stream;
}

TEST(Roles, ASecondProcessIsRefusedWhileTheFirstLivesAndBothAreNamed) {
  Ps0 ps(2, Durability::process);
  Peer first(ps, "worker:1", 1, true);
  const auto second = another_worker_1(ps);
  std::atomic<bool> answered = false;
  std::thread heartbeats([&] {
    while (!answered) first.say(header(Kind::heartbeat));
  });
  const auto answer = second->read();
  answered = true;
  heartbeats.join();
  ASSERT_TRUE(answer);
  ASSERT_EQ(kind_of(answer.value()), Kind::refuse);
  const std::string here = std::filesystem::current_path().string();
  const auto names_both = AllOf(HasSubstr(fmt::format("worker:1 is process {} on", ::getpid())), HasSubstr(here),
                                HasSubstr("process 4711 on far in /elsewhere at 127.0.0.1"), HasSubstr("is refused"));
  EXPECT_EQ(read_refusal(answer.value()).kind, RefusalKind::taken);
  EXPECT_THAT(answer.value().text(), names_both);
  EXPECT_THAT(ps.lines(), ElementsAre(names_both)) << "the server says it, too";
}

TEST(Roles, ASecondProcessTakesThePlaceOfOneThatDies) {
  Ps0 ps(2, Durability::process);
  Peer first(ps, "worker:1", 1, true);
  const auto second = another_worker_1(ps);
  first.close();
  const auto answer = second->read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(kind_of(answer.value()), Kind::welcome);
}

/// Refuses the first hello on a data stream, and welcomes later ones.
class RefusesOnce {
 public:
  explicit RefusesOnce(RefusalKind kind)
      : server_(transport::testing::any_port(), [this, kind](transport::Stream& stream) {
          const auto hello = stream.read();
          if (!hello) return;
          stream.admit();
          const bool data = (hello.value().header.flags & kControl) == 0;
          if (data && refusals_++ == 0) {
            static_cast<void>(wire::send_refusal(stream, header(Kind::refuse), {kind, "the disk is full"}));
            return;
          }
          static_cast<void>(send(stream, header(Kind::welcome), wire::Welcome()));
          while (stream.read()) {
          }
        }) {}
  [[nodiscard]] std::string address() const { return transport::testing::address_of(server_); }

 private:
  std::atomic<int> refusals_ = 0;
  transport::Server server_;
};

ServerLinkOptions link_to(const RefusesOnce& server) {
  ServerLinkOptions options;
  options.server = "ps:0";
  options.address = server.address();
  options.hello.set_member(0);
  options.hello.set_role("worker:0");
  options.log = [](std::string_view, const std::string&) {};
  return options;
}

TEST(Refusals, AServerThatFailsIsAskedAgain) {
  const RefusesOnce server(RefusalKind::failed);
  ServerLink link(link_to(server));
  const auto stream = link.stream("its welcome");
  EXPECT_TRUE(stream) << stream.failure().message();
}

TEST(Refusals, AnotherReasonEndsTheWorker) {
  const RefusesOnce server(RefusalKind::job);
  ServerLink link(link_to(server));
  EXPECT_THROW(static_cast<void>(link.stream("its welcome")), UsageError);
}

/// Welcomes all streams at an address, and sends heartbeats.
class Welcomes {
 public:
  explicit Welcomes(const std::string& address)
      : server_(options_at(address), [this](transport::Stream& stream) { serve(stream); }) {}
  /// From now on nothing arrives on the latest data stream, so nothing is answered. False where filters of sockets are
  /// not allowed, as in some containers.
  [[nodiscard]] bool swallow_data() {
    const base::MutexLock lock(mutex_);
    sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog program{1, &drop};
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int number = std::stoi(entry.path().filename());
      if (transport::peer_of(number) != data_) continue;
      found += static_cast<int>(setsockopt(number, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0);
    }
    return found > 0;
  }
  std::atomic<bool> controls = false;  ///< it has welcomed a control stream

 private:
  static transport::ServerOptions options_at(const std::string& address) {
    transport::ServerOptions options = transport::testing::any_port();
    options.address = address;
    return options;
  }
  void serve(transport::Stream& stream) {
    const auto hello = stream.read();
    if (!hello) return;
    stream.admit();
    const bool control = (hello.value().header.flags & kControl) != 0;
    if (!control) {
      const base::MutexLock lock(mutex_);
      data_ = stream.peer();
    }
    static_cast<void>(send(stream, header(Kind::welcome), wire::Welcome()));
    if (control) controls = true;
    while (control && stream.write(header(Kind::heartbeat))) {
      const base::MutexLock lock(mutex_);
      pause_.wait_for(mutex_, std::chrono::milliseconds(100));
    }
    while (stream.read()) {
    }
  }

  base::Mutex mutex_;
  base::Condition pause_;
  std::string data_ LOCKSTEP_GUARDED_BY(mutex_);  ///< other end of the latest data stream
  transport::Server server_;
};

/// A link, and what it says.
class TalkingLink {
 public:
  explicit TalkingLink(const std::string& address) : link_(options_to(address)) {}
  [[nodiscard]] ServerLink& link() { return link_; }
  [[nodiscard]] bool says(const std::string& text) {
    return transport::testing::eventually([&] {
      const base::MutexLock lock(mutex_);
      return std::any_of(lines_.begin(), lines_.end(), [&](const auto& line) { return line.find(text) != line.npos; });
    });
  }

 private:
  ServerLinkOptions options_to(const std::string& address) {
    ServerLinkOptions options;
    options.server = "ps:0";
    options.address = address;
    options.log = [this](std::string_view, const std::string& text) {
      const base::MutexLock lock(mutex_);
      lines_.push_back(text);
    };
    return options;
  }

  base::Mutex mutex_;
  std::vector<std::string> lines_ LOCKSTEP_GUARDED_BY(mutex_);
  ServerLink link_;
};

TEST(Losses, OfAServerAreToldThoughNobodyWaitsForIt) {
  const transport::testing::KeptPort port;
  auto server = std::make_unique<Welcomes>(port.address());
  TalkingLink talking(port.address());
  ASSERT_TRUE(transport::testing::eventually([&] { return server->controls.load(); }));
  server.reset();
  EXPECT_TRUE(talking.says("ps:0 at " + port.address() + ": its connection closed; connecting again"));
  server = std::make_unique<Welcomes>(port.address());
  EXPECT_TRUE(talking.says("ps:0 at " + port.address() + " is back"));
}

/// Heartbeats go on, so without a look at the connection itself its answer would be waited for as long as TCP asks
/// again: a quarter of an hour.
TEST(Losses, OfADataStreamAloneAreFound) {
  const transport::testing::KeptPort port;
  Welcomes server(port.address());
  TalkingLink talking(port.address());
  transport::Stream& stream = *talking.link().stream("the test").value_or_throw();
  if (!server.swallow_data()) GTEST_SKIP() << "filters of sockets are not allowed here";
  EXPECT_TRUE(stream.write(header(Kind::pull)));
  EXPECT_FALSE(stream.read());
  EXPECT_TRUE(talking.says("ps:0 at " + port.address() + ": no answer on the connection of data for"));
  EXPECT_TRUE(talking.link().stream("the test"));
  EXPECT_EQ(talking.link().connections(), 2U);
}

/// Two workers do not read their parameters, and there is no room for a fourth copy of them.
TEST(FullDisk, AnUpdateWaitsForAWorkerToReadAndNothingElseDoes) {
  constexpr size_t kMany = size_t{4} << 20;
  Ps0 ps(3, Durability::process, 3 * kMany * sizeof(float) + (size_t{6} << 20));
  if (!ps.has_disk()) GTEST_SKIP() << "cannot mount a tmpfs";
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1, false, kMany);
  chief.say(header(Kind::join));
  const wire::Plan plan = chief.read_reply().plan();
  const std::vector<float> gradient(kMany, 0.5F);
  std::vector<std::unique_ptr<Peer>> slow;
  for (const int member : {1, 2}) {
    slow.push_back(std::make_unique<Peer>(ps, "worker:" + std::to_string(member), member));
    slow.back()->say(header(Kind::pull));
    ASSERT_TRUE(slow.back()->stream().read());  // no more than the beginning
    chief.push(static_cast<uint64_t>(member), plan, gradient);
    ASSERT_TRUE(chief.read_reply().applied());
  }
  chief.push(3, plan, gradient);
  while (ps.lines().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ps.server().progress().version, 2U);
  static_cast<void>(slow.front()->read_reply());
  EXPECT_TRUE(chief.read_reply().applied());
  EXPECT_EQ(ps.server().progress().version, 3U);
  EXPECT_THAT(ps.lines(), ElementsAre(HasSubstr("ps:0: no room for another copy of the parameters in")));
}

TEST(EvaluatorsStop, IsKeptByAServerThatDies) {
  Ps0 ps(1, Durability::process);
  {
    Peer chief(ps, "worker:0", 0);
    chief.initialise(1);
    Peer evaluator(ps, "evaluator:0", -1);
    evaluator.say(stop_for(StopReason::accuracy));
    chief.wait_end();  // the stop has arrived
  }
  ps.kill();
  ps.start();
  EXPECT_EQ(stop_of(Peer(ps, "worker:0", 0).join()), StopReason::accuracy);
}

TEST(EvaluatorsStop, StaysWhenParametersAreSetAnew) {
  Ps0 ps(1, Durability::process);
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1);
  Peer evaluator(ps, "evaluator:0", -1);
  evaluator.say(stop_for(StopReason::loss));
  chief.wait_end();
  chief.initialise(2);
  EXPECT_EQ(stop_of(chief.join()), StopReason::loss);
}

TEST(EvaluatorsStop, ThatComesBeforeTheFirstParametersCounts) {
  Ps0 ps(1, Durability::checkpoint);
  Peer evaluator(ps, "evaluator:0", -1);
  evaluator.say(stop_for(StopReason::accuracy));
  Peer chief(ps, "worker:0", 0);
  chief.initialise(1);
  // Its wait is over with the parameters; an answer to the chief may still come before it.
  EXPECT_TRUE(transport::testing::eventually([&] { return stop_of(chief.join()) == StopReason::accuracy; }));
}

}  // namespace
}  // namespace lockstep::ps
