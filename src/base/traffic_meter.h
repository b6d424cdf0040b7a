// Counts the bytes that a process sent and received over its connections to other roles, so that roles on one host can
// be told apart. Connections borrow a meter; any thread may count and read.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::base {

class TrafficMeter {
 public:
  struct Totals {
    uint64_t sent_bytes = 0;
    uint64_t received_bytes = 0;
    uint64_t sent_messages = 0;
    uint64_t received_messages = 0;
  };

  void sent(uint64_t bytes) {
    sent_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    sent_messages_.fetch_add(1, std::memory_order_relaxed);
  }
  void received(uint64_t bytes) {
    received_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    received_messages_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] Totals totals() const {
    return {sent_bytes_.load(std::memory_order_relaxed), received_bytes_.load(std::memory_order_relaxed),
            sent_messages_.load(std::memory_order_relaxed), received_messages_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint64_t> sent_bytes_ = 0;
  std::atomic<uint64_t> received_bytes_ = 0;
  std::atomic<uint64_t> sent_messages_ = 0;
  std::atomic<uint64_t> received_messages_ = 0;
};

}  // namespace lockstep::base
