#include "predict/network.h"

#include <algorithm>
#include <utility>

namespace lockstep::predict {
namespace {

/// What a socket hands to its link at once, the largest segment: smaller messages leave one after the other.
constexpr double kLeastChunk = 64 * 1024;
/// Chunks of a large message: enough to share a link, few enough for a thousand workers.
constexpr double kChunks = 16;
/// Chunks of a message that a socket keeps in the queues of links.
constexpr int kUnderWay = 2;
/// Bytes of a connection that its sender does not wait for: the kernel's largest socket buffer is 4 MiB, of which
/// bookkeeping takes a part.
constexpr double kSocketBuffer = 2.5e6;
/// Speed between processes of one node, through memory.
constexpr double kInside = 4e9;
constexpr double kInsideLatency = 10e-6;

}  // namespace

double Gate::pass(double time, double bytes) {
  passed_ += bytes;
  if (link_.rate == kUnlimited) return time;
  free_ = std::max(free_, time) + bytes * link_.overhead / link_.rate;
  return std::max(time, free_ - allowance());
}

Network::Network(Events& events, const std::vector<Node>& nodes) : events_(events) {
  ends_.reserve(nodes.size());
  for (const Node& node : nodes) ends_.emplace_back(node);
}

void Network::send(size_t from, size_t to, double bytes, Action arrived, Connection over) {
  if (from == to) {
    events_.after(kInsideLatency + bytes / kInside, std::move(arrived));
    return;
  }
  const double chunk = std::max(kLeastChunk, bytes / kChunks);
  if (over != kNone) held_[over] += bytes;
  hand_over(std::make_shared<Message>(Message{from, to, bytes, chunk, over, 0, std::move(arrived)}));
}

void Network::when_taken(Connection connection, Action go_on) {
  const auto held = held_.find(connection);
  if (held == held_.end() || held->second <= kSocketBuffer) return go_on();
  waiting_[connection] = std::move(go_on);
}

void Network::left_socket(Connection connection, double bytes) {
  if (connection == kNone) return;
  double& held = held_[connection];
  held = std::max(0.0, held - bytes);
  const auto waits = waiting_.find(connection);
  if (waits == waiting_.end() || held > kSocketBuffer) return;
  events_.after(0, std::move(waits->second));
  waiting_.erase(waits);
}

/// Puts chunks of a message into its sender's queue, as many as may be under way.
void Network::hand_over(const std::shared_ptr<Message>& message) {
  End& end = ends_[message->from];
  do {
    const double bytes = std::min(message->chunk, message->left);
    message->left -= bytes;
    ++message->under_way;
    end.waiting.push_back({message, bytes});
  } while (message->left > 0 && message->under_way < kUnderWay);
  if (!end.sending) send_next(message->from);
}

void Network::send_next(size_t from) {
  End& end = ends_[from];
  end.sending = !end.waiting.empty();
  if (!end.sending) return;
  const Chunk chunk = std::move(end.waiting.front());
  end.waiting.pop_front();
  const double began = std::max(events_.now(), end.out.free_at());
  const double left = end.out.pass(events_.now(), chunk.bytes);
  End& there = ends_[chunk.message->to];
  const double latency = end.latency + there.latency;
  // The last byte arrives not before it has left; the first one may be far ahead, but not out of a bucket.
  const double in = there.in.pass((there.bucket ? left : began) + latency, chunk.bytes);
  const double passed = std::max(in, left + latency) - latency;
  events_.at(passed,
             [this, message = chunk.message, bytes = chunk.bytes, latency] { passed_on(message, bytes, latency); });
  events_.at(left, [this, from] { send_next(from); });
}

/// A chunk has left the queues of both links: a delay does not keep the next one from following.
void Network::passed_on(const std::shared_ptr<Message>& message, double bytes, double latency) {
  --message->under_way;
  left_socket(message->over, bytes);
  if (message->left > 0) return hand_over(message);
  if (message->under_way == 0) events_.after(latency, std::move(message->arrived));
}

}  // namespace lockstep::predict
