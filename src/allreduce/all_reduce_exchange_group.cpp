// How a member of an all-reduce group comes and goes.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "allreduce/all_reduce_exchange.h"

namespace lockstep::allreduce {
namespace {

using exchange::StepInfo;

constexpr size_t kTransferBytes = size_t{32} << 20;  ///< of the state at a time, so that each has its own deadline

}  // namespace

bool AllReduceExchange::interrupted() const {
  return options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed);
}

Standing AllReduceExchange::standing() const {
  Standing standing = options_.initial;
  standing.whole = whole_;
  standing.live = live_;
  standing.step = step_;
  standing.examples = examples_;
  standing.bucket_bytes = tuned_ ? options_.bucket_bytes : 0;
  if (group_.collective) {
    const std::vector<int64_t> done(static_cast<size_t>(plan_.shard.count), rounds_);
    standing.data = data::unapplied(plan_, done);
  }
  return standing;
}

base::Result<std::optional<StepInfo>> AllReduceExchange::join() {
  base::Result<StepInfo> joined = regroup();
  if (!joined) return joined.failure();
  left_finish_ = Clock::now();
  return std::optional<StepInfo>(std::move(joined.value()));
}

/// Until a group stands in which everyone has the same state.
base::Result<StepInfo> AllReduceExchange::regroup() {
  StepInfo info;
  const bool led = leads_ && live_;
  const uint64_t had = step_;
  if (leads_ && options_.events != nullptr) options_.events->group_breaks_up();
  for (;;) {
    if (group_.collective) {
      group_.collective->abort("the group is made anew");
      communicator_.reset();
    }
    const Standing before = standing();
    group_.collective.reset();
    base::Result<Formed> formed = membership_->form(before);
    options_.initial = before;  // where it is, until it is in a group again
    if (!formed) return end_without_group(formed.failure());
    adopt(std::move(formed.value()));
    if (!group_.transfer) break;
    const base::Result<bool> moved = transfer_state();
    if (moved) break;
    options_.log("warning", "the state did not come: " + moved.failure().message);
  }
  bytes_counted_ = group_.collective->traffic().sent;
  const bool begins = !group_.standing.live;
  whole_ = live_ = true;
  if (begins && leads_ && options_.events != nullptr) options_.events->training_begins(step_, examples_);
  // Its group made way for another: what it kept of later steps does not count. Nobody has made a step since.
  if (led && step_ < had && options_.events != nullptr) options_.events->went_back(step_);
  info.step = step_;
  info.examples_total = examples_;
  info.plan = plan_;
  info.batches_per_step = options_.accumulate;
  return info;
}

/// The first one of the latest group who is left keeps what it has, where it is whole and nothing newer is kept.
base::Result<StepInfo> AllReduceExchange::end_without_group(base::Failure failure) {
  const bool over = membership_->over();
  const bool ended_by_user = interrupted() || membership_->interrupted();
  if (!over && !ended_by_user) {
    if (!whole_) leads_ = false;
    return failure;
  }
  const bool newest = options_.events == nullptr || options_.events->is_newest(step_);
  leads_ = !over && whole_ && live_ && membership_->foremost() && newest;
  if (over) options_.log("warning", "training is over: it ended without this worker");
  StepInfo info;
  info.step = step_;
  info.applied = false;
  info.missed = over;
  info.stop = ended_by_user ? train::StopReason::interrupted : train::StopReason::data;
  agreed_ = info.stop;
  return info;
}

void AllReduceExchange::adopt(Formed formed) {
  const std::vector<int> before = std::exchange(group_.members, {});
  group_ = std::move(formed);
  leads_ = group_.collective->rank() == 0;
  ++communication_.groups;
  communication_.engine = group_.collective->engine();
  for (const int member : group_.members) {
    const bool here = std::find(before.begin(), before.end(), member) != before.end();
    if (!here) ++records_[static_cast<size_t>(member)].joins;
  }
  if (leads_ && !group_.announced.empty()) options_.log("info", group_.announced);
  // What comes takes the place of what is here, unless that is the same.
  const bool receives = group_.transfer && !group_.holds && group_.collective->rank() != group_.source;
  if (receives) whole_ = live_ = false;
  step_ = group_.standing.step;
  examples_ = group_.standing.examples;
  plan_ = make_plan();
  rounds_ = 0;
  in_step_ = false;
  clock_ = {};
  entered_ = exchanged_ = 0;
  stragglers_.restart(group_.members);
  if (top_k_) top_k_->reset();
  // All members are told the same, so all cut alike.
  const uint64_t known = group_.standing.bucket_bytes;
  tuned_ = known > 0;
  autotune_.reset();
  if (!tuned_) autotune_.emplace(parameters_.count() * sizeof(float), default_bucket_bytes_);
  set_buckets(tuned_ ? known : autotune_->bucket_bytes());
  if (leads_ && tuned_ && options_.autotune && options_.events != nullptr) options_.events->bucket_size_found(known);
}

data::Plan AllReduceExchange::make_plan() const {
  data::Plan plan;
  plan.id = group_.number;
  plan.data = group_.standing.data;
  if (options_.sharded) plan.shard = {group_.collective->rank(), group_.collective->size()};
  plan.batch = options_.batch;
  plan.examples = options_.examples;
  plan.rounds_done = static_cast<int64_t>(step_) * options_.accumulate;
  return plan;
}

/// What has been seen of all members; everyone knows the same.
base::Result<bool> AllReduceExchange::transfer_records() {
  static_assert(std::is_trivially_copyable_v<MemberRecord>);
  return group_.collective->broadcast(std::as_writable_bytes(std::span(records_)), group_.source);
}

base::Result<bool> AllReduceExchange::transfer_state() {
  base::Result<bool> told = transfer_records();
  if (!told) return told;
  std::vector<std::span<float>> arrays{parameters_.values()};
  for (const optim::StateSlot& slot : optimizer_->state()) arrays.push_back(slot.values);
  for (const std::span<float> array : arrays) {
    std::span<std::byte> bytes = std::as_writable_bytes(array);
    while (!bytes.empty()) {
      const std::span<std::byte> part = bytes.first(std::min(bytes.size(), kTransferBytes));
      base::Result<bool> sent = group_.collective->broadcast(part, group_.source);
      if (!sent) return sent;
      bytes = bytes.subspan(part.size());
    }
  }
  return true;
}

base::Result<std::optional<StepInfo>> AllReduceExchange::leave(const exchange::Farewell& farewell) {
  Note note;
  note.stop = farewell.reason == train::StopReason::none ? train::StopReason::data : farewell.reason;
  while (agreed_ == train::StopReason::none) {
    if (!in_step_) begin({step_, 0, 0});
    const base::Result<bool> told = complete(note);
    if (told) {
      agreed_ = notes_.stop;
      break;
    }
    const uint64_t before = step_;
    base::Result<StepInfo> next = regroup();
    if (!next) return next.failure();
    if (step_ < before && agreed_ == train::StopReason::none) return std::optional(std::move(next.value()));
  }
  if (!group_.collective) return std::optional<StepInfo>();  // it was over, or ended while nobody was there
  base::Result<bool> closes = membership_->close(agreed_);
  if (!closes && !interrupted()) return closes.failure();
  if (closes) leads_ = closes.value();
  parted_ = closes && !leads_;
  return std::optional<StepInfo>();
}

void AllReduceExchange::end() {
  if (!group_.collective) return;  // it ended alone: who trains on is not told that all is over
  membership_->end();
  parted_ = true;
}

void AllReduceExchange::saved() { membership_->publish(step_, parameters_.values()); }

std::vector<std::string> AllReduceExchange::slot_names() const {
  const auto names = optim::slot_names(options_.rules.optimizer.method);
  return {names.begin(), names.end()};
}

std::vector<optim::StateSlot> AllReduceExchange::state() { return optimizer_->state(); }

base::Result<exchange::Snapshot> AllReduceExchange::snapshot() {
  exchange::Snapshot snapshot;
  const Standing here = standing();
  snapshot.step = step_;
  snapshot.parameters = parameters_.values();
  snapshot.slots = optimizer_->state();
  snapshot.group = exchange::Snapshot::Group{examples_, here.data};
  return snapshot;
}

}  // namespace lockstep::allreduce
