// Records spans of time on several threads, and arrows between them, for a trace. A Tracer owns its tracks and labels,
// which live as long as it does. Each track has one writer at a time. A span costs a few stores into memory that is
// allocated in large pieces; once a track's memory is used up, later events are only counted. Any thread may make
// tracks and labels, turn the tracer on and off, and read the events written so far. Turned off, it costs one relaxed
// load per check of `on`.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace lockstep::base {

/// Distance that an arrow keeps from the ends of a span, so that every trace viewer finds it inside.
constexpr std::chrono::nanoseconds kInsideSpan{100};

/// The name of a kind of span, for people.
struct TraceLabel {
  std::string name;
  std::string category;
  std::vector<std::pair<std::string, std::string>> details = {};
  std::string number = {};  ///< meaning of the spans' numbers: "step"; empty: no number
};

struct TraceEvent {
  enum class Kind : uint8_t { span, flow_begin, flow_end };

  const TraceLabel* label = nullptr;
  uint64_t number = 0;  ///< span: number with the label's meaning; flow: the same at both ends
  int64_t begin = 0;    ///< nanoseconds since the tracer was made
  int64_t end = 0;      ///< nanoseconds; spans only
  Kind kind = Kind::span;
};

class Tracer;

/// One line of the picture: a thread, or an activity that happens once at a time.
class TraceTrack {
 public:
  using Clock = std::chrono::steady_clock;

  TraceTrack(Tracer& tracer, std::string name) : tracer_(tracer), name_(std::move(name)) {}

  [[nodiscard]] Tracer& tracer() const { return tracer_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool on() const;

  void span(const TraceLabel* label, Clock::time_point begin, Clock::time_point end, uint64_t number = 0);
  /// Begins or ends an arrow in the span around `at`.
  void flow_begin(const TraceLabel* label, uint64_t id, Clock::time_point at);
  void flow_end(const TraceLabel* label, uint64_t id, Clock::time_point at);

  [[nodiscard]] size_t size() const { return size_.load(std::memory_order_acquire); }
  /// Returns event i; i must be below a size() seen before.
  [[nodiscard]] const TraceEvent& operator[](size_t i) const { return pieces_[i / kPiece][i % kPiece]; }
  [[nodiscard]] uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kPiece = 4096;
  static constexpr size_t kPieces = 256;  ///< 40 MiB

  void add(const TraceEvent& event);

  Tracer& tracer_;
  std::string name_;
  std::array<std::unique_ptr<TraceEvent[]>, kPieces> pieces_;
  std::atomic<size_t> size_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
};

class Tracer {
 public:
  using Clock = TraceTrack::Clock;

  Tracer();

  [[nodiscard]] bool on() const { return on_.load(std::memory_order_relaxed); }
  void turn(bool on) { on_.store(on, std::memory_order_relaxed); }

  TraceTrack& track(std::string name);
  const TraceLabel* label(TraceLabel label);
  /// Stores the difference to another role's clock: the nanoseconds to add to this one's.
  void set_offset(const std::string& role, int64_t nanoseconds);

  /// Return nanoseconds: from the tracer's creation to `at`; from 1970 to the creation, by the machine's clock.
  [[nodiscard]] int64_t since_made(Clock::time_point at) const;
  [[nodiscard]] int64_t made_epoch() const { return made_epoch_; }
  [[nodiscard]] int64_t since_epoch(Clock::time_point at) const { return made_epoch_ + since_made(at); }

  [[nodiscard]] std::vector<const TraceTrack*> tracks() const;
  [[nodiscard]] std::map<std::string, int64_t> offsets() const;

 private:
  struct BothClocks {
    Clock::time_point steady;
    int64_t epoch = 0;  ///< nanoseconds
  };
  static BothClocks look_at_both_clocks();
  explicit Tracer(const BothClocks& made);

  const Clock::time_point made_;
  const int64_t made_epoch_;
  std::atomic<bool> on_ = false;
  mutable Mutex mutex_;
  std::deque<TraceTrack> tracks_ LOCKSTEP_GUARDED_BY(mutex_);
  std::deque<TraceLabel> labels_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> offsets_ LOCKSTEP_GUARDED_BY(mutex_);
};

inline bool TraceTrack::on() const { return tracer_.on(); }

/// Returns the number of an arrow, computed from values that both ends know.
uint64_t flow_number(std::initializer_list<uint64_t> parts);

}  // namespace lockstep::base
