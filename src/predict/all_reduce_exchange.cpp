// All-reduce: operations on buckets, one after the other, while the backward pass still runs. A member's operations
// move 2 (N - 1) / N of a bucket each way, as both engines do with more than a few kilobytes. Small ones are sent to
// all members at once. An operation is computed as a whole, from the time at which each member joins it.
#include <algorithm>
#include <cmath>
#include <deque>

#include "predict/exchange.h"
#include "schedule/all_reduce_way.h"

namespace lockstep::predict {
namespace {

/// Members write to their sockets themselves, which costs less than a message to a server.
constexpr double kPlainMessage = 0.25;
/// Pieces of a long stream find their threads awake: they cost the calls alone.
constexpr double kStreamedMessage = 0.05;

class AllReduceModel final : public ExchangeModel {
 public:
  explicit AllReduceModel(World& world);

  [[nodiscard]] const std::vector<StepPart>& parts() const override { return parts_; }
  void begin(size_t worker) override;
  void computed(size_t worker, size_t part, Action next) override;
  [[nodiscard]] ExchangeTotals totals() const override { return {updates_, updates_, 0, 0}; }

 private:
  struct Member {
    size_t posted = 0;   ///< operations that its training thread has posted in this step
    size_t entered = 0;  ///< operations that it has joined
    bool busy = false;   ///< in an operation
    double exchange_began = 0;
    Action next;
  };
  struct Operation {
    std::vector<double> entered;  ///< when, by member; negative: not yet
    size_t members = 0;
    size_t done = 0;
  };

  void enter(size_t worker);
  void move(size_t index);
  void finished(size_t worker, size_t index);
  void end_step(size_t worker);
  [[nodiscard]] Operation& operation(size_t worker);

  World& world_;
  const Training& training_;
  const Costs& costs_;
  double count_;
  std::vector<StepPart> parts_;
  std::vector<double> sizes_;  ///< of the operations of a step
  std::vector<Member> members_;
  std::vector<Operation> operations_;
  double last_entered_ = 0;  ///< when the last member had computed everything
  size_t in_exchange_ = 0;
  double updates_ = 0;
};

AllReduceModel::AllReduceModel(World& world)
    : world_(world),
      training_(world.training),
      costs_(world.training.costs),
      count_(static_cast<double>(world.training.workers.size())),
      parts_(all_reduce_parts(world.training)),
      members_(world.training.workers.size()) {
  for (const StepPart& part : parts_) sizes_.insert(sizes_.end(), part.bytes.begin(), part.bytes.end());
  sizes_.back() += (16 + 14 * count_) * sizeof(float);  // the notes of all members
  operations_.resize(sizes_.size());
  for (Operation& operation : operations_) operation.entered.resize(members_.size());
}

void AllReduceModel::begin(size_t worker) {
  Member& member = members_[worker];
  member.posted = member.entered = 0;
  member.busy = false;
}

void AllReduceModel::computed(size_t worker, size_t part, Action next) {
  Member& member = members_[worker];
  member.posted += parts_[part].bytes.size();
  if (part + 1 < parts_.size()) {
    if (!member.busy) enter(worker);
    return next();
  }
  member.next = std::move(next);
  member.exchange_began = world_.events.now();
  world_.cpu_of_worker(worker).run(training_.workers[worker].exchange, 1, [this, worker] {
    if (++in_exchange_ == members_.size()) {
      last_entered_ = world_.events.now();
      in_exchange_ = 0;
    }
    if (!members_[worker].busy) enter(worker);
  });
}

void AllReduceModel::enter(size_t worker) {
  Member& member = members_[worker];
  if (member.entered >= member.posted) return;
  member.busy = true;
  const size_t index = member.entered++;
  Operation& operation = operations_[index];
  operation.entered[worker] = world_.events.now();
  if (++operation.members < members_.size()) return;
  operation.members = 0;
  operation.done = 0;
  move(index);
}

/// Moves the bytes of an operation, which all members have joined by now.
void AllReduceModel::move(size_t index) {
  const schedule::AllReduceVolume volume =
      schedule::all_reduce_volume(static_cast<size_t>(sizes_[index]), members_.size(), false);
  const std::vector<double>& entered = operations_[index].entered;
  const double first = *std::min_element(entered.begin(), entered.end());
  double sent = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    const size_t node = training_.workers[i].node;
    const double out = world_.network.out(node).pass(entered[i], volume.sent);
    const double in = world_.network.in(node).pass(first, volume.sent);
    sent = std::max({sent, out, in, world_.events.now()});
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    const size_t node = training_.workers[i].node;
    const double latency = volume.turns * (2 * training_.nodes[node].link.latency + costs_.wake);
    const double streamed = volume.messages * volume.overlaps;
    const double messages = (volume.messages - streamed) * kPlainMessage + streamed * kStreamedMessage;
    const double cpu = messages * costs_.message + volume.sent * (2 * costs_.byte + costs_.add / 2);
    world_.events.at(sent + latency, [this, i, index, cpu, hidden = volume.overlaps] {
      // With many pieces, only the work on the last one comes after the network.
      world_.run_messages(i, cpu * (1 - hidden), [this, i, index] { finished(i, index); });
    });
    if (volume.overlaps > 0) world_.run_messages(i, cpu * volume.overlaps, [] {});
  }
}

void AllReduceModel::finished(size_t worker, size_t index) {
  Member& member = members_[worker];
  member.busy = false;
  if (++operations_[index].done == members_.size() && index + 1 == sizes_.size()) ++updates_;
  if (index + 1 == sizes_.size()) return end_step(worker);
  enter(worker);
}

void AllReduceModel::end_step(size_t worker) {
  Member& member = members_[worker];
  const double waited = world_.events.now() - member.exchange_began;
  const double others = std::clamp(last_entered_ - member.exchange_began, 0.0, waited);
  if (world_.counting) {
    world_.times[worker].others += others;
    world_.times[worker].transfer += waited - others;
  }
  world_.span("worker", worker, "all-reduce and wait", member.exchange_began);
  const Work& work = training_.workers[worker].work;
  const double began = world_.events.now();
  world_.cpu_of_worker(worker).run(work.optimizer, work.threads, [this, worker, began] {
    if (world_.counting) world_.times[worker].optimizer += world_.events.now() - began;
    world_.span("worker", worker, "optimizer", began);
    const Action next = std::move(members_[worker].next);
    next();
  });
}

}  // namespace

std::unique_ptr<ExchangeModel> make_all_reduce(World& world) { return std::make_unique<AllReduceModel>(world); }

}  // namespace lockstep::predict
