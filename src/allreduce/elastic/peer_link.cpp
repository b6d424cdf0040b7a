#include "allreduce/elastic/peer_link.h"

#include <fmt/format.h>

#include <utility>

#include "wire/frames.h"

namespace lockstep::allreduce::elastic {

PeerLink::PeerLink(transport::Stream& stream, std::function<Outgoing()> heartbeat, Source source)
    : stream_(stream), heartbeat_(std::move(heartbeat)), source_(std::move(source)), writer_([this] { write_all(); }) {}

PeerLink::~PeerLink() {
  {
    const base::MutexLock lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  stream_.cancel("the link ended");
  writer_.join();
}

void PeerLink::send(Outgoing outgoing) {
  const base::MutexLock lock(mutex_);
  queue_.push_back(std::move(outgoing));
  wake_.notify_all();
}

void PeerLink::send_from_source() {
  const base::MutexLock lock(mutex_);
  source_has_some_ = true;
  wake_.notify_all();
}

void PeerLink::heard() {
  const base::MutexLock lock(mutex_);
  heard_ = wire::Clock::now();
}

void PeerLink::check_silence() {
  const base::MutexLock lock(mutex_);
  const auto silent = wire::Clock::now() - heard_;
  if (silent < wire::kSilence || !why_.empty()) return;
  why_ = fmt::format("no heartbeat for {:.1f} s", std::chrono::duration<double>(silent).count());
  stream_.cancel(why_);
}

void PeerLink::cancel(const std::string& why) {
  const base::MutexLock lock(mutex_);
  if (why_.empty()) why_ = why;
  stream_.cancel(why);
}

std::string PeerLink::why() const {
  const base::MutexLock lock(mutex_);
  return why_;
}

void PeerLink::write_all() {
  for (;;) {
    std::deque<Outgoing> batch;
    bool more = false;
    {
      const base::MutexLock lock(mutex_);
      const auto until = wire::Clock::now() + wire::kHeartbeat;
      while (!ended_ && queue_.empty() && !source_has_some_ && wire::Clock::now() < until) {
        wake_.wait_for(mutex_, until - wire::Clock::now());
      }
      if (ended_) return;
      batch.swap(queue_);
      more = std::exchange(source_has_some_, false);
    }
    if (more) {
      for (Outgoing& outgoing : source_()) batch.push_back(std::move(outgoing));
    }
    if (batch.empty()) batch.push_back(heartbeat_());
    for (const Outgoing& outgoing : batch) {
      if (!wire::send_text(stream_, outgoing.header, outgoing.bytes)) return;
    }
  }
}

}  // namespace lockstep::allreduce::elastic
