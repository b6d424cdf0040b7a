// A server's part of a trace: for each worker the handling of its pushes, and the versions made. Times are those of
// Server::now(). Without a tracer it does nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/tracer.h"
#include "ps/messages.h"

namespace lockstep::ps {

class ServerTrace {
 public:
  ServerTrace(base::Tracer* tracer, int server);

  /// Lends a track to a worker's session, which alone writes to it until it returns it; the next session reuses it.
  /// Returns null without a tracer.
  [[nodiscard]] base::TraceTrack* borrow(const std::string& worker);
  void give_back(const std::string& worker, base::TraceTrack* track);

  // The stages of a push; called by the session's hand.
  void received(base::TraceTrack& track, uint64_t sequence, double begin, double end) const;
  void waited(base::TraceTrack& track, uint64_t sequence, double begin, double end) const;
  void sent(base::TraceTrack& track, const wire::Hello& to, uint64_t sequence, double begin, double end) const;
  /// Lock-free: records that the hand itself applied a push.
  void applied(base::TraceTrack& track, const wire::Hello& from, uint64_t sequence, double begin, double end) const;

  // Updates; one thread at a time. The last `stored` seconds of an update made it durable; `contributed` marks its
  // gradients.
  void updated(uint64_t version, double begin, double end, double stored);
  void contributed(const wire::Hello& from, uint64_t sequence, double begin);

  /// Nanoseconds since 1970; 0 without a tracer.
  [[nodiscard]] int64_t since_epoch(double at) const;

 private:
  base::Tracer* tracer_;
  int server_;
  base::TraceTrack* updates_ = nullptr;
  const base::TraceLabel* receive_ = nullptr;
  const base::TraceLabel* wait_ = nullptr;
  const base::TraceLabel* send_ = nullptr;
  const base::TraceLabel* apply_ = nullptr;
  const base::TraceLabel* store_ = nullptr;
  const base::TraceLabel* push_ = nullptr;
  const base::TraceLabel* pull_ = nullptr;
  base::Mutex mutex_;
  std::map<std::string, std::vector<base::TraceTrack*>> idle_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
