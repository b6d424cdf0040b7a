#include "collective/gloo/operations.h"

#include <algorithm>
#include <cstring>

#include "collective/sum.h"
#include "schedule/all_reduce_steps.h"
#include "schedule/all_reduce_way.h"

namespace lockstep::collective::gloo_engine {
namespace {

/// Pieces in flight before the first is awaited.
constexpr size_t kAhead = 1;

class Binding {
 public:
  Binding(Links& links, std::span<const std::byte> out, std::span<std::byte> in) : links_(links) {
    links.bind(out, in);
  }
  ~Binding() { links_.unbind(); }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

 private:
  Links& links_;
};

template <class Action>
void for_peers(const Links& links, Action action) {
  // Each member starts with its successor, so that not all send to the same member.
  for (int i = 1; i < links.size(); ++i) action((links.rank() + i) % links.size());
}

/// Adds the others' staged data to `own`, in the order of ranks.
void sum_staged(Links& links, std::byte* own, size_t bytes, Element element) {
  const size_t count = bytes / bytes_of(element);
  std::byte* sum = nullptr;
  for (int rank = 0; rank < links.size(); ++rank) {
    if (rank != links.rank()) links.receive(rank, Lane::stage, bytes);
    std::byte* next = rank == links.rank() ? own : links.stage(rank);
    if (sum != nullptr) {
      std::byte* to = rank >= links.rank() ? own : sum;
      add(element, sum, next, to, count);
      next = to;
    }
    sum = next;
  }
}

/// Sends everything to all members, some pieces ahead of those that are summed.
void exchange_all(Links& links, std::span<std::byte> data, Element element) {
  const size_t pieces = (data.size() + kPiece - 1) / kPiece;
  const auto length = [&](size_t i) { return std::min(kPiece, data.size() - i * kPiece); };
  for (size_t i = 0; i < pieces + kAhead; ++i) {
    if (i < pieces) {
      for_peers(links, [&](int peer) { links.send(peer, Lane::stage, i * kPiece, length(i)); });
    }
    if (i < kAhead || i - kAhead >= pieces) continue;
    const size_t due = i - kAhead;
    sum_staged(links, data.data() + due * kPiece, length(due), element);
  }
}

/// Sums everything on rank 0, piece by piece, and sends it back.
void through_root(Links& links, std::span<std::byte> data, Element element) {
  const size_t pieces = (data.size() + kPiece - 1) / kPiece;
  const auto length = [&](size_t i) { return std::min(kPiece, data.size() - i * kPiece); };
  if (links.rank() == 0) {
    for (size_t i = 0; i < pieces; ++i) {
      sum_staged(links, data.data() + i * kPiece, length(i), element);
      for_peers(links, [&](int peer) { links.send(peer, Lane::place, i * kPiece, length(i)); });
    }
    return;
  }
  for (size_t i = 0; i < pieces + kAhead; ++i) {
    if (i < pieces) links.send(0, Lane::stage, i * kPiece, length(i));
    if (i >= kAhead && i - kAhead < pieces) links.receive(0, Lane::place, length(i - kAhead));
  }
}

/// The shares of all members in one round of a pipelined sum.
struct Round {
  size_t begin = 0;
  size_t bytes = 0;
  size_t share = 0;  ///< the last one may be smaller

  [[nodiscard]] size_t offset(int rank) const { return begin + std::min(bytes, share * static_cast<size_t>(rank)); }
  [[nodiscard]] size_t length(int rank) const { return offset(rank + 1) - offset(rank); }
};

class Pipeline {
 public:
  Pipeline(Links& links, std::span<std::byte> data, Element element) : links_(links), data_(data), element_(element) {
    const auto members = static_cast<size_t>(links.size());
    // A single round leaves one message unread, so that message may be larger. A member that is ahead has at most this
    // one and the last two of a sum before or after it in flight.
    static_assert(kPiece + 2 * kQuarter <= kRoom && 4 * kQuarter <= kRoom);
    rounds_ = schedule::all_reduce_rounds(data.size(), members);
    const size_t unit = 16 * members;
    round_bytes_ = ((data.size() + rounds_ - 1) / rounds_ + unit - 1) / unit * unit;
  }

  void run() {
    for (size_t i = 0; i < rounds_ + 2; ++i) {
      if (i < rounds_) scatter(round(i));
      if (i >= 1 && i - 1 < rounds_) reduce(round(i - 1));
      if (i >= 2) collect(round(i - 2));
    }
  }

 private:
  [[nodiscard]] Round round(size_t i) const {
    const size_t begin = std::min(data_.size(), i * round_bytes_);
    return {begin, std::min(round_bytes_, data_.size() - begin), round_bytes_ / static_cast<size_t>(links_.size())};
  }

  void scatter(const Round& round) {
    for_peers(links_, [&](int peer) {
      if (round.length(peer) > 0) links_.send(peer, Lane::stage, round.offset(peer), round.length(peer));
    });
  }
  void reduce(const Round& round) {
    const size_t offset = round.offset(links_.rank());
    const size_t length = round.length(links_.rank());
    if (length == 0) return;
    sum_staged(links_, data_.data() + offset, length, element_);
    for_peers(links_, [&](int peer) { links_.send(peer, Lane::place, offset, length); });
  }
  void collect(const Round& round) {
    for_peers(links_, [&](int peer) {
      if (round.length(peer) > 0) links_.receive(peer, Lane::place, round.length(peer));
    });
  }

  Links& links_;
  const std::span<std::byte> data_;
  const Element element_;
  size_t rounds_ = 0;
  size_t round_bytes_ = 0;
};

/// A part of an operation's data.
struct Range {
  size_t begin = 0;
  size_t end = 0;

  [[nodiscard]] bool empty() const { return begin >= end; }
  /// Takes the next piece from it and returns its length.
  size_t take() {
    const size_t length = std::min(kPiece, end - begin);
    begin += length;
    return length;
  }
};

/// Runs steps between members that are not connected with all others.
class Stepper {
 public:
  /// `share`: bytes of a share in `part`, the last of which may be smaller.
  Stepper(Links& links, std::span<std::byte> data, Range part, size_t share, Element element)
      : links_(links), data_(data), part_(part), share_(share), element_(element) {}

  void run(const std::vector<schedule::Step>& steps) {
    for (const schedule::Step& step : steps) run(step);
  }

 private:
  [[nodiscard]] Range range(const schedule::Shares& shares) const {
    const auto at = [this](size_t share) { return std::min(part_.end, part_.begin + share * share_); };
    return {at(shares.begin), at(shares.end)};
  }

  /// Each side reads a piece before it writes the next one, so few are on the way.
  void run(const schedule::Step& step) {
    const Lane lane = step.adds ? Lane::stage : Lane::place;
    Range out = range(step.out);
    Range in = range(step.in);
    while (!out.empty() || !in.empty()) {
      if (!out.empty()) {
        const size_t at = out.begin;
        links_.send(step.peer, lane, at, out.take());
      }
      if (in.empty()) continue;
      std::byte* const mine = data_.data() + in.begin;
      const size_t length = in.take();
      links_.receive(step.peer, lane, length);
      if (step.adds) add(element_, mine, links_.stage(step.peer), mine, length / bytes_of(element_));
    }
  }

  Links& links_;
  const std::span<std::byte> data_;
  const Range part_;
  const size_t share_;
  const Element element_;
};

/// Runs steps of one share for each piece, so that pieces follow each other through a tree.
void by_piece(Links& links, std::span<std::byte> data, Element element, const std::vector<schedule::Step>& steps) {
  for (size_t at = 0; at < data.size(); at += kPiece) {
    const Range piece{at, std::min(data.size(), at + kPiece)};
    Stepper(links, data, piece, kPiece, element).run(steps);
  }
}

void by_halves(Links& links, std::span<std::byte> data, Element element) {
  const size_t shares = schedule::shares_by_halves(links.size());
  const size_t unit = 16 * shares;
  const size_t share = (data.size() + unit - 1) / unit * 16;
  Stepper(links, data, {0, data.size()}, share, element).run(schedule::sum_by_halves(links.rank(), links.size()));
}

bool connects_few(const Links& links) { return links.size() > schedule::kAllReduceMesh; }

}  // namespace

void all_reduce(Links& links, std::span<std::byte> data, Element element) {
  if (data.empty() || links.size() == 1) return;
  const Binding binding(links, data, data);
  switch (schedule::all_reduce_way(data.size(), static_cast<size_t>(links.size()), links.crowded())) {
    case schedule::AllReduceWay::exchange_all:
      return exchange_all(links, data, element);
    case schedule::AllReduceWay::through_root:
      return through_root(links, data, element);
    case schedule::AllReduceWay::in_shares:
      return Pipeline(links, data, element).run();
    case schedule::AllReduceWay::through_tree:
      return by_piece(links, data, element, schedule::sum_through_tree(links.rank(), links.size()));
    case schedule::AllReduceWay::by_halves:
      return by_halves(links, data, element);
  }
}

void broadcast(Links& links, std::span<std::byte> data, int root) {
  if (data.empty() || links.size() == 1) return;
  const Binding binding(links, data, data);
  if (connects_few(links)) {
    return by_piece(links, data, Element::float32, schedule::broadcast_through_tree(links.rank(), links.size(), root));
  }
  // A chain that starts at the root: each member sends everything once.
  const int previous = (links.rank() + links.size() - 1) % links.size();
  const int next = (links.rank() + 1) % links.size();
  for (size_t at = 0; at < data.size(); at += kPiece) {
    const size_t length = std::min(kPiece, data.size() - at);
    if (links.rank() != root) links.receive(previous, Lane::place, length);
    if (next != root) links.send(next, Lane::place, at, length);
  }
}

void all_gather(Links& links, std::span<const std::byte> mine, std::span<std::byte> all) {
  const size_t size = mine.size();
  if (size == 0) return;
  const size_t own = size * static_cast<size_t>(links.rank());
  std::memcpy(all.data() + own, mine.data(), size);
  const Binding binding(links, all, all);
  if (connects_few(links)) {
    return Stepper(links, all, {0, all.size()}, size, Element::float32)
        .run(schedule::gather_by_doubling(links.rank(), links.size()));
  }
  for (size_t at = 0; at < size; at += kPiece) {
    const size_t length = std::min(kPiece, size - at);
    for_peers(links, [&](int peer) { links.send(peer, Lane::place, own + at, length); });
    for_peers(links, [&](int peer) { links.receive(peer, Lane::place, length); });
  }
}

void barrier(Links& links) {
  if (connects_few(links)) {
    float nothing = 0;
    return all_reduce(links, std::as_writable_bytes(std::span(&nothing, 1)), Element::float32);
  }
  const std::byte here{1};
  const Binding binding(links, {&here, 1}, {});
  for_peers(links, [&](int peer) { links.send(peer, Lane::stage, 0, 1); });
  for_peers(links, [&](int peer) { links.receive(peer, Lane::stage, 1); });
}

}  // namespace lockstep::collective::gloo_engine
