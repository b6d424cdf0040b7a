#include "base/tracer.h"

namespace lockstep::base {
namespace {

int64_t nanoseconds(std::chrono::nanoseconds duration) { return duration.count(); }

}  // namespace

void TraceTrack::add(const TraceEvent& event) {
  const size_t place = size_.load(std::memory_order_relaxed);
  const size_t piece = place / kPiece;
  if (piece == kPieces) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!pieces_[piece]) pieces_[piece] = std::make_unique<TraceEvent[]>(kPiece);
  pieces_[piece][place % kPiece] = event;
  size_.store(place + 1, std::memory_order_release);
}

void TraceTrack::span(const TraceLabel* label, Clock::time_point begin, Clock::time_point end, uint64_t number) {
  add({label, number, tracer_.since_made(begin), tracer_.since_made(end), TraceEvent::Kind::span});
}

void TraceTrack::flow_begin(const TraceLabel* label, uint64_t id, Clock::time_point at) {
  add({label, id, tracer_.since_made(at), 0, TraceEvent::Kind::flow_begin});
}

void TraceTrack::flow_end(const TraceLabel* label, uint64_t id, Clock::time_point at) {
  add({label, id, tracer_.since_made(at), 0, TraceEvent::Kind::flow_end});
}

Tracer::Tracer() : Tracer(look_at_both_clocks()) {}

Tracer::Tracer(const BothClocks& made) : made_(made.steady), made_epoch_(made.epoch) {}

/// Returns the closest of a few looks. If another thread runs between the two reads, they are of different moments.
Tracer::BothClocks Tracer::look_at_both_clocks() {
  constexpr int kLooks = 5;
  BothClocks closest;
  Clock::duration shortest = Clock::duration::max();
  for (int i = 0; i < kLooks; ++i) {
    const Clock::time_point before = Clock::now();
    const int64_t epoch = nanoseconds(std::chrono::system_clock::now().time_since_epoch());
    const Clock::duration took = Clock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    closest = {before + took / 2, epoch};
  }
  return closest;
}

int64_t Tracer::since_made(Clock::time_point at) const { return nanoseconds(at - made_); }

TraceTrack& Tracer::track(std::string name) {
  const MutexLock lock(mutex_);
  return tracks_.emplace_back(*this, std::move(name));
}

const TraceLabel* Tracer::label(TraceLabel label) {
  const MutexLock lock(mutex_);
  return &labels_.emplace_back(std::move(label));
}

void Tracer::set_offset(const std::string& role, int64_t nanoseconds) {
  const MutexLock lock(mutex_);
  offsets_[role] = nanoseconds;
}

std::vector<const TraceTrack*> Tracer::tracks() const {
  const MutexLock lock(mutex_);
  std::vector<const TraceTrack*> all;
  for (const TraceTrack& track : tracks_) all.push_back(&track);
  return all;
}

std::map<std::string, int64_t> Tracer::offsets() const {
  const MutexLock lock(mutex_);
  return offsets_;
}

uint64_t flow_number(std::initializer_list<uint64_t> parts) {
  uint64_t mixed = 0x9e3779b97f4a7c15ULL;
  for (const uint64_t part : parts) {
    mixed ^= part + 0x9e3779b97f4a7c15ULL + (mixed << 6U) + (mixed >> 2U);
    mixed *= 0xbf58476d1ce4e5b9ULL;
    mixed ^= mixed >> 31U;
  }
  return mixed;
}

}  // namespace lockstep::base
