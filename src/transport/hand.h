// A thread of a server that serves many streams. Each stream's operations end in its hand's queue, and the hand alone
// waits there: it reads and writes the sockets of its streams, and runs what follows. The acceptor chooses a hand for
// each connection. Internal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "transport/core.h"

namespace lockstep::transport {

class Hand {
 public:
  /// `ring` wakes the acceptor: a stranger has said something, or a stream is finished. `spin`: time that a wait polls
  /// before it sleeps.
  Hand(std::function<void()> ring, std::chrono::microseconds spin);
  /// Its streams are gone.
  ~Hand();
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;

  [[nodiscard]] grpc_completion_queue* queue() const { return queue_; }

  /// Counts the operations that were started: what their threads wrote before is visible where they end. gRPC sees to
  /// that anyway, but the thread sanitizer does not see it.
  std::atomic<uint64_t> started = 0;

  // Its load. Any thread.
  std::atomic<int> streams = 0;  ///< its connections
  std::atomic<int> light = 0;    ///< of them, those on which little is said

 private:
  void run();

  const std::function<void()> ring_;
  const std::chrono::microseconds spin_;
  grpc_completion_queue* const queue_;
  std::thread thread_;
};

/// A connection's part in a hand's work. It ends after its stream.
class HandShare {
 public:
  HandShare() = default;
  explicit HandShare(Hand* hand) : hand_(hand) {
    if (hand_ != nullptr) ++hand_->streams;
  }
  HandShare(HandShare&& other) noexcept
      : hand_(std::exchange(other.hand_, nullptr)), light_(std::exchange(other.light_, false)) {}
  HandShare& operator=(HandShare&& other) noexcept {
    std::swap(hand_, other.hand_);
    std::swap(light_, other.light_);
    return *this;
  }
  ~HandShare() {
    if (hand_ == nullptr) return;
    --hand_->streams;
    if (light_) --hand_->light;
  }

  [[nodiscard]] Hand* hand() const { return hand_; }
  /// Counts the stream as one on which little is said.
  void make_light() {
    if (hand_ != nullptr && !std::exchange(light_, true)) ++hand_->light;
  }

 private:
  Hand* hand_ = nullptr;
  bool light_ = false;
};

/// Hands of a server, none if each stream has a thread.
using Hands = std::vector<std::unique_ptr<Hand>>;
/// Returns the hand with the least to do; null if there are none.
Hand* least_busy(const Hands& hands);

}  // namespace lockstep::transport
