// An update under way on a server, whose worker leaves, comes back or is replaced meanwhile: its gradient is applied
// once, and that of the next process once. The server hears the others meanwhile.
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include "base/temp_dir.h"
#include "ps/ps_exchange.h"
#include "ps/server.h"
#include "transport/streams.h"

namespace lockstep::ps {
namespace {

constexpr size_t kEach = 1024;  ///< elements on each of two servers
constexpr float kRate = 0.5F;

/// Holds the updates of a server before they are applied.
class Gate {
 public:
  void pass() {
    const base::MutexLock lock(mutex_);
    held_ = !open_;
    changed_.notify_all();
    while (!open_) changed_.wait(mutex_);
  }
  void wait_until_held() {
    const base::MutexLock lock(mutex_);
    while (!held_) changed_.wait(mutex_);
  }
  void open() {
    const base::MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  base::Mutex mutex_;
  base::Condition changed_;
  bool open_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool held_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

/// Two servers and the chief, which has set the parameters to zeros. The updates of ps:1 are held by a gate.
class HeldCluster {
 public:
  explicit HeldCluster(bool lock_free) : parameters_({{"weights", {2 * kEach}, {}, {}}}, 1) {
    for (const transport::testing::KeptPort& port : ports_) spec_.ps.push_back(port.address());
    spec_.workers = {"127.0.0.1:1", "127.0.0.1:2"};
    for (int i = 0; i < 2; ++i) start(i);
    std::fill(parameters_.values().begin(), parameters_.values().end(), 0.0F);
    PsOptions options;
    options.spec = spec_;
    options.task = {cluster::Role::worker, 0};
    options.job = kJob;
    options.lock_free = lock_free;
    options.rules.schedule.base = kRate;
    options.coordination.sync = false;
    options.coordination.members = options.coordination.servers = 2;
    options.coordination.examples = 1000;
    options.log = [](std::string_view, const std::string&) {};
    options.initial = [this] { return Initial{0, 0, parameters_.values(), {}, {}}; };
    chief_ = std::make_unique<PsExchange>(parameters_, options);
    static_cast<void>(chief_->join().value_or_throw());
  }
  ~HeldCluster() {
    gate.open();
    chief_.reset();
    interrupt_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  HeldCluster(const HeldCluster&) = delete;
  HeldCluster& operator=(const HeldCluster&) = delete;

  [[nodiscard]] ServerLinkOptions link_to(int server, uint64_t incarnation, int member = 1) const {
    ServerLinkOptions options;
    options.server = "ps:" + std::to_string(server);
    options.address = spec_.ps[static_cast<size_t>(server)];
    options.hello.set_protocol(kProtocol);
    options.hello.set_role("worker:" + std::to_string(member));
    options.hello.set_member(member);
    options.hello.set_incarnation(incarnation);
    options.hello.set_job(kJob);
    introduce(options.hello);
    options.log = [](std::string_view, const std::string&) {};
    return options;
  }
  void wait_for_version(int server, uint64_t version) const {
    const Server& at = *servers_[static_cast<size_t>(server)];
    EXPECT_TRUE(transport::testing::eventually([&] { return at.progress().version == version; }));
  }
  /// The next process of the chief tells ps:0 alone that training has ended.
  void end_at_ps0() {
    chief_.reset();
    ServerLink link(link_to(0, 301, 0));
    transport::Stream& stream = *link.stream("the test").value_or_throw();
    EXPECT_TRUE(stream.write(header(Kind::end)));
    EXPECT_EQ(kind_of(stream.read().value_or_throw()), Kind::ok);
  }
  /// Whether ps:1 hears from ps:0 that training has ended.
  [[nodiscard]] bool hears_the_end() const {
    return transport::testing::eventually([&] { return servers_[1]->progress().state == "done"; },
                                          std::chrono::seconds(30));
  }
  /// Until ps:1 has finished with the streams of worker:1; the chief has one.
  void wait_until_dismissed() const {
    EXPECT_TRUE(transport::testing::eventually([&] { return servers_[1]->progress().active == 1; }));
  }
  Gate gate;

 private:
  static constexpr const char* kJob = "0123456789abcdef";

  void start(int index) {
    const auto i = static_cast<size_t>(index);
    ServerOptions options;
    options.index = index;
    options.spec = spec_;
    options.folder = folder_ / ("ps-" + std::to_string(index));
    options.job = kJob;
    options.run = "run";
    options.interrupt = &interrupt_;
    if (index == 1) options.at_update = [this] { gate.pass(); };
    servers_[i] = std::make_unique<Server>(options);
    threads_[i] = std::thread([server = servers_[i].get()] { server->run(); });
  }

  ::lockstep::testing::TempDir folder_;
  std::array<transport::testing::KeptPort, 2> ports_;
  cluster::Spec spec_;
  std::atomic<bool> interrupt_ = false;
  std::array<std::unique_ptr<Server>, 2> servers_;
  std::array<std::thread, 2> threads_;
  program::ParameterStore parameters_;
  std::unique_ptr<PsExchange> chief_;
};

/// A process of worker:1, which a test plays frame by frame.
class Worker1 {
 public:
  Worker1(const HeldCluster& cluster, uint64_t incarnation)
      : links_{std::make_unique<ServerLink>(cluster.link_to(0, incarnation)),
               std::make_unique<ServerLink>(cluster.link_to(1, incarnation))} {
    EXPECT_TRUE(stream(0).write(header(Kind::join)));
    plan_ = answer(0).plan().id();
  }

  /// Sends a gradient of equal elements to both servers.
  void push(uint64_t sequence, float gradient) {
    for (const int server : {1, 0}) push_to(server, sequence, gradient);
  }
  void push_to(int server, uint64_t sequence, float gradient) {
    wire::PushEnd end;
    end.set_plan(plan_);
    end.set_rounds(1);
    end.set_examples(1);
    end.set_gradient_scale(1);
    transport::Header elements = header(Kind::push);
    elements.sequence = sequence;
    const std::vector<float> values(kEach, gradient);
    const auto hold = std::make_shared<int>(0);
    EXPECT_TRUE(send_elements(stream(server), elements, values, Element::kFloat32, hold, &end));
    while (hold.use_count() > 1) std::this_thread::yield();
  }
  wire::Reply answer(int server) {
    for (;;) {
      const transport::Frame frame = stream(server).read().value_or_throw();
      EXPECT_EQ(kind_of(frame), Kind::parameters) << frame.text();
      if (server == 1) take_elements(frame, values_);
      if ((frame.header.flags & kLast) == 0) continue;
      const auto reply = parse<wire::Reply>(frame);
      if (reply.has_plan()) plan_ = reply.plan().id();
      return reply;
    }
  }
  /// Loses its data stream to a server, and connects again.
  void lose(int server) { links_[static_cast<size_t>(server)]->drop("the test drops it"); }
  /// The parameters of ps:1, once it is at this version.
  const std::vector<float>& values(uint64_t version) {
    transport::Header pull = header(Kind::pull);
    pull.version = version;
    EXPECT_TRUE(stream(1).write(pull));
    static_cast<void>(answer(1));
    return values_;
  }

 private:
  transport::Stream& stream(int server) {
    return *links_[static_cast<size_t>(server)]->stream("the test").value_or_throw();
  }

  std::array<std::unique_ptr<ServerLink>, 2> links_;
  uint64_t plan_ = 0;
  std::vector<float> values_ = std::vector<float>(kEach);
};

/// Lock-free or not.
class UpdateUnderWay : public ::testing::TestWithParam<bool> {
 protected:
  /// Lock-free, a gradient that version 2 counts may be applied a moment after it.
  static void expect_both(Worker1& worker) {
    const auto both = [&] { return ::testing::Matches(::testing::Each(-kRate * (1 + 2)))(worker.values(2)); };
    EXPECT_TRUE(GetParam() ? transport::testing::eventually(both) : both());
  }
};

TEST_P(UpdateUnderWay, CountsWhoseWorkerLeft) {
  HeldCluster cluster(GetParam());
  auto first = std::make_unique<Worker1>(cluster, 101);
  first->push(1, 1);
  cluster.gate.wait_until_held();
  first.reset();
  cluster.wait_until_dismissed();
  cluster.gate.open();
  Worker1 next(cluster, 201);
  next.push(1, 2);
  EXPECT_TRUE(next.answer(0).applied());
  static_cast<void>(next.answer(1));
  expect_both(next);
}

TEST_P(UpdateUnderWay, CountsOnceIfItsWorkerComesBackWithIt) {
  HeldCluster cluster(GetParam());
  Worker1 worker(cluster, 101);
  worker.push(1, 1);
  EXPECT_TRUE(worker.answer(0).applied());
  cluster.gate.wait_until_held();
  worker.lose(1);
  worker.push_to(1, 1, 1);
  cluster.gate.open();
  static_cast<void>(worker.answer(1));
  worker.push(2, 2);
  EXPECT_TRUE(worker.answer(0).applied());
  static_cast<void>(worker.answer(1));
  expect_both(worker);
}

TEST_P(UpdateUnderWay, IsNotMistakenForThePushOfTheNextProcess) {
  HeldCluster cluster(GetParam());
  auto first = std::make_unique<Worker1>(cluster, 101);
  first->push(1, 1);
  cluster.gate.wait_until_held();
  first.reset();
  Worker1 next(cluster, 201);
  next.push(1, 2);
  cluster.wait_for_version(0, 2);  // so ps:1 has its push
  cluster.gate.open();
  EXPECT_TRUE(next.answer(0).applied());
  static_cast<void>(next.answer(1));
  expect_both(next);
}

TEST_P(UpdateUnderWay, DoesNotKeepTheServerFromReadingWhatPs0Says) {
  HeldCluster cluster(GetParam());
  Worker1 worker(cluster, 101);
  worker.push(1, 1);
  EXPECT_TRUE(worker.answer(0).applied());
  cluster.gate.wait_until_held();
  cluster.end_at_ps0();
  EXPECT_TRUE(cluster.hears_the_end());
}

INSTANTIATE_TEST_SUITE_P(LockedAndLockFree, UpdateUnderWay, ::testing::Bool(),
                         [](const auto& param) { return std::string(param.param ? "LockFree" : "Locked"); });

}  // namespace
}  // namespace lockstep::ps
