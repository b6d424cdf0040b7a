// The links of simulated nodes. A message leaves through its sender's link and comes in through its receiver's, chunk
// by chunk. A few chunks of a message are under way at a time, as of a socket, and each link serves chunks as
// they arrive. So messages that leave a node at the same time share its link about evenly; messages that come in share
// it in proportion to the speeds at which they are sent. A slow receiver does not hold up what its sender sends to
// others. A link passes the first bytes of a chunk on at once; the token bucket of an emulated node holds a chunk until
// there are tokens for all of it. Borrows the events. Single-threaded.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
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

  /// Names a connection of two processes. Those of one pair of nodes have sockets of their own.
  using Connection = uint64_t;
  /// Connection of messages for whose socket nobody waits.
  static constexpr Connection kNone = 0;

  /// Calls `arrived` when the whole message is there.
  void send(size_t from, size_t to, double bytes, Action arrived, Connection over = kNone);

  /// Calls `go_on` once the connection's socket has taken all that it was given: at once, unless more than a socket
  /// holds has not left yet. One call at a time for each connection.
  void when_taken(Connection connection, Action go_on);

  /// Returns payload bytes that have left or reached a node over its link.
  [[nodiscard]] double sent(size_t node) const { return ends_[node].out.passed(); }
  [[nodiscard]] double received(size_t node) const { return ends_[node].in.passed(); }

  /// The node's two directions, for operations that are computed as a whole.
  Gate& out(size_t node) { return ends_[node].out; }
  Gate& in(size_t node) { return ends_[node].in; }

 private:
  struct Message {
    size_t from;
    size_t to;
    double left;  ///< bytes not yet handed to the link
    double chunk;
    Connection over;
    int under_way = 0;
    Action arrived;
  };
  struct Chunk {
    std::shared_ptr<Message> message;
    double bytes;
  };
  struct End {
    explicit End(const Node& node)
        : out(node.link), in(node.link), latency(node.link.latency), bucket(node.link.burst > 0) {}
    Gate out;
    Gate in;
    double latency;
    bool bucket;
    std::deque<Chunk> waiting;
    bool sending = false;
  };

  void hand_over(const std::shared_ptr<Message>& message);
  void send_next(size_t from);
  void passed_on(const std::shared_ptr<Message>& message, double bytes, double latency);
  void left_socket(Connection connection, double bytes);

  Events& events_;
  std::vector<End> ends_;
  std::unordered_map<Connection, double> held_;     ///< bytes that were sent and have not passed
  std::unordered_map<Connection, Action> waiting_;  ///< senders that their sockets hold up
};

}  // namespace lockstep::predict
