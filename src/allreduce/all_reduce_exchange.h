// The exchange of a group that trains by all-reduce. Every member holds the parameters and the optimizer; gradients are
// summed in buckets while the backward pass still runs; every member makes the same update. A step needs the whole
// group. If it fails, the state before the step stays valid, and the next group goes on from its members' newest state.
// Borrows the parameter store. For the training thread; operations of the group overlap on their own thread
// (communicator.h).
//
//   all_reduce_exchange.cpp         a step
//   all_reduce_exchange_group.cpp   joining, leaving, the state of a new member
//   bucket_sender.h                 gradients and notes in flight
//   bucket_tuner.h                  the size of buckets
//   step_timer.h, accounting.h      times of a step, and of all steps
//   group_trace.h                   the group in a trace
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/accounting.h"
#include "allreduce/bucket_sender.h"
#include "allreduce/bucket_tuner.h"
#include "allreduce/group_trace.h"
#include "allreduce/membership.h"
#include "allreduce/notes.h"
#include "allreduce/step_timer.h"
#include "base/tracer.h"
#include "collective/collective.h"
#include "exchange/local_exchange.h"
#include "exchange/run_events.h"
#include "program/parameters.h"

namespace lockstep::allreduce {

struct AllReduceOptions {
  exchange::LocalOptions rules;  ///< settings of the optimizer
  Standing initial;              ///< state of parameters and optimizer when joining
  int64_t batch = 1;             ///< per member
  int64_t accumulate = 1;        ///< batches per step
  int64_t examples = 1;          ///< examples in a pass
  bool sharded = true;           ///< false: every member goes through all data
  bool mean = true;              ///< true: average the gradients; false: sum them
  bool mean_loss = true;         ///< true: the loss is a mean over the batch, so gradients are weighted by examples
  collective::Element wire = collective::Element::float32;
  double top_k = 0;  ///< share of the gradients that is sent; 0: all
  size_t bucket_bytes = size_t{25} << 20;
  bool autotune = false;                         ///< true: the first steps find a better bucket_bytes
  std::vector<std::string> names;                ///< names of all possible members, by number
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed
  base::TraceTrack* trace = nullptr;             ///< track of the training thread; may be absent
  bool one_process = false;                      ///< members are threads that share a tracer, and so a clock
  std::function<void(std::string_view level, const std::string& text)> log;
  exchange::RunEvents* events = nullptr;  ///< borrowed, may be absent
};

class AllReduceExchange final : public exchange::Exchange {
 public:
  AllReduceExchange(program::ParameterStore& parameters, AllReduceOptions options,
                    std::unique_ptr<Membership> membership);
  ~AllReduceExchange() override;

  base::Result<std::optional<exchange::StepInfo>> join() override;
  void begin(const exchange::StepStart& start) override;
  void ready(program::ParameterRange range, exchange::Event event) override;
  base::Result<exchange::StepInfo> finish(const exchange::BatchReport& report) override;
  base::Result<std::optional<exchange::StepInfo>> leave(const exchange::Farewell& farewell) override;
  [[nodiscard]] bool leads() const override { return leads_; }
  void saved() override;
  [[nodiscard]] std::vector<std::string> slot_names() const override;
  std::vector<optim::StateSlot> state() override;
  base::Result<exchange::Snapshot> snapshot() override;

  /// Ends the run, called by the leader when everything is written: all members may leave.
  void end();
  /// As in Membership.
  [[nodiscard]] std::string why_not_latest() { return membership_->why_not_latest(); }
  /// Returns the number of the group; 0: groups do not change.
  [[nodiscard]] uint64_t group() const { return group_.number; }
  /// Totals by member number.
  [[nodiscard]] const std::vector<MemberTotals>& totals() const { return accounting_.totals(); }
  [[nodiscard]] Communication communication() const;
  [[nodiscard]] StragglerReport stragglers() const { return accounting_.stragglers(); }

 private:
  using Clock = std::chrono::steady_clock;

  // Parts of a step.
  [[nodiscard]] Note make_note(const exchange::BatchReport& report, Clock::time_point entered) const;
  base::Status complete(const Note& note);
  /// Handles a failed step: returns the next group, or why there is none.
  base::Result<exchange::StepInfo> repeat_step(const base::Failure& failure, Clock::time_point entered);
  /// Applies a step that all members have made.
  base::Result<exchange::StepInfo> update(Clock::time_point entered, Clock::time_point exchanged);
  void apply(exchange::StepInfo& info);
  void account();
  /// Returns the part of `waited` that was spent on the last member to arrive, without the transfer.
  [[nodiscard]] double waited_for_others(double waited) const;
  void tune();

  // Parts of joining and leaving a group.
  [[nodiscard]] Standing standing() const;
  base::Result<exchange::StepInfo> regroup();
  base::Result<exchange::StepInfo> end_without_group(base::Failure failure);
  void adopt(Formed formed);
  base::Status transfer_state();
  /// Receives the state, or keeps the one from before if it does not arrive: `before` is its standing.
  base::Status transfer_state_or_keep(const Standing& before);
  [[nodiscard]] data::Plan make_plan() const;
  [[nodiscard]] bool interrupted() const;
  [[nodiscard]] const std::string& name_of(int rank) const;
  /// Replaces the ranks of an engine's failure by task names.
  [[nodiscard]] base::Failure named(const base::Failure& failure) const;

  program::ParameterStore& parameters_;
  AllReduceOptions options_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<optim::Optimizer> optimizer_;

  Standing here_;  ///< state of this member; in a group, `data` is as before the group
  data::Plan plan_;
  int64_t rounds_ = 0;                                  ///< rounds of the plan that have been applied
  train::StopReason agreed_ = train::StopReason::none;  ///< why training ends, as agreed by all members

  Formed group_;
  bool leads_ = false;
  bool end_announced_ = false;  ///< all have heard of the end: no member waits for this one

  exchange::StepStart start_;  ///< the step in flight
  bool in_step_ = false;
  Notes notes_;  ///< notes of the latest step

  BucketTuner tuner_;
  StepTimer timer_;
  Accounting accounting_;
  BucketSender sender_;  ///< declared after the group that its operations use
  GroupTrace trace_;
};

}  // namespace lockstep::allreduce
