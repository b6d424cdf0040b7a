#include "predict/network.h"

#include <algorithm>
#include <utility>

namespace lockstep::predict {
namespace {

/// What a socket hands to its link at once, the largest segment: smaller messages leave one after the other.
constexpr double kLeastChunk = 64 * 1024;
/// Chunks of a large message: enough to share a link, few enough for a thousand workers.
constexpr double kChunks = 16;
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

void Network::send(size_t from, size_t to, double bytes, Action arrived) {
  if (from == to) {
    events_.after(kInsideLatency + bytes / kInside, std::move(arrived));
    return;
  }
  End& end = ends_[from];
  end.waiting.push_back({to, bytes, std::max(kLeastChunk, bytes / kChunks), std::move(arrived)});
  if (!end.sending) send_next(from);
}

void Network::send_next(size_t from) {
  End& end = ends_[from];
  end.sending = !end.waiting.empty();
  if (!end.sending) return;
  Message message = std::move(end.waiting.front());
  end.waiting.pop_front();
  const double bytes = std::min(message.chunk, message.left);
  message.left -= bytes;
  const double began = std::max(events_.now(), end.out.free_at());
  const double left = end.out.pass(events_.now(), bytes);
  // The chunk's first byte arrives after the latency of both links, its last one not before it has left.
  End& there = ends_[message.to];
  const double latency = end.latency + there.latency;
  const double came = std::max(there.in.pass(began + latency, bytes), left + latency);
  if (message.left > 0) {
    end.waiting.push_back(std::move(message));
  } else {
    events_.at(came, std::move(message.arrived));
  }
  events_.at(left, [this, from] { send_next(from); });
}

}  // namespace lockstep::predict
