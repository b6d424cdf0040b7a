// A mutex, its lock and a condition variable for clang's thread-safety analysis. Members name the mutex that guards
// them; a clang build fails if one is used without it.
//
//   base::Mutex mutex_;
//   int count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
//   ...
//   const base::MutexLock lock(mutex_);
//   ++count_;
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define LOCKSTEP_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LOCKSTEP_THREAD_ANNOTATION(x)
#endif
#define LOCKSTEP_GUARDED_BY(mutex) LOCKSTEP_THREAD_ANNOTATION(guarded_by(mutex))
#define LOCKSTEP_REQUIRES(mutex) LOCKSTEP_THREAD_ANNOTATION(requires_capability(mutex))

namespace lockstep::base {

class LOCKSTEP_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() LOCKSTEP_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() LOCKSTEP_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  /// Tells the analysis that the mutex is held, in a lambda that is only called then.
  void assert_held() const LOCKSTEP_THREAD_ANNOTATION(assert_capability(this)) {}

 private:
  std::mutex mutex_;
};

class LOCKSTEP_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LOCKSTEP_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() LOCKSTEP_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable. Write waits as loops around `wait`, so that the analysis sees guarded members read under the
/// lock.
class Condition {
 public:
  void wait(Mutex& mutex) LOCKSTEP_REQUIRES(mutex) { condition_.wait(mutex); }
  void wait_for(Mutex& mutex, std::chrono::nanoseconds at_most) LOCKSTEP_REQUIRES(mutex) {
    condition_.wait_for(mutex, at_most);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace lockstep::base
