// Times of pushes at the workers and at the server. The server reports to each worker how long its push waited for
// others.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "base/temp_dir.h"
#include "ps/ps_exchange.h"
#include "ps/server.h"
#include "transport/streams.h"

namespace lockstep::ps {
namespace {

constexpr int64_t kParameters = 2000;
constexpr int kPushes = 20;

/// A server and two workers in this process.
class Cluster {
 public:
  Cluster(bool sync, int64_t max_staleness) : sync_(sync), max_staleness_(max_staleness) {
    options_.spec.ps = {port_.address()};
    options_.spec.workers = {"127.0.0.1:1", "127.0.0.1:2"};
    options_.folder = folder_ / "ps-0";
    options_.job = "0123456789abcdef";
    options_.run = "run";
    options_.interrupt = &interrupt_;
    options_.tracer = &tracer_;
    server_ = std::make_unique<Server>(options_);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Cluster() {
    interrupt_ = true;
    thread_.join();
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Returns the total time that one worker spent, with `pause` for each push, after the first.
  exchange::Spent work(int index, std::chrono::milliseconds pause) {
    program::ParameterStore parameters({{"weights", {kParameters}, {}, {}}}, 1);
    PsExchange exchange(parameters, worker_options(index, parameters));
    exchange::StepInfo info = *exchange.join().value_or_throw();
    exchange::Spent sum;
    for (int i = 0; i < kPushes; ++i) {
      exchange.begin({info.step, 1, 1});
      std::this_thread::sleep_for(pause);
      exchange.ready({1000, 1000}, {});
      exchange.ready({0, 1000}, {});
      info = exchange.finish({1, 0, 1}).value_or_throw();
      const exchange::Spent& spent = info.spent;
      const double parts = spent.push + spent.pull + spent.others + spent.optimizer;
      EXPECT_NEAR(parts, info.wait_seconds, 1e-6) << "they add up to the wait";
      EXPECT_GT(spent.early_push, 0.0);
      if (i == 0) continue;
      sum.pull += spent.pull;
      sum.others += spent.others;
    }
    static_cast<void>(exchange.leave({train::StopReason::steps}));
    if (index == 0) exchange.end();
    return sum;
  }
  [[nodiscard]] std::vector<const base::TraceTrack*> tracks() const { return tracer_.tracks(); }
  [[nodiscard]] std::vector<base::DurationRecord> times() const { return server_->times(); }

 private:
  PsOptions worker_options(int index, program::ParameterStore& parameters) {
    PsOptions options;
    options.spec = options_.spec;
    options.task = {cluster::Role::worker, index};
    options.job = options_.job;
    options.bucket_bytes = 1000 * sizeof(float);
    options.coordination.sync = sync_;
    options.coordination.max_staleness = max_staleness_;
    options.coordination.members = 2;
    options.coordination.batch = 1;
    options.coordination.examples = 1000;
    options.coordination.start_wait = 100;
    options.log = [](std::string_view, const std::string&) {};
    options.initial = [&parameters] { return Initial{0, 0, parameters.values(), {}, {}}; };
    return options;
  }

  ::lockstep::testing::TempDir folder_;
  transport::testing::KeptPort port_;
  base::Tracer tracer_;
  bool sync_;
  int64_t max_staleness_;
  ServerOptions options_;
  std::atomic<bool> interrupt_ = false;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

std::vector<exchange::Spent> spent_by_two(Cluster& cluster, std::chrono::milliseconds pause) {
  std::vector<exchange::Spent> spent(2);
  std::thread second([&] { spent[1] = cluster.work(1, pause); });
  spent[0] = cluster.work(0, std::chrono::milliseconds(0));
  second.join();
  return spent;
}

using Holds = std::function<bool(const std::vector<exchange::Spent>&)>;

/// Other programs on this machine take time as well: the second worker is slowed down until its share outweighs theirs.
std::vector<exchange::Spent> spent_with_a_slow_one(bool sync, int64_t max_staleness, const Holds& holds) {
  std::vector<exchange::Spent> spent;
  for (const int pause : {20, 80, 320, 1280}) {
    Cluster cluster(sync, max_staleness);
    spent = spent_by_two(cluster, std::chrono::milliseconds(pause));
    if (holds(spent)) break;
  }
  return spent;
}

TEST(PsPhases, ASlowWorkerIsWhatTheOthersWaitForInSync) {
  const std::vector<exchange::Spent> spent =
      spent_with_a_slow_one(true, -1, [](const std::vector<exchange::Spent>& workers) {
        return workers[0].others > 3 * std::max(workers[0].pull, workers[1].others);
      });
  EXPECT_GT(spent[0].others, 3 * spent[0].pull);
  EXPECT_GT(spent[0].others, 3 * spent[1].others) << "nobody waits for the one who waits";
}

TEST(PsPhases, ASlowWorkerIsWhatTheOthersWaitForWithinBoundedStaleness) {
  const std::vector<exchange::Spent> spent = spent_with_a_slow_one(
      false, 1, [](const std::vector<exchange::Spent>& workers) { return workers[0].others > workers[0].pull; });
  EXPECT_GT(spent[0].others, spent[0].pull);
}

TEST(PsPhases, NobodyWaitsForOthersInAsync) {
  const auto waits_for_the_server = [](const exchange::Spent& worker) { return worker.pull > 3 * worker.others; };
  const std::vector<exchange::Spent> spent =
      spent_with_a_slow_one(false, -1, [&](const std::vector<exchange::Spent>& workers) {
        return std::all_of(workers.begin(), workers.end(), waits_for_the_server);
      });
  for (const exchange::Spent& worker : spent) EXPECT_GT(worker.pull, 3 * worker.others);
}

std::map<std::string_view, base::DurationRecord> server_records(std::chrono::milliseconds pause) {
  Cluster cluster(true, -1);
  spent_by_two(cluster, pause);
  std::map<std::string_view, base::DurationRecord> records;
  for (const base::DurationRecord& record : cluster.times()) records[record.name] = record;
  return records;
}

TEST(PsPhases, AServerKnowsWhereItsTimeWent) {
  std::map<std::string_view, base::DurationRecord> records;
  for (const int pause : {5, 50, 500}) {
    records = server_records(std::chrono::milliseconds(pause));
    if (records["wait"].seconds > records["apply"].seconds) break;
  }
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records["receive"].count, 2U * kPushes);
  EXPECT_EQ(records["apply"].count, 1U * kPushes);
  EXPECT_EQ(records["store"].count, 1U * kPushes);
  EXPECT_GE(records["send"].count, 2U * kPushes);
  EXPECT_GT(records["wait"].seconds, records["apply"].seconds);
  for (const auto& [name, record] : records) {
    EXPECT_LE(record.p50, record.p95) << name;
    EXPECT_LE(record.p95, record.p99) << name;
    EXPECT_GT(record.mean, 0) << name;
  }
}

TEST(PsPhases, WhoTracesNothingHasNoTrack) {
  Cluster cluster(true, -1);
  spent_by_two(cluster, std::chrono::milliseconds(0));
  ASSERT_EQ(cluster.tracks().size(), 1U);
  EXPECT_EQ(cluster.tracks()[0]->name(), "updates");
}

TEST(ServerTrace, AWorkerThatComesBackGoesOnOnItsTrack) {
  base::Tracer tracer;
  ServerTrace trace(&tracer, 0);
  base::TraceTrack* const first = trace.borrow("worker:1");
  base::TraceTrack* const meanwhile = trace.borrow("worker:1");
  EXPECT_NE(first, meanwhile) << "one writer at a time";
  EXPECT_NE(trace.borrow("worker:2"), first);
  const size_t tracks = tracer.tracks().size();
  trace.give_back("worker:1", first);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(trace.borrow("worker:1"), first);
    trace.give_back("worker:1", first);
  }
  EXPECT_EQ(tracer.tracks().size(), tracks);
}

TEST(PsPhases, AReplyWithAnImpossibleWaitIsRefused) {
  wire::Reply reply;
  check(reply);
  for (const double waited :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    reply.set_waited_seconds(waited);
    EXPECT_THROW(check(reply), DataError) << waited;
  }
}

}  // namespace
}  // namespace lockstep::ps
