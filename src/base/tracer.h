// What happened when, on several threads, for a trace: spans of time, and arrows between them. A Tracer owns its tracks
// and labels, which live as long as it does. Each track has one writer at a time; a span is a few stores into memory
// that is taken in large pieces; where the memory for a track is used up, what comes later is only counted. Any thread
// may make tracks and labels, turn the tracer on and off, and read what has been written so far. Off, it costs whoever
// asks `on` one relaxed load.
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

/// From the ends of a span to where an arrow is surely inside, for whoever reads the trace.
constexpr std::chrono::nanoseconds kInsideSpan{100};

/// What a span is, for people.
struct TraceLabel {
  std::string name;
  std::string category;
  std::vector<std::pair<std::string, std::string>> details = {};
  std::string number = {};  ///< what the number of its spans counts: "step"; empty: they have none
};

struct TraceEvent {
  enum class Kind : uint8_t { span, flow_begin, flow_end };

  const TraceLabel* label = nullptr;
  uint64_t number = 0;  ///< of a span, as its label says; of a flow, the same at both ends
  int64_t begin = 0;    ///< nanoseconds since the tracer was made
  int64_t end = 0;      ///< of a span
  Kind kind = Kind::span;
};

class Tracer;

/// One line of the picture: a thread, or what only one does at a time.
class TraceTrack {
 public:
  using Clock = std::chrono::steady_clock;

  TraceTrack(Tracer& tracer, std::string name) : tracer_(tracer), name_(std::move(name)) {}

  [[nodiscard]] Tracer& tracer() const { return tracer_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool on() const;

  void span(const TraceLabel* label, Clock::time_point begin, Clock::time_point end, uint64_t number = 0);
  /// An arrow begins or ends here, in the span around `at`.
  void flow_begin(const TraceLabel* label, uint64_t id, Clock::time_point at);
  void flow_end(const TraceLabel* label, uint64_t id, Clock::time_point at);

  [[nodiscard]] size_t size() const { return size_.load(std::memory_order_acquire); }
  /// i below a size() that was seen.
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
  /// What is known of the clock of another role: what to add to this one's.
  void set_offset(const std::string& role, int64_t nanoseconds);

  /// Nanoseconds since the tracer was made, and since 1970 by the machine's clock at that time.
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

/// The number of an arrow that both ends can make.
uint64_t flow_number(std::initializer_list<uint64_t> parts);

}  // namespace lockstep::base
