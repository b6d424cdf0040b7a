// How a member of an all-reduce group joins and leaves.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "allreduce/all_reduce_exchange.h"

namespace lockstep::allreduce {
namespace {

using exchange::StepInfo;

constexpr size_t kTransferBytes = size_t{32}
                                  << 20;  ///< part of the state sent at a time, so that each part has its own deadline

}  // namespace

const std::string& AllReduceExchange::name_of(int rank) const {
  return options_.names[static_cast<size_t>(group_.members[static_cast<size_t>(rank)])];
}

base::Failure AllReduceExchange::named(const base::Failure& failure) const {
  std::vector<std::string> names;
  for (const int member : group_.members) names.push_back(options_.names[static_cast<size_t>(member)]);
  return base::Failure(failure).named(names);
}

bool AllReduceExchange::interrupted() const {
  return options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed);
}

Standing AllReduceExchange::standing() const {
  Standing standing = here_;
  standing.bucket_bytes = tuner_.settled() ? sender_.bucket_bytes() : 0;
  if (group_.collective) {
    const std::vector<int64_t> done(static_cast<size_t>(plan_.shard.count), rounds_);
    standing.data = data::unapplied(plan_, done);
  }
  return standing;
}

base::Result<std::optional<StepInfo>> AllReduceExchange::join() {
  base::Result<StepInfo> joined = regroup();
  if (!joined) return joined.failure();
  timer_.left(Clock::now());
  return std::optional<StepInfo>(std::move(joined.value()));
}

/// Forms groups until all members of one have the same state.
base::Result<StepInfo> AllReduceExchange::regroup() {
  StepInfo info;
  if (leads_ && options_.events != nullptr) options_.events->group_breaks_up();
  for (;;) {
    if (group_.collective) {
      group_.collective->abort("a new group is being formed");
      sender_.leave_group();
    }
    here_ = standing();
    group_.collective.reset();
    const Standing before = here_;
    base::Result<Formed> formed = membership_->form(here_);
    if (!formed) return end_without_group(formed.failure());
    adopt(std::move(formed.value()));
    if (!group_.transfer) break;
    const bool keeps = before.whole && before.live && !here_.whole;
    const base::Status moved = keeps ? transfer_state_or_keep(before) : transfer_state();
    if (moved) break;
    options_.log("warning", "receiving the state failed: " + named(moved.failure()).message());
  }
  membership_->received();
  accounting_.begin(*group_.collective);
  const bool begins = !group_.standing.live;
  here_.whole = here_.live = true;
  here_.earlier = false;
  if (begins && leads_ && options_.events != nullptr) options_.events->training_begins(here_.step, here_.examples);
  info.step = here_.step;
  info.examples_total = here_.examples;
  info.plan = plan_;
  info.batches_per_step = options_.accumulate;
  return info;
}

/// Ends without a group. The first remaining member of the latest group keeps its state if it is whole and the run's
/// folder has nothing newer.
base::Result<StepInfo> AllReduceExchange::end_without_group(base::Failure failure) {
  const bool over = membership_->over();
  const bool ended_by_user = interrupted() || membership_->interrupted();
  if (!over && !ended_by_user) {
    if (!here_.whole || here_.earlier) leads_ = false;
    return failure;
  }
  const bool newest = options_.events == nullptr || options_.events->is_newest(here_.step);
  leads_ = !over && here_.whole && here_.live && membership_->first_survivor() && newest;
  if (over) options_.log("warning", "training is over: it ended without this worker");
  StepInfo info;
  info.step = here_.step;
  info.outcome = over ? exchange::StepOutcome::missed : exchange::StepOutcome::ended;
  agreed_ = ended_by_user ? train::StopReason::interrupted : train::StopReason::data;
  info.stop = {agreed_};
  return info;
}

void AllReduceExchange::adopt(Formed formed) {
  const std::vector<int> before = std::exchange(group_.members, {});
  group_ = std::move(formed);
  leads_ = group_.collective->rank() == 0;
  accounting_.joined(*group_.collective, group_.members, before);
  if (leads_ && !group_.announced.empty()) options_.log("info", group_.announced);
  // Keeps the current state unless another one is received.
  const bool receives = group_.transfer && !group_.holds && group_.collective->rank() != group_.source;
  if (receives) here_.whole = here_.live = false;
  here_.step = group_.standing.step;
  here_.examples = group_.standing.examples;
  if (options_.events != nullptr) options_.events->group_begins(group_.number, here_.step);
  plan_ = make_plan();
  rounds_ = 0;
  in_step_ = false;
  trace_.restart();
  // All members have the same numbers, so all cut the same buckets.
  sender_.use(*group_.collective, tuner_.begin(group_.standing.bucket_bytes));
  if (leads_ && tuner_.settled() && options_.autotune && options_.events != nullptr)
    options_.events->bucket_size_found(sender_.bucket_bytes());
}

data::Plan AllReduceExchange::make_plan() const {
  data::Plan plan;
  plan.id = group_.number;
  plan.data = group_.standing.data;
  if (options_.sharded) plan.shard = {group_.collective->rank(), group_.collective->size()};
  plan.batch = options_.batch;
  plan.examples = options_.examples;
  plan.rounds_done = static_cast<int64_t>(here_.step) * options_.accumulate;
  return plan;
}

base::Status AllReduceExchange::transfer_state() {
  base::Status told = group_.collective->broadcast(accounting_.shared(), group_.source);
  if (!told) return told;
  std::vector<std::span<float>> arrays{parameters_.values()};
  for (const optim::StateSlot& slot : optimizer_->state()) arrays.push_back(slot.values);
  for (const std::span<float> array : arrays) {
    std::span<std::byte> bytes = std::as_writable_bytes(array);
    while (!bytes.empty()) {
      const std::span<std::byte> part = bytes.first(std::min(bytes.size(), kTransferBytes));
      base::Status sent = group_.collective->broadcast(part, group_.source);
      if (!sent) return sent;
      bytes = bytes.subspan(part.size());
    }
  }
  return {};
}

base::Status AllReduceExchange::transfer_state_or_keep(const Standing& before) {
  std::vector<std::span<float>> arrays{parameters_.values()};
  for (const optim::StateSlot& slot : optimizer_->state()) arrays.push_back(slot.values);
  std::vector<std::vector<float>> kept;
  for (const std::span<float> array : arrays) kept.emplace_back(array.begin(), array.end());
  base::Status moved = transfer_state();
  if (moved) return moved;
  for (size_t i = 0; i < arrays.size(); ++i) std::copy(kept[i].begin(), kept[i].end(), arrays[i].begin());
  group_.collective->abort("the state did not arrive");
  sender_.leave_group();
  group_.collective.reset();
  here_ = before;
  here_.earlier = true;
  return moved;
}

base::Result<std::optional<StepInfo>> AllReduceExchange::leave(const exchange::Farewell& farewell) {
  Note note;
  note.stop = farewell.reason == train::StopReason::none ? train::StopReason::data : farewell.reason;
  while (agreed_ == train::StopReason::none) {
    if (!in_step_) begin({here_.step, 0, 0});
    const base::Status told = complete(note);
    if (told) {
      agreed_ = notes_.stop;
      break;
    }
    const uint64_t before = here_.step;
    base::Result<StepInfo> next = regroup();
    if (!next) return next.failure();
    if (here_.step < before && agreed_ == train::StopReason::none) return std::optional(std::move(next.value()));
  }
  if (!group_.collective) return std::optional<StepInfo>();  // training was over, or ended without other members
  const base::Result<Parting> parting = membership_->close(agreed_);
  if (!parting && !interrupted()) return parting.failure();
  if (parting) leads_ = parting.value() == Parting::closes;
  end_announced_ = parting && !leads_;
  return std::optional<StepInfo>();
}

void AllReduceExchange::end() {
  if (!group_.collective) return;  // it ended alone: other members may still train and must not stop
  membership_->end();
  end_announced_ = true;
}

void AllReduceExchange::saved() { membership_->publish(here_.step, parameters_.values()); }

std::vector<std::string> AllReduceExchange::slot_names() const {
  const auto names = optim::slot_names(options_.rules.optimizer.method);
  return {names.begin(), names.end()};
}

std::vector<optim::StateSlot> AllReduceExchange::state() { return optimizer_->state(); }

base::Result<exchange::Snapshot> AllReduceExchange::snapshot() {
  exchange::Snapshot snapshot;
  const Standing now = standing();
  snapshot.step = here_.step;
  snapshot.parameters = parameters_.values();
  snapshot.slots = optimizer_->state();
  snapshot.progress = exchange::Snapshot::Progress{here_.examples, now.data};
  return snapshot;
}

}  // namespace lockstep::allreduce
