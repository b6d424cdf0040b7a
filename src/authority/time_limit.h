// Ends calls of a library over sockets in time, whatever the other side does. Libraries limit each read and each
// connection by itself, so a server that sends a byte from time to time keeps a call for ever.
//
// At the deadline every socket of the call is shut down, also those that the library makes later, until the call has
// returned. One thread of its own; any thread may call `stop`, one other thread the rest.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"

namespace lockstep::authority {

class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  TimeLimit();
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  /// A call begins.
  void begin(Clock::time_point until);
  /// The call uses this socket from now on, in place of the one before.
  void watch(int socket);
  /// The call has returned. Returns true if it was cut short.
  bool end();
  /// The socket is not used any more: its last handle here is closed.
  void forget();
  /// Cuts the call short, and all later ones.
  void stop();

 private:
  void run();

  base::Mutex mutex_;
  base::Condition wake_;
  base::FileHandle socket_ LOCKSTEP_GUARDED_BY(mutex_);  ///< another handle, so that its number is not used again
  std::optional<Clock::time_point> until_ LOCKSTEP_GUARDED_BY(mutex_);
  bool stopped_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool cut_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Looks up names of hosts, each with one thread at most, however often it is asked: a lookup cannot be ended, so the
/// next question waits for the one under way. For one thread; lookups may outlive it.
class Resolver {
 public:
  /// Returns the addresses of a host as numbers, or nothing if none are known by then: looking up a name may take long.
  /// `given_up` is asked about ten times a second.
  std::vector<std::string> resolve_until(const std::string& host, TimeLimit::Clock::time_point until,
                                         const std::function<bool()>& given_up);

 private:
  struct Lookup;
  std::map<std::string, std::shared_ptr<Lookup>> under_way_;
};

}  // namespace lockstep::authority
