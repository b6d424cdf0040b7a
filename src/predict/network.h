// The links of simulated nodes. A message leaves through its sender's link and comes in through its receiver's, chunk
// by chunk: the second begins as soon as the first has begun. Messages that leave a node at the same time take turns,
// so they share its link evenly; chunks that come in are served in the order of their arrival, which shares that link
// in proportion to the speeds at which they are sent. A slow receiver does not hold up what its sender sends to others.
// Borrows the events. Single-threaded.
#pragma once

#include <deque>
#include <vector>

#include "predict/events.h"
#include "predict/training.h"

namespace lockstep::predict {

/// One direction of a link: a queue with a rate and a token bucket.
class Gate {
 public:
  explicit Gate(const Link& link) : link_(link) {}

  /// Sends bytes that are there at `time`, and returns when the last of them has passed.
  double pass(double time, double bytes);
  [[nodiscard]] double passed() const { return passed_; }
  /// Returns when everything so far has passed.
  [[nodiscard]] double free_at() const { return free_ - allowance(); }

 private:
  [[nodiscard]] double allowance() const { return link_.rate < kUnlimited ? link_.burst / link_.rate : 0; }

  Link link_;
  double free_ = 0;  ///< when all bytes have passed at the link's rate
  double passed_ = 0;
};

class Network {
 public:
  Network(Events& events, const std::vector<Node>& nodes);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Calls `arrived` when the whole message is there.
  void send(size_t from, size_t to, double bytes, Action arrived);

  /// Returns payload bytes that have left or reached a node over its link.
  [[nodiscard]] double sent(size_t node) const { return ends_[node].out.passed(); }
  [[nodiscard]] double received(size_t node) const { return ends_[node].in.passed(); }

  /// The node's two directions, for operations that are computed as a whole.
  Gate& out(size_t node) { return ends_[node].out; }
  Gate& in(size_t node) { return ends_[node].in; }

 private:
  struct Message {
    size_t to;
    double left;
    double chunk;
    Action arrived;
  };
  struct End {
    explicit End(const Node& node) : out(node.link), in(node.link), latency(node.link.latency) {}
    Gate out;
    Gate in;
    double latency;
    std::deque<Message> waiting;
    bool sending = false;
  };

  void send_next(size_t from);

  Events& events_;
  std::vector<End> ends_;
};

}  // namespace lockstep::predict
