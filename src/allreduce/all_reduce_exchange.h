// The exchange of a group that trains by all-reduce: every member holds the parameters and the optimizer, gradients are
// added up in buckets while the backward pass still runs, and everyone makes the same update. A step is made by all of
// the group; when that fails, what there was before the step still stands, and the next group goes on from the newest
// state that a member has. Borrows the parameter store. For the training thread; operations of the group overlap on a
// thread of their own (communicator.h).
//
//   all_reduce_exchange.cpp         a step
//   all_reduce_exchange_group.cpp   joining, leaving, the state of a new member
//   bucket_sender.h                 gradients and notes on their way
//   bucket_tuner.h                  the size of buckets
//   step_timer.h, accounting.h      what a step took, and all of them
//   group_trace.h                   what a trace shows of it
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
  exchange::LocalOptions rules;  ///< of the optimizer
  Standing initial;              ///< of the parameters and optimizer state as they are when joining
  int64_t batch = 1;             ///< per member
  int64_t accumulate = 1;        ///< batches per step
  int64_t examples = 1;          ///< in a pass
  bool sharded = true;           ///< else every member goes through all data
  bool mean = true;              ///< of the gradients; else their sum
  bool mean_loss = true;         ///< the loss is a mean over the batch: gradients count by examples
  collective::Element wire = collective::Element::float32;
  double top_k = 0;  ///< the share of the gradients that is sent; 0: all
  size_t bucket_bytes = size_t{25} << 20;
  bool autotune = false;                         ///< finds better bucket_bytes in the first steps
  std::vector<std::string> names;                ///< of all that may be members, by number
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed
  base::TraceTrack* trace = nullptr;             ///< of the training thread; may be absent
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

  /// The leader, when all is written: everyone may go.
  void end();
  /// By member number.
  [[nodiscard]] const std::vector<MemberTotals>& totals() const { return accounting_.totals(); }
  [[nodiscard]] Communication communication() const;
  [[nodiscard]] StragglerReport stragglers() const { return accounting_.stragglers(); }

 private:
  using Clock = std::chrono::steady_clock;

  // A step.
  [[nodiscard]] Note make_note(const exchange::BatchReport& report, Clock::time_point entered) const;
  base::Status complete(const Note& note);
  /// After a step that failed: the next group, or why there is none.
  base::Result<exchange::StepInfo> make_again(const base::Failure& failure, Clock::time_point entered);
  /// After a step that everyone has made.
  base::Result<exchange::StepInfo> update(Clock::time_point entered, Clock::time_point exchanged);
  void apply(exchange::StepInfo& info);
  void account();
  /// Of a wait for the others and the transfer: what this member waited for the last to come.
  [[nodiscard]] double waited_for_others(double waited) const;
  void tune();

  // The group.
  [[nodiscard]] Standing standing() const;
  base::Result<exchange::StepInfo> regroup();
  base::Result<exchange::StepInfo> end_without_group(base::Failure failure);
  void adopt(Formed formed);
  base::Status transfer_state();
  [[nodiscard]] data::Plan make_plan() const;
  [[nodiscard]] bool interrupted() const;
  [[nodiscard]] const std::string& name_of(int rank) const;
  /// What an engine reports by rank, by task.
  [[nodiscard]] base::Failure named(const base::Failure& failure) const;

  program::ParameterStore& parameters_;
  AllReduceOptions options_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<optim::Optimizer> optimizer_;

  Standing here_;  ///< where this member is; in a group, its data is what it was before
  data::Plan plan_;
  int64_t rounds_ = 0;                                  ///< of the plan that have been applied
  train::StopReason agreed_ = train::StopReason::none;  ///< why all end

  Formed group_;
  bool leads_ = false;
  bool parted_ = false;  ///< everyone has heard of the end: nobody waits for this member

  exchange::StepStart start_;  ///< of the step under way
  bool in_step_ = false;
  Notes notes_;  ///< of the latest step

  BucketTuner tuner_;
  StepTimer timer_;
  Accounting accounting_;
  BucketSender sender_;  ///< after the group that its operations use
  GroupTrace trace_;
};

}  // namespace lockstep::allreduce
