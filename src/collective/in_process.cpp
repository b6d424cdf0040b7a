#include "collective/in_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/parallel.h"
#include "collective/sum.h"
#include "collective/thread_barrier.h"

namespace lockstep::collective {
namespace {

/// Elements summed for all members at a time: they stay in a cache until they are copied out.
constexpr size_t kPiece = 2048;
/// Parts begin at whole cache lines.
constexpr int64_t kLine = 64;

enum class Kind : uint8_t { all_reduce, broadcast, all_gather, barrier };

/// A member's operation.
struct Call {
  Kind kind = Kind::barrier;
  Element element = Element::float32;
  int root = 0;
  size_t count = 0;  ///< in elements, or in bytes
  const std::byte* from = nullptr;
  std::byte* to = nullptr;

  [[nodiscard]] bool fits(const Call& other) const {
    return kind == other.kind && element == other.element && root == other.root && count == other.count;
  }
  [[nodiscard]] std::string describe() const {
    switch (kind) {
      case Kind::all_reduce:
        return fmt::format("all-reduce of {} elements of {} bytes", count, bytes_of(element));
      case Kind::broadcast:
        return fmt::format("broadcast of {} bytes from rank {}", count, root);
      case Kind::all_gather:
        return fmt::format("gather of {} bytes from each rank", count);
      case Kind::barrier:
        break;
    }
    return "barrier";
  }
};

/// A member's part that others see. A member can be one call ahead of another, so there are two places.
struct alignas(64) Seat {
  std::array<Call, 2> calls;
  std::atomic<uint64_t> arrivals = 0;
  std::atomic<bool> working = false;  ///< it reads or writes memory of others
};

/// State shared by the members.
struct Meeting {
  Meeting(int size, const GroupOptions& options)
      : seats(static_cast<size_t>(size)), barrier(size, options.spin), deadline(options.deadline) {}

  void fail(base::Failure why) {
    {
      const base::MutexLock lock(mutex);
      if (!reason) reason = std::move(why);
    }
    barrier.break_up();
  }
  base::Failure failure() {
    const base::MutexLock lock(mutex);
    return reason.value_or(base::Failure{});
  }

  std::vector<Seat> seats;
  ThreadBarrier barrier;
  std::atomic<bool> at_odds = false;  ///< members have called different operations; set before the barrier is broken
  Seconds deadline;
  base::Mutex mutex;
  std::optional<base::Failure> reason LOCKSTEP_GUARDED_BY(mutex);
};

class Member final : public Collective {
 public:
  Member(std::shared_ptr<Meeting> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~Member() override { group_->fail({base::FailureKind::gone, "has left the group", {}, {}, {rank_}}); }

  [[nodiscard]] std::string_view engine() const override { return "inprocess"; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(group_->seats.size()); }

  base::Status all_reduce(void* data, size_t count, Element element) override {
    auto* bytes = static_cast<std::byte*>(data);
    return act({Kind::all_reduce, element, 0, count, bytes, bytes});
  }
  base::Status broadcast(std::span<std::byte> data, int root) override {
    if (root < 0 || root >= size())
      throw UsageError(fmt::format("broadcast from rank {}, but there are {} ranks", root, size()));
    return act({Kind::broadcast, Element::float32, root, data.size(), data.data(), data.data()});
  }
  base::Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (all.size() != mine.size() * group_->seats.size()) {
      throw UsageError(
          fmt::format("gather: {} bytes do not hold {} from each of {} ranks", all.size(), mine.size(), size()));
    }
    return act({Kind::all_gather, Element::float32, 0, mine.size(), mine.data(), all.data()});
  }
  base::Status barrier() override { return act({}); }

  void abort(const std::string& why) override { group_->fail({base::FailureKind::gone, why}); }
  [[nodiscard]] Traffic traffic() const override { return traffic_; }

 private:
  base::Status act(const Call& call);
  bool meet(const Call& call, ThreadBarrier::Time deadline);
  bool agreed();
  void work(const Call& call);
  void reduce(const Call& call);
  void count(const Call& call);
  base::Failure broken();
  /// Returns the ranks that have not come to the call.
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] const Call& call_of(size_t rank) const { return group_->seats[rank].calls[calls_ % 2]; }
  [[nodiscard]] base::Range part_of(size_t count, int rank) const {
    return base::share(static_cast<int64_t>(count), rank, size(), kLine);
  }

  std::shared_ptr<Meeting> group_;
  int rank_;
  uint64_t calls_ = 0;
  uint64_t arrivals_ = 0;
  Traffic traffic_;
};

base::Status Member::act(const Call& call) {
  Seat& seat = group_->seats[static_cast<size_t>(rank_)];
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(group_->deadline);
  ++calls_;
  seat.calls[calls_ % 2] = call;
  if (!meet(call, deadline)) return broken();
  // A member that fails waits in broken() for those at work, so no member may start work after the group was broken. A
  // barrier needs no work: it succeeds even if others left after all had arrived.
  seat.working.store(true);
  const bool fits = group_->barrier.broken() ? call.kind == Kind::barrier && !group_->at_odds : agreed();
  if (!fits) {
    seat.working.store(false);
    return broken();
  }
  if (call.kind != Kind::barrier) work(call);
  seat.working.store(false);
  if (call.kind != Kind::barrier && !meet(call, deadline)) return broken();
  count(call);
  return {};
}

bool Member::meet(const Call& call, ThreadBarrier::Time deadline) {
  group_->seats[static_cast<size_t>(rank_)].arrivals.store(++arrivals_, std::memory_order_relaxed);
  const auto outcome = group_->barrier.wait(deadline);
  if (outcome == ThreadBarrier::Outcome::late) {
    base::Failure late{base::FailureKind::timeout,
                       fmt::format("did not arrive within {:.3g} s", group_->deadline.count())};
    late.ranks = missing();
    group_->fail(std::move(late).because(call.describe()));
  }
  return outcome == ThreadBarrier::Outcome::met;
}

std::vector<int> Member::missing() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < group_->seats.size(); ++rank) {
    const bool here = group_->seats[rank].arrivals.load(std::memory_order_relaxed) >= arrivals_;
    if (!here) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

bool Member::agreed() {
  for (size_t rank = 1; rank < group_->seats.size(); ++rank) {
    if (call_of(rank).fits(call_of(0))) continue;
    group_->at_odds = true;
    base::Failure differs{base::FailureKind::other, fmt::format("calls {}, but the first member calls {}",
                                                                call_of(rank).describe(), call_of(0).describe())};
    differs.ranks = {static_cast<int>(rank)};
    group_->fail(std::move(differs));
    return false;
  }
  return true;
}

base::Failure Member::broken() {
  // The caller may free its memory once it has the failure.
  for (const Seat& seat : group_->seats) {
    while (seat.working.load()) std::this_thread::yield();
  }
  return group_->failure();
}

void Member::work(const Call& call) {
  if (call.count == 0) return;
  switch (call.kind) {
    case Kind::all_reduce:
      reduce(call);
      break;
    case Kind::broadcast:
      if (call.root != rank_) std::memcpy(call.to, call_of(static_cast<size_t>(call.root)).from, call.count);
      break;
    case Kind::all_gather:
      for (size_t rank = 0; rank < group_->seats.size(); ++rank) {
        std::memmove(call.to + rank * call.count, call_of(rank).from, call.count);
      }
      break;
    case Kind::barrier:
      break;
  }
}

void Member::reduce(const Call& call) {
  const base::Range mine = part_of(call.count, rank_);
  const size_t width = bytes_of(call.element);
  const auto end = static_cast<size_t>(mine.end);
  for (auto begin = static_cast<size_t>(mine.begin); begin < end; begin += kPiece) {
    const size_t n = std::min(kPiece, end - begin);
    std::byte* sum = call_of(0).to + begin * width;
    for (size_t rank = 1; rank < group_->seats.size(); ++rank) {
      add(call.element, sum, call_of(rank).from + begin * width, sum, n);
    }
    for (size_t rank = 1; rank < group_->seats.size(); ++rank) {
      std::memcpy(call_of(rank).to + begin * width, sum, n * width);
    }
  }
}

void Member::count(const Call& call) {
  const auto others = static_cast<uint64_t>(size() - 1);
  if (call.kind == Kind::all_reduce) {
    // Others read and write back their parts of this member's data; it does the same with its own part of theirs.
    const auto part = static_cast<uint64_t>(part_of(call.count, rank_).size());
    const uint64_t moved = (call.count - part + others * part) * bytes_of(call.element);
    traffic_.sent += moved;
    traffic_.received += moved;
  } else if (call.kind == Kind::broadcast) {
    (call.root == rank_ ? traffic_.sent : traffic_.received) += call.count * (call.root == rank_ ? others : 1);
  } else if (call.kind == Kind::all_gather) {
    traffic_.sent += call.count * others;
    traffic_.received += call.count * others;
  }
}

}  // namespace

std::vector<std::unique_ptr<Collective>> make_in_process_group(int size, const GroupOptions& options) {
  const auto group = std::make_shared<Meeting>(size, options);
  std::vector<std::unique_ptr<Collective>> members;
  members.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) members.push_back(std::make_unique<Member>(group, rank));
  return members;
}

}  // namespace lockstep::collective
