// Servers and workers in this process that train asynchronously: every update is on each server or on none.
#include <gmock/gmock.h>

#include <memory>
#include <thread>

#include "base/temp_dir.h"
#include "ps/ps_exchange.h"
#include "ps/server.h"
#include "transport/streams.h"

namespace lockstep::ps {
namespace {

constexpr int64_t kElements = 3000;
constexpr uint64_t kSteps = 300;

/// `servers` parameter servers and `workers` workers, with the steps limited to kSteps.
class AsyncCluster {
 public:
  AsyncCluster(int servers, int workers, bool lock_free) : lock_free_(lock_free), ports_(static_cast<size_t>(servers)) {
    for (const transport::testing::KeptPort& port : ports_) spec_.ps.push_back(port.address());
    for (int i = 0; i < workers; ++i) spec_.workers.push_back("127.0.0.1:" + std::to_string(i + 1));
    servers_.resize(ports_.size());
    threads_.resize(ports_.size());
    for (int i = 0; i < servers; ++i) start(i);
  }
  ~AsyncCluster() {
    interrupt_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  AsyncCluster(const AsyncCluster&) = delete;
  AsyncCluster& operator=(const AsyncCluster&) = delete;

  /// Trains until the steps are made; the values that worker `index` has at the end.
  std::vector<float> work(int index) {
    program::ParameterStore parameters({{"weights", {kElements}, {}, {}}}, 1);
    PsExchange exchange(parameters, worker_options(index, parameters));
    exchange::StepInfo info = *exchange.join().value_or_throw();
    while (!info.stop) {
      exchange.begin({info.step, 1, 1});
      std::fill(parameters.gradients().begin(), parameters.gradients().end(), 1.0F);
      exchange.ready({0, kElements}, {});
      info = exchange.finish({1, 0, 1}).value_or_throw();
    }
    static_cast<void>(exchange.leave({info.stop->reason}));
    versions_at_the_end();
    if (index == 0) exchange.end();
    return {parameters.values().begin(), parameters.values().end()};
  }
  [[nodiscard]] std::vector<uint64_t> versions() const {
    const base::MutexLock lock(mutex_);
    return versions_;
  }

 private:
  void start(int index) {
    ServerOptions options;
    options.index = index;
    options.spec = spec_;
    options.folder = folder_ / ("ps-" + std::to_string(index));
    options.job = "0123456789abcdef";
    options.run = "run";
    options.interrupt = &interrupt_;
    auto& server = servers_[static_cast<size_t>(index)];
    server = std::make_unique<Server>(options);
    threads_[static_cast<size_t>(index)] = std::thread([&server] { server->run(); });
  }
  void versions_at_the_end() {
    const base::MutexLock lock(mutex_);
    versions_.clear();
    for (const auto& server : servers_) versions_.push_back(server->progress().version);
  }
  PsOptions worker_options(int index, program::ParameterStore& parameters) {
    PsOptions options;
    options.spec = spec_;
    options.task = {cluster::Role::worker, index};
    options.job = "0123456789abcdef";
    options.lock_free = lock_free_;
    options.rules.schedule.base = 0.5F;
    options.coordination.sync = false;
    options.coordination.members = static_cast<int>(spec_.workers.size());
    options.coordination.servers = static_cast<int>(spec_.ps.size());
    options.coordination.batch = 1;
    options.coordination.examples = 100000;
    options.coordination.limit_steps = kSteps;
    options.log = [](std::string_view, const std::string&) {};
    options.initial = [&parameters] { return Initial{0, 0, parameters.values(), {}, {}}; };
    return options;
  }

  bool lock_free_;
  ::lockstep::testing::TempDir folder_;
  std::vector<transport::testing::KeptPort> ports_;
  cluster::Spec spec_;
  std::atomic<bool> interrupt_ = false;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::thread> threads_;
  mutable base::Mutex mutex_;
  std::vector<uint64_t> versions_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// The last steps' pushes are under way together: ps:0 takes one of them and refuses the others.
void expect_the_same_version_everywhere(bool lock_free) {
  constexpr int kWorkers = 4;
  AsyncCluster cluster(3, kWorkers, lock_free);
  std::vector<std::thread> workers;
  for (int i = 1; i < kWorkers; ++i) workers.emplace_back([&cluster, i] { static_cast<void>(cluster.work(i)); });
  const std::vector<float> values = cluster.work(0);
  for (std::thread& worker : workers) worker.join();
  EXPECT_THAT(cluster.versions(), ::testing::Each(kSteps));
  if (!lock_free) {
    EXPECT_THAT(values, ::testing::Each(values.front())) << "each part has taken the same gradients";
  }
}

TEST(SeveralServers, EndAtTheSameVersion) { expect_the_same_version_everywhere(false); }

TEST(SeveralServers, EndAtTheSameVersionWithoutLocks) { expect_the_same_version_everywhere(true); }

}  // namespace
}  // namespace lockstep::ps
