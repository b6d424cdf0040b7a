// Members as objects of this process, over real sockets on loopback, each with a thread that trains: steps of an
// all-reduce in which everyone adds one. What kill -9 and SIGSTOP do to processes is in elastic_process_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "allreduce/elastic/checkpoint_follower.h"
#include "allreduce/elastic/elastic_membership.h"
#include "allreduce/elastic/messages.h"
#include "allreduce/fake_engine.h"
#include "base/temp_dir.h"
#include "cluster.pb.h"
#include "cluster/cluster_file.h"
#include "cluster/keys.h"
#include "transport/streams.h"
#include "wire/frames.h"

namespace lockstep::allreduce {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeEngine;
using ::testing::HasSubstr;
using transport::testing::eventually;

struct Lines {
  void add(std::string_view level, const std::string& text) {
    const std::lock_guard lock(mutex);
    all.push_back(std::string(level) + ": " + text);
  }
  std::vector<std::string> get() {
    const std::lock_guard lock(mutex);
    return all;
  }
  bool has(const std::string& part) {
    const auto lines = get();
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != line.npos; });
  }
  std::mutex mutex;
  std::vector<std::string> all;
};

/// One member that trains until it is told to stop.
class Trainee {
 public:
  Trainee(ElasticOptions options, FakeEngine& engine) {
    options.engine = [&engine](int rank, int size) { return engine.join(rank, size); };
    options.log = [this](std::string_view level, const std::string& text) { lines.add(level, text); };
    options.interrupt = &interrupt;
    membership = std::make_unique<ElasticMembership>(std::move(options));
  }
  ~Trainee() { vanish(); }
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  void train() {
    thread_ = std::thread([this] { run(); });
  }
  /// As if the process were gone: its connections end, and nobody listens at its address.
  void vanish() {
    interrupt = true;
    {
      const std::lock_guard lock(mutex_);
      if (collective_) collective_->abort("the test ends");
    }
    if (thread_.joinable()) thread_.join();
    membership.reset();
  }
  /// Until training ended by `finish` of any member.
  void wait() { thread_.join(); }

  std::vector<int> group() {
    const std::lock_guard lock(mutex_);
    return members_;
  }
  uint64_t number() {
    const std::lock_guard lock(mutex_);
    return number_;
  }
  std::string failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  std::unique_ptr<ElasticMembership> membership;
  std::atomic<bool> interrupt = false;
  std::atomic<bool> finish = false;
  std::atomic<bool> led = false;
  std::atomic<bool> hold_end = false;
  std::atomic<uint64_t> step = 0;
  std::atomic<int> transfers = 0;
  Lines lines;

 private:
  void run() {
    Standing standing;
    standing.data.next_pass = 7;
    while (true) {
      base::Result<Formed> formed = membership->form(standing);
      if (!formed) {
        const std::lock_guard lock(mutex_);
        failure_ = formed.failure().message;
        return;
      }
      standing = formed.value().standing;
      standing.live = true;
      if (formed.value().transfer) ++transfers;
      const bool rank0 = formed.value().collective->rank() == 0;
      {
        const std::lock_guard lock(mutex_);
        members_ = formed.value().members;
        number_ = formed.value().number;
        collective_ = formed.value().collective;
      }
      const bool over = steps(*formed.value().collective, standing, rank0);
      {
        const std::lock_guard lock(mutex_);
        collective_.reset();
      }
      if (over) return close();
    }
  }
  /// True: all agreed to stop.
  bool steps(collective::Collective& collective, Standing& standing, bool rank0) {
    while (!interrupt) {
      std::vector<float> values{1, finish ? 1.0F : 0.0F, rank0 && membership->wants_regroup() ? 1.0F : 0.0F};
      if (!collective.all_reduce(values)) return false;
      if (values[1] > 0) return true;
      step = ++standing.step;
      if (rank0) membership->publish(standing.step, std::vector<float>(3, static_cast<float>(standing.step)));
      if (values[2] > 0) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  void close() {
    const base::Result<bool> leads = membership->close();
    if (!leads || !leads.value()) return;
    led = true;
    while (hold_end && !interrupt) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!interrupt) membership->end();
  }

  std::mutex mutex_;
  std::vector<int> members_;
  uint64_t number_ = 0;
  std::string failure_;
  std::shared_ptr<collective::Collective> collective_;
  std::thread thread_;
};

class Cluster : public ::testing::Test {
 protected:
  void make(int count) {
    spec = cluster::local_spec({.workers = count, .ps = 0, .evaluator = true, .layout = ""});
    members.resize(static_cast<size_t>(count));
  }
  ElasticOptions options(int member) {
    ElasticOptions made;
    made.spec = spec;
    made.task = spec.members()[static_cast<size_t>(member)];
    made.job = "the job";
    made.run = "lenet-3";
    change(made);
    return made;
  }
  void start(int member) {
    members[static_cast<size_t>(member)] = std::make_unique<Trainee>(options(member), engine);
    members[static_cast<size_t>(member)]->train();
  }
  void start_all() {
    for (size_t i = 0; i < members.size(); ++i) start(static_cast<int>(i));
  }
  Trainee& at(int member) { return *members[static_cast<size_t>(member)]; }
  /// Everyone of the group is in it and makes steps.
  bool trains(const std::vector<int>& group) {
    return eventually([&] {
             return std::all_of(group.begin(), group.end(), [&](int member) { return at(member).group() == group; });
           }) &&
           advances(group.front());
  }
  bool advances(int member) {
    const uint64_t before = at(member).step;
    return eventually([&] { return at(member).step > before + 2; });
  }
  std::string name(int member) {
    const cluster::Task task = spec.members()[static_cast<size_t>(member)];
    return task.str() + " at " + spec.address(task);
  }

  cluster::Spec spec;
  FakeEngine engine;
  std::function<void(ElasticOptions&)> change = [](ElasticOptions&) {};
  std::vector<std::unique_ptr<Trainee>> members;
};

TEST_F(Cluster, FormsAGroupOfAllAndTrains) {
  make(3);
  start_all();
  EXPECT_TRUE(trains({0, 1, 2}));
  EXPECT_EQ(at(0).number(), 1U);
}

TEST_F(Cluster, GoesOnWithoutOneThatIsGoneAndNamesIt) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  const uint64_t before = at(0).step;
  at(1).vanish();
  EXPECT_TRUE(trains({0, 2}));
  EXPECT_GE(at(0).step, before);
  EXPECT_EQ(at(0).transfers + at(2).transfers, 2) << "only at the start; or one was a step ahead";
  EXPECT_TRUE(at(0).lines.has(name(1) + ": connection closed")) << ::testing::PrintToString(at(0).lines.get());
}

TEST_F(Cluster, GoesOnWithoutItsLeader) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).vanish();
  EXPECT_TRUE(trains({1, 2}));
}

TEST_F(Cluster, TheLastOneGoesOnAlone) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).vanish();
  at(1).vanish();
  EXPECT_TRUE(trains({2}));
}

TEST_F(Cluster, LetsInWhoComesBack) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).vanish();
  ASSERT_TRUE(trains({1, 2}));
  const uint64_t before = at(1).step;
  start(0);
  ASSERT_TRUE(trains({0, 1, 2}));
  EXPECT_GT(at(0).step, before) << "it goes on where the others are";
}

TEST_F(Cluster, EndsTogether) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(2).finish = true;
  for (int i = 0; i < 3; ++i) at(i).wait();
  EXPECT_TRUE(at(0).led);
  EXPECT_FALSE(at(1).led || at(2).led);
}

TEST_F(Cluster, ANewLeaderClosesWhenTheFirstDies) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).hold_end = true;
  at(0).finish = true;
  ASSERT_TRUE(eventually([&] { return at(0).led.load(); }));
  EXPECT_FALSE(at(1).led);
  at(0).vanish();
  at(1).wait();
  at(2).wait();
  EXPECT_TRUE(at(1).led);
  EXPECT_FALSE(at(2).led);
}

TEST_F(Cluster, WhoComesDuringTheEndHearsThatItIsOver) {
  make(2);
  start_all();
  ASSERT_TRUE(trains({0, 1}));
  at(1).vanish();
  ASSERT_TRUE(trains({0}));
  at(0).hold_end = true;
  at(0).finish = true;
  ASSERT_TRUE(eventually([&] { return at(0).led.load(); }));
  start(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(at(1).failure(), "") << "not all is written yet";
  at(0).hold_end = false;
  at(1).wait();
  EXPECT_THAT(at(1).failure(), HasSubstr("training is over"));
  EXPECT_TRUE(at(1).membership->over());
  at(0).wait();
}

TEST_F(Cluster, AnInterruptEndsTheWaitForOthers) {
  make(2);
  start(1);
  ASSERT_TRUE(eventually([&] { return at(1).membership != nullptr; }));
  at(1).interrupt = true;
  at(1).wait();
  EXPECT_THAT(at(1).failure(), HasSubstr("interrupted"));
}

TEST_F(Cluster, AMemberOfAnotherJobIsRefusedAndToldWhy) {
  make(2);
  start(0);
  change = [](ElasticOptions& o) { o.job = "another job"; };
  start(1);
  at(1).wait();
  EXPECT_THAT(at(1).failure(), HasSubstr(name(0) + " refused worker:1: worker:1 trains something else than worker:0"));
  EXPECT_TRUE(eventually([&] { return at(0).lines.has("worker:1 trains something else than worker:0"); }));
}

TEST_F(Cluster, TheRunsNameIsToldToWhoAsks) {
  make(2);
  start(0);
  ElasticOptions asks = options(1);
  const base::Result<std::string> run = ask_run_name(asks);
  ASSERT_TRUE(run.ok()) << run.failure().message;
  EXPECT_EQ(run.value(), "lenet-3");
}

TEST_F(Cluster, NobodyToAskIsAFailureThatNamesThem) {
  make(2);
  ElasticOptions asks = options(1);
  asks.patience = 0.2;
  const base::Result<std::string> run = ask_run_name(asks);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.failure().message, HasSubstr(name(0) + ": connection refused"));
}

TEST_F(Cluster, OverTls) {
  const lockstep::testing::TempDir folder;
  cluster::make_keys(folder / "keys", {});
  make(2);
  change = [&](ElasticOptions& o) { o.security.keys = folder / "keys"; };
  start_all();
  EXPECT_TRUE(trains({0, 1}));
}

TEST_F(Cluster, AnEvaluatorFollowsTheLeaderWhoeverThatIs) {
  make(2);
  start_all();
  ASSERT_TRUE(trains({0, 1}));
  ElasticOptions asks = options(0);
  asks.task = {cluster::Role::evaluator, 0};
  CheckpointFollower follower(asks);
  std::vector<float> parameters(3);
  const std::optional<uint64_t> first = follower.next(0, parameters);
  ASSERT_TRUE(first);
  EXPECT_THAT(parameters, ::testing::Each(static_cast<float>(*first)));
  at(0).vanish();
  ASSERT_TRUE(trains({1}));
  uint64_t step = at(1).step;
  const std::optional<uint64_t> next = follower.next(step, parameters);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, step);
  EXPECT_THAT(parameters, ::testing::Each(static_cast<float>(*next)));
  EXPECT_EQ(at(1).membership->evaluators_word(), train::StopReason::none);
  follower.stop(train::StopReason::accuracy);
  EXPECT_EQ(at(1).membership->evaluators_word(), train::StopReason::accuracy);
  at(1).finish = true;
  while (const auto more = follower.next(step, parameters)) step = *more;
  at(1).wait();
}

TEST_F(Cluster, AnEvaluatorOfAnotherModelIsToldSo) {
  make(1);
  start_all();
  ASSERT_TRUE(trains({0}));
  ElasticOptions asks = options(0);
  asks.task = {cluster::Role::evaluator, 0};
  CheckpointFollower follower(asks);
  std::vector<float> parameters(4);
  EXPECT_THROW(follower.next(0, parameters), DataError);
}

/// What no member sends.
class Stranger : public Cluster {
 protected:
  std::unique_ptr<transport::Stream> connected(int member) {
    return transport::testing::connected(spec.address(spec.members()[static_cast<size_t>(member)]));
  }
  wire::Hello hello(const std::string& role, int member) {
    wire::Hello made;
    made.set_protocol(elastic::kProtocol);
    made.set_role(role);
    made.set_member(member);
    made.set_incarnation(99);
    made.set_job("the job");
    return made;
  }
  std::string answer(const transport::Header& header, const std::string& bytes) {
    const auto stream = connected(0);
    static_cast<void>(wire::send_text(*stream, header, bytes));
    const base::Result<transport::Frame> frame = stream->read();
    return frame ? frame.value().text() : frame.failure().message;
  }
};

TEST_F(Stranger, IsRefusedWithAReasonAndDisturbsNobody) {
  make(2);
  start_all();
  ASSERT_TRUE(trains({0, 1}));
  using elastic::header;
  using elastic::Kind;
  EXPECT_THAT(answer(header(Kind::hello), "\xff\xff\xff"), HasSubstr("damaged"));
  EXPECT_THAT(answer(header(Kind::proposal), ""), HasSubstr("no greeting"));
  EXPECT_THAT(answer({.kind = 1}, ""), HasSubstr("no greeting"));
  wire::Hello other = hello("worker:1", 1);
  other.set_protocol(77);
  EXPECT_THAT(answer(header(Kind::hello), other.SerializeAsString()), HasSubstr("protocol 77"));
  EXPECT_THAT(answer(header(Kind::hello), hello("worker:1", 0).SerializeAsString()), HasSubstr("not 0"));
  EXPECT_THAT(answer(header(Kind::hello), hello("worker:0", 0).SerializeAsString()), HasSubstr("does not connect"));
  EXPECT_THAT(answer(header(Kind::hello), hello("worker:7", -1).SerializeAsString()), HasSubstr("does not connect"));
  EXPECT_THAT(answer(header(Kind::hello), hello("nobody", -1).SerializeAsString()), HasSubstr("nobody"));
  EXPECT_TRUE(advances(0));
  EXPECT_EQ(at(0).number(), 1U);
}

TEST_F(Stranger, ThatActsAsAMemberAndSendsNonsenseIsGivenUp) {
  make(3);
  change = [](ElasticOptions& o) { o.start_wait = 0.5; };
  start(0);
  start(1);
  ASSERT_TRUE(trains({0, 1}));
  const std::vector<std::pair<elastic::Kind, std::string>> nonsense = {
      {elastic::Kind::status, "\x08"},
      {elastic::Kind::decision, "xyz"},
      {elastic::Kind::acceptance, elastic::encode(elastic::Acceptance{})},
      {elastic::Kind::welcome, ""},
  };
  for (const auto& [kind, bytes] : nonsense) {
    const auto stream = connected(0);
    ASSERT_TRUE(wire::send(*stream, elastic::header(elastic::Kind::hello), hello("worker:2", 2)));
    ASSERT_TRUE(stream->read());
    static_cast<void>(wire::send_text(*stream, elastic::header(kind), bytes));
    while (stream->read()) {
    }
  }
  EXPECT_TRUE(at(0).lines.has(name(2) + " sent what makes no sense"));
  EXPECT_TRUE(advances(0));
}

TEST_F(Stranger, ThatSaysNothingIsGivenUp) {
  make(1);
  start_all();
  ASSERT_TRUE(trains({0}));
  const auto stream = connected(0);
  const base::Result<transport::Frame> frame = stream->read();
  ASSERT_FALSE(frame);
  EXPECT_TRUE(advances(0));
}

TEST_F(Stranger, ThatIsAMemberWithoutHeartbeatsIsGivenUpAndNamed) {
  make(2);
  start(0);
  const auto stream = connected(0);
  ASSERT_TRUE(wire::send(*stream, elastic::header(elastic::Kind::hello), hello("worker:1", 1)));
  elastic::Status status;
  status.incarnation = 99;
  ASSERT_TRUE(wire::send_text(*stream, elastic::header(elastic::Kind::status), elastic::encode(status)));
  while (stream->read()) {
  }
  start(1);
  EXPECT_TRUE(trains({0, 1}));
}

}  // namespace
}  // namespace lockstep::allreduce
