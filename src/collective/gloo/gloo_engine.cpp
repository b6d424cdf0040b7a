#include "collective/gloo/gloo_engine.h"

#include <fmt/format.h>

#include <condition_variable>
#include <optional>
#include <thread>

#include "base/broken_pipe.h"
#include "collective/gloo/operations.h"

namespace lockstep::collective {
namespace {

using gloo_engine::Clock;
using gloo_engine::LinkError;
using gloo_engine::Links;

constexpr std::chrono::milliseconds kAskEvery{100};
constexpr std::chrono::seconds kPatience{2};

/// State shared by a member and its calls, so that a group may be destroyed while a call is in flight.
class State {
 public:
  explicit State(std::shared_ptr<Links> links) : links_(std::move(links)) {}

  template <class Operation>
  base::Status run(const char* name, size_t bytes, Operation operation) {
    if (const auto why = failed()) return *why;
    const base::NoBrokenPipe no_signal;
    links_->set_deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(links_->deadline()));
    try {
      operation(*links_);
      return {};
    } catch (const LinkError& error) {
      fail(base::Failure(error.failure())
               .because(fmt::format("gloo: {} of {} bytes between {} members", name, bytes, links_->size())));
      return *failed();
    }
  }

  /// Keeps the first reason. Ends the connections, so that the others fail soon too.
  void fail(base::Failure why) {
    {
      const std::lock_guard lock(mutex_);
      if (why_) return;
      why_ = std::move(why);
    }
    links_->interrupt();
  }

  [[nodiscard]] const Links& links() const { return *links_; }

 private:
  std::optional<base::Failure> failed() {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  const std::shared_ptr<Links> links_;
  std::mutex mutex_;
  std::optional<base::Failure> why_;
};

class GlooGroup final : public Collective {
 public:
  explicit GlooGroup(std::shared_ptr<Links> links) : state_(std::make_shared<State>(std::move(links))) {}
  ~GlooGroup() override {
    if (state_.use_count() > 1) state_->fail({base::FailureKind::gone, "the group was destroyed"});
  }
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  [[nodiscard]] std::string_view engine() const override { return "gloo"; }
  [[nodiscard]] int rank() const override { return state_->links().rank(); }
  [[nodiscard]] int size() const override { return state_->links().size(); }

  base::Status all_reduce(void* data, size_t count, Element element) override {
    const std::span bytes(static_cast<std::byte*>(data), count * bytes_of(element));
    return with_state("all-reduce", bytes.size(),
                      [&](Links& links) { gloo_engine::all_reduce(links, bytes, element); });
  }
  base::Status broadcast(std::span<std::byte> data, int root) override {
    if (root < 0 || root >= size())
      throw UsageError(fmt::format("broadcast from rank {}, but there are {} ranks", root, size()));
    return with_state("broadcast", data.size(), [&](Links& links) { gloo_engine::broadcast(links, data, root); });
  }
  base::Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (all.size() != mine.size() * static_cast<size_t>(size())) {
      throw UsageError(fmt::format("gather of {} bytes from {} ranks into {}", mine.size(), size(), all.size()));
    }
    return with_state("gather", mine.size(), [&](Links& links) { gloo_engine::all_gather(links, mine, all); });
  }
  base::Status barrier() override {
    return with_state("barrier", 0, [](Links& links) { gloo_engine::barrier(links); });
  }

  void abort(const std::string& why) override { state_->fail({base::FailureKind::gone, why}); }
  [[nodiscard]] Traffic traffic() const override { return state_->links().traffic(); }

 private:
  template <class Operation>
  base::Status with_state(const char* name, size_t bytes, Operation operation) {
    const std::shared_ptr<State> state = state_;
    return state->run(name, bytes, operation);
  }

  std::shared_ptr<State> state_;
};

/// Progress of a thread that connects; it may be abandoned.
struct Attempt {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::optional<base::Failure> failure;
};

void run_attempt(const std::shared_ptr<Links>& links, const std::vector<std::string>& addresses, Attempt& attempt) {
  const base::NoBrokenPipe no_signal;
  std::optional<base::Failure> failure;
  try {
    links->connect(addresses);
  } catch (const LinkError& error) {
    failure = error.failure();
  } catch (const std::exception& error) {
    failure = base::Failure::of(error);
  }
  const std::lock_guard lock(attempt.mutex);
  attempt.failure = std::move(failure);
  attempt.done = true;
  attempt.changed.notify_all();
}

class GlooJoining final : public Joining {
 public:
  GlooJoining(const std::string& host, int rank, int size, const GroupOptions& options)
      : links_(std::make_shared<Links>(host, rank, size, options)) {}

  [[nodiscard]] std::string address() const override { return links_->address(); }

  base::Result<std::unique_ptr<Collective>> connect(const std::vector<std::string>& addresses,
                                                    const std::function<bool()>& give_up) override {
    const auto attempt = std::make_shared<Attempt>();
    std::thread([links = links_, addresses, attempt] { run_attempt(links, addresses, *attempt); }).detach();
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(links_->deadline());
    std::unique_lock lock(attempt->mutex);
    std::optional<base::Failure> why;
    while (!attempt->changed.wait_for(lock, kAskEvery, [&] { return attempt->done; })) {
      lock.unlock();
      if (give_up && give_up()) why = base::Failure{base::FailureKind::interrupted, "given up"};
      if (Clock::now() >= until) {
        why = base::Failure{base::FailureKind::timeout,
                            fmt::format("not all connected within {:g} s", links_->deadline().count())};
      }
      lock.lock();
      if (why) break;
    }
    if (why && !attempt->done) {
      lock.unlock();
      links_->interrupt();
      lock.lock();
      attempt->changed.wait_for(lock, kPatience, [&] { return attempt->done; });
    }
    if (!why) why = attempt->failure;
    if (why) {
      links_->interrupt();
      return std::move(*why).because(fmt::format("gloo: connecting {} members", links_->size()));
    }
    return std::unique_ptr<Collective>(std::make_unique<GlooGroup>(links_));
  }

 private:
  const std::shared_ptr<Links> links_;
};

}  // namespace

std::unique_ptr<Joining> join_over_gloo(const std::string& host, int rank, int size, const GroupOptions& options) {
  return std::make_unique<GlooJoining>(host, rank, size, options);
}

}  // namespace lockstep::collective
