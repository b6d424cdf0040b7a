#include "allreduce/communicator.h"

#include <exception>
#include <utility>

#include "base/denormals.h"

namespace lockstep::allreduce {

using Clock = std::chrono::steady_clock;

namespace {

/// An exception on the communicator's thread would end the program.
base::Status guarded(const Communicator::Operation& operation) try {
  return operation();
} catch (const std::exception& error) {
  return base::Failure::of(error);
}

}  // namespace

Communicator::~Communicator() {
  {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Communicator::post(Operation operation) {
  const base::MutexLock lock(mutex_);
  if (next_ == queue_.size()) {
    queue_.clear();
    next_ = 0;
  }
  queue_.push_back(std::move(operation));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void Communicator::drain() {
  const base::MutexLock lock(mutex_);
  while (next_ < queue_.size() || running_) changed_.wait(mutex_);
}

base::Status Communicator::run(const Operation& operation) {
  drain();
  execute(operation);
  const base::MutexLock lock(mutex_);
  if (failure_) return *failure_;
  return {};
}

void Communicator::reset() {
  drain();
  const base::MutexLock lock(mutex_);
  failure_.reset();
}

double Communicator::take_seconds() {
  const base::MutexLock lock(mutex_);
  return std::exchange(seconds_, 0);
}

void Communicator::execute(const Operation& operation) {
  {
    const base::MutexLock lock(mutex_);
    if (failure_) return;
  }
  const base::FlushDenormals flush;  // sums give the same bits on every thread
  const Clock::time_point start = Clock::now();
  base::Status done = guarded(operation);
  const base::MutexLock lock(mutex_);
  seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  if (!done && !failure_) failure_ = done.failure();
}

void Communicator::work() {
  for (;;) {
    Operation operation;
    {
      const base::MutexLock lock(mutex_);
      while (next_ == queue_.size() && !ended_) changed_.wait(mutex_);
      if (next_ == queue_.size()) return;
      operation = std::move(queue_[next_++]);
      running_ = true;
    }
    execute(operation);
    const base::MutexLock lock(mutex_);
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace lockstep::allreduce
