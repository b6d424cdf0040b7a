#include "allreduce/elastic/watchdog.h"

#include <fmt/format.h>

namespace lockstep::allreduce::elastic {
namespace {

constexpr std::chrono::milliseconds kLookAtClock{100};

}  // namespace

Watchdog::Watchdog(const std::atomic<bool>* interrupt) : interrupt_(interrupt), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void Watchdog::watch(transport::Stream* stream, std::chrono::milliseconds at_most) {
  const base::MutexLock lock(mutex_);
  stream_ = stream;
  limit_ = at_most;
  until_ = std::chrono::steady_clock::now() + at_most;
  wake_.notify_all();
}

void Watchdog::pause(std::chrono::milliseconds at_most) const {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!interrupted() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(kLookAtClock, until - std::chrono::steady_clock::now()));
  }
}

void Watchdog::run() {
  const base::MutexLock lock(mutex_);
  while (!stopping_) {
    if (stream_ == nullptr) {
      wake_.wait(mutex_);
      continue;
    }
    wake_.wait_for(mutex_, kLookAtClock);
    if (stream_ == nullptr) continue;
    const bool late = std::chrono::steady_clock::now() > until_;
    if (!late && !interrupted()) continue;
    stream_->cancel(late ? fmt::format("no answer within {:.1f} s", std::chrono::duration<double>(limit_).count())
                         : std::string("interrupted"));
    stream_ = nullptr;
  }
}

}  // namespace lockstep::allreduce::elastic
