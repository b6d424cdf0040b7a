#include "collective/throttled.h"

#include <bit>

#include "base/mutex.h"

namespace lockstep::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Messages in a row until data of one member has reached all.
double hops(int size) { return std::bit_width(static_cast<unsigned>(size - 1)); }

Seconds time_of(const Network& network, double messages, double bytes) {
  return messages * network.latency + Seconds(bytes / network.bytes_per_second);
}

class Throttled final : public Collective {
 public:
  Throttled(std::shared_ptr<Collective> engine, const Network& network)
      : engine_(std::move(engine)), network_(network) {}

  [[nodiscard]] std::string_view engine() const override { return engine_->engine(); }
  [[nodiscard]] int rank() const override { return engine_->rank(); }
  [[nodiscard]] int size() const override { return engine_->size(); }
  [[nodiscard]] Traffic traffic() const override { return engine_->traffic(); }

  base::Status all_reduce(void* data, size_t count, Element element) override {
    return slowly(all_reduce_time(network_, size(), count * bytes_of(element)),
                  [&] { return engine_->all_reduce(data, count, element); });
  }
  base::Status broadcast(std::span<std::byte> data, int root) override {
    return slowly(time_of(network_, hops(size()), size() == 1 ? 0 : static_cast<double>(data.size())),
                  [&] { return engine_->broadcast(data, root); });
  }
  base::Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return slowly(time_of(network_, hops(size()), static_cast<double>(all.size() - mine.size())),
                  [&] { return engine_->all_gather(mine, all); });
  }
  base::Status barrier() override {
    return slowly(time_of(network_, hops(size()), 0), [] { return base::Status(); });
  }

  void abort(const std::string& why) override {
    engine_->abort(why);
    const base::MutexLock lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

 private:
  /// The simulated transfer starts when the last member has arrived.
  template <class Operation>
  base::Status slowly(Seconds time, const Operation& operation) {
    if (auto met = engine_->barrier(); !met) return met;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    auto done = operation();
    if (!done) return done;
    return sleep_until(end) ? std::move(done) : engine_->barrier();
  }

  /// Returns false if aborted.
  bool sleep_until(Clock::time_point end) {
    const base::MutexLock lock(mutex_);
    for (auto now = Clock::now(); !aborted_ && now < end; now = Clock::now()) changed_.wait_for(mutex_, end - now);
    return !aborted_;
  }

  std::shared_ptr<Collective> engine_;
  Network network_;
  base::Mutex mutex_;
  base::Condition changed_;
  bool aborted_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

}  // namespace

Seconds all_reduce_time(const Network& network, int size, size_t bytes) {
  return time_of(network, 2 * hops(size), 2.0 * (size - 1) / size * static_cast<double>(bytes));
}

std::unique_ptr<Collective> throttle(std::shared_ptr<Collective> engine, const Network& network) {
  return std::make_unique<Throttled>(std::move(engine), network);
}

}  // namespace lockstep::collective
