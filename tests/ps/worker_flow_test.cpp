// A worker's decisions, with servers that a test plays call by call.
#include "ps/worker_flow.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "ps/job.h"

namespace lockstep::ps {
namespace {

/// Servers whose connections may be ended by the other side alone: then calls fail until the connection is dropped and
/// made again, and nobody says so before.
class PlayedServers final : public Servers {
 public:
  struct Played {
    bool connected = false;
    bool ended_there = false;
    uint64_t connections = 0;
    int pushes = 0;
    bool away = false;  ///< connecting takes all patience, and fails
    int waits = 0;      ///< such calls
  };
  std::vector<Played> all{2};
  int dies = -1;  ///< the connection of this server is lost while the one after it is being connected
  int holes = 0;  ///< waits for an answer that needs a server whose connection was lost before

  [[nodiscard]] int count() const override { return static_cast<int>(all.size()); }
  base::Status connect(int server, const std::string& /*awaited*/) override {
    Played& to = at(server);
    if (to.connected) return {};
    if (to.away) {
      ++to.waits;
      return base::Failure{base::FailureKind::gone, "nobody listens"};
    }
    to = {true, false, to.connections + 1, to.pushes};
    if (dies >= 0 && server == dies + 1) at(std::exchange(dies, -1)).connected = false;
    return {};
  }
  [[nodiscard]] uint64_t connections(int server) const override { return all[static_cast<size_t>(server)].connections; }
  [[nodiscard]] bool intact(int server) override { return at(server).connected; }
  [[nodiscard]] const wire::Welcome& welcome(int /*server*/) const override { return welcome_; }
  void drop(int server, const std::string& /*why*/) override { at(server).connected = false; }
  [[nodiscard]] bool ended(int /*server*/) const override { return false; }
  [[nodiscard]] train::StopReason why_ended(int /*server*/) const override { return train::StopReason::none; }
  void waits_for(int /*server*/) override {}
  base::Status push(int server, bool /*whole*/) override {
    ++at(server).pushes;
    return say(server);
  }
  base::Result<Parameters> read_parameters(int server) override {
    const base::Status fine = say(server);
    if (!fine) return fine.failure();
    Parameters parameters;
    parameters.reply.set_applied(true);
    parameters.reply.set_generation(1);
    return parameters;
  }
  base::Status ask_to_join(uint64_t /*version*/, uint64_t /*generation*/) override {
    for (const Played& to : all) holes += static_cast<int>(!to.connected);
    return say(0);
  }
  base::Status ask_for(int server, uint64_t /*version*/) override { return say(server); }
  uint64_t find_initial() override { return 0; }
  base::Status initialise(int server, uint64_t /*generation*/) override { return say(server); }
  base::Status say_leave(const wire::Leave& /*leave*/) override { return say(0); }
  base::Result<bool> wait_end() override { return false; }
  base::Status hold() override { return say(0); }
  void release() override {}
  base::Result<uint64_t> read_state(int /*server*/, uint64_t version) override { return version; }

 private:
  Played& at(int server) { return all[static_cast<size_t>(server)]; }
  base::Status say(int server) {
    const Played& to = at(server);
    if (to.connected && !to.ended_there) return {};
    return base::Failure{base::FailureKind::gone, "the connection has ended"};
  }

  wire::Welcome welcome_ = [] {
    wire::Welcome welcome;
    welcome.set_initialised(true);
    welcome.set_generation(1);
    return welcome;
  }();
};

TEST(WorkerFlow, ConnectsAgainToAServerThatEndedTheConnectionOfAPush) {
  constexpr int kMost = 100;  // pushes, before the test gives up
  for (const int server : {0, 1}) {
    PlayedServers servers;
    WorkerFlowOptions options;
    options.member = 1;
    options.sync = false;
    options.log = [](std::string_view, const std::string&) {};
    options.interrupted = [&] { return servers.all[0].pushes + servers.all[1].pushes > kMost; };
    WorkerFlow flow(servers, options);
    ASSERT_TRUE(flow.join());
    flow.begin(1);
    servers.all[static_cast<size_t>(server)].ended_there = true;
    flow.send();
    const base::Result<exchange::StepInfo> info = flow.await();
    ASSERT_TRUE(info) << "ps:" << server << ": " << info.failure().message();
    EXPECT_TRUE(info.value().applied());
    EXPECT_EQ(servers.all[static_cast<size_t>(server)].connections, 2U);
  }
}

TEST(WorkerFlow, WaitsOnceForAServerThatDoesNotComeBack) {
  for (const int server : {0, 1}) {
    PlayedServers servers;
    WorkerFlowOptions options;
    options.member = 1;
    options.sync = false;
    options.log = [](std::string_view, const std::string&) {};
    options.interrupted = [] { return false; };
    WorkerFlow flow(servers, options);
    ASSERT_TRUE(flow.join());
    flow.begin(1);
    flow.send();
    PlayedServers::Played& lost = servers.all[static_cast<size_t>(server)];
    lost.ended_there = lost.away = true;  // before its answer
    EXPECT_FALSE(flow.await());
    EXPECT_EQ(lost.waits, 1) << "ps:" << server;
  }
}

/// Nothing ends such a wait: the loss was noticed before it began.
TEST(WorkerFlow, DoesNotWaitForAnAnswerThatNeedsAServerItHasLost) {
  PlayedServers servers;
  servers.all.resize(3);
  servers.dies = 1;
  WorkerFlowOptions options;
  options.log = [](std::string_view, const std::string&) {};
  options.interrupted = [] { return false; };
  WorkerFlow flow(servers, options);
  ASSERT_TRUE(flow.join());
  EXPECT_EQ(servers.holes, 0);
  EXPECT_EQ(servers.all[1].connections, 2U);
}

TEST(LinkWatch, FindsADataStreamThatBreaksWhileHeartbeatsGoOn) {
  LinkWatch watch;
  watch.data_connecting(0);
  double now = 0;
  const auto look = [&](std::optional<double> unanswered) {
    now += 0.25;
    watch.heard(now);
    EXPECT_FALSE(watch.silent(now));
    return watch.data_silent(unanswered, now).has_value();
  };
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(look(std::nullopt)) << "idle, or all is answered";
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(look(i % 10 == 0 ? std::optional<double>(i) : std::nullopt)) << "asked rarely, and answered at once";
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(look(1.5)) << "each answer takes long";
  const double since = now;
  int looks = 0;
  while (++looks < 1000 && !look(now - since)) continue;
  EXPECT_GE(now - since, 5);
  EXPECT_LE(now - since, 6);
  EXPECT_FALSE(look(now - since)) << "said once";
}

TEST(LinkWatch, TellsOnceOfAServerWhoseConnectionClosedAndThatItIsBack) {
  LinkWatch watch;
  watch.control_connected(10);
  EXPECT_FALSE(watch.back()) << "the first connection";
  EXPECT_FALSE(watch.tell_away(100));
  watch.control_lost(100);
  EXPECT_FALSE(watch.tell_away(100.5));
  EXPECT_FALSE(watch.back()) << "it was restarted at once";
  EXPECT_FALSE(watch.tell_away(102));
  watch.control_lost(110);
  watch.control_lost(111);  // a connection that was not welcomed
  EXPECT_TRUE(watch.tell_away(111.2));
  EXPECT_FALSE(watch.tell_away(112));
  EXPECT_TRUE(watch.back());
  watch.control_lost(120);
  watch.told();
  EXPECT_FALSE(watch.tell_away(122)) << "its silence was told";
  EXPECT_TRUE(watch.back());
}

/// Another process of the same name may have joined in between, and left again.
TEST(Job, AMemberWhoseLeavingDidNotCountJoinsAgain) {
  JobOptions options;
  options.members = {"worker:0", "worker:1"};
  options.servers = {"ps:0"};
  Job job(options, 0);
  CoordinatorOptions rules;
  rules.sync = false;
  rules.members = 2;
  rules.examples = 10;
  rules.passes = 1;
  wire::JobConfig config;
  to_wire(rules, config);
  config.set_generation(1);
  const auto open = [&](int member, uint64_t incarnation) {
    wire::Hello hello;
    hello.set_role("worker:" + std::to_string(member));
    hello.set_member(member);
    hello.set_incarnation(incarnation);
    return job.open(hello, 0);
  };
  const SessionId chief = open(0, 100);
  job.set_parameters(chief, config, 0, job.coordinator_for(config, 0, {}, 0));
  job.parameters_set(0);
  const SessionId first = open(1, 1);
  job.join(first, 0, 0);
  job.join(open(1, 2), 0, 0);  // another one
  const SessionId again = open(1, 1);
  job.leave(again, {}, 0);
  job.wait(again, {Wait::end});
  ASSERT_TRUE(job.over(again)) << job.reason(again);
  wire::Snapshot end;
  EXPECT_TRUE(job.end_of(again, end, 0)) << "there is work left";
}

}  // namespace
}  // namespace lockstep::ps
