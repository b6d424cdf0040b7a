// The exchange of a group that trains by all-reduce: every member holds the parameters and the optimizer, gradients are
// added up in buckets while the backward pass still runs, and everyone makes the same update. A step is made by all of
// the group; when that fails, what there was before the step still stands, and the next group goes on from the newest
// state that a member has. Borrows the parameter store. For the training thread; operations of the group overlap on a
// thread of their own (communicator.h).
//
//   all_reduce_exchange.cpp         a step
//   all_reduce_exchange_group.cpp   joining, leaving, the state of a new member
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/autotune.h"
#include "allreduce/buckets.h"
#include "allreduce/communicator.h"
#include "allreduce/compression.h"
#include "allreduce/membership.h"
#include "allreduce/notes.h"
#include "allreduce/stragglers.h"
#include "base/clock_offset.h"
#include "base/tracer.h"
#include "collective/collective.h"
#include "exchange/local_exchange.h"
#include "exchange/run_events.h"
#include "graph/parameters.h"

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
  exchange::RunEvents* events = nullptr;  ///< of the run that this member may keep; borrowed, may be absent
};

/// What a member did, as far as this process has seen it.
struct MemberRecord {
  uint64_t steps = 0;
  uint64_t batches = 0;
  uint64_t examples = 0;
  uint64_t joins = 0;
  double load_seconds = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double transfer_seconds = 0;
};

/// What exchanging cost this process.
struct Communication {
  std::string engine;
  size_t bucket_bytes = 0;
  size_t buckets = 0;
  uint64_t steps = 0;
  uint64_t groups = 0;
  uint64_t bytes_sent = 0;      ///< in these steps; not what joining members were given
  double transfer_seconds = 0;  ///< in operations of the group
  double wait_seconds = 0;      ///< of these, while nothing was left to compute
};

class AllReduceExchange final : public exchange::Exchange {
 public:
  AllReduceExchange(graph::ParameterStore& parameters, AllReduceOptions options,
                    std::unique_ptr<Membership> membership);
  ~AllReduceExchange() override;

  base::Result<std::optional<exchange::StepInfo>> join() override;
  void begin(const exchange::StepStart& start) override;
  void ready(graph::ParameterRange range, exchange::Event event) override;
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
  [[nodiscard]] const std::vector<MemberRecord>& records() const { return records_; }
  [[nodiscard]] Communication communication() const;
  [[nodiscard]] StragglerReport stragglers() const { return stragglers_.report(); }

 private:
  using Clock = std::chrono::steady_clock;

  // A step.
  void post_bucket(size_t index);
  base::Result<bool> reduce(graph::ParameterRange range);
  base::Result<bool> reduce_halves(std::span<float> values);
  base::Result<bool> reduce_sparse(size_t offset, std::span<float> values);
  /// Sends what is left of the step, the note with it, and reads what all have said.
  base::Result<bool> complete(const Note& note);
  base::Result<bool> reduce_last();
  void apply(exchange::StepInfo& info);
  void scale_gradients(graph::ParameterRange range);
  void account();
  /// Of a wait for the others and the transfer: what this member waited for the last to come.
  [[nodiscard]] double waited_for_others(double waited) const;
  [[nodiscard]] std::string with_names(const std::string& text) const;
  void tune();
  /// Cuts the gradients anew, and makes room for what is sent.
  void set_buckets(size_t bytes);
  [[nodiscard]] bool plain() const { return options_.wire == collective::Element::float32 && !top_k_; }

  // The group.
  [[nodiscard]] Standing standing() const;
  base::Result<exchange::StepInfo> regroup();
  base::Result<exchange::StepInfo> end_without_group(base::Failure failure);
  void adopt(Formed formed);
  base::Result<bool> transfer_records();
  base::Result<bool> transfer_state();
  [[nodiscard]] data::Plan make_plan() const;
  [[nodiscard]] bool interrupted() const;

  graph::ParameterStore& parameters_;
  AllReduceOptions options_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<optim::Optimizer> optimizer_;

  // Where the training is.
  bool live_ = false;
  bool whole_ = true;
  uint64_t step_ = 0;
  uint64_t examples_ = 0;
  data::Plan plan_;
  int64_t rounds_ = 0;  ///< of the plan that have been applied
  train::StopReason agreed_ = train::StopReason::none;
  bool tuned_;  ///< options_.bucket_bytes stays
  size_t default_bucket_bytes_;

  // The group.
  Formed group_;
  bool leads_ = false;
  bool parted_ = false;  ///< everyone has heard of the end: nobody waits for this member

  // The step under way.
  exchange::StepStart start_;
  bool in_step_ = false;
  size_t posted_ = 0;  ///< buckets
  float weight_ = 1;   ///< of this member's gradients
  Buckets buckets_;
  std::vector<float> last_;  ///< the last bucket, behind the notes
  std::vector<uint16_t> halves_;
  std::optional<TopK> top_k_;
  std::vector<SparseElement> sparse_;     ///< of this member,
  std::vector<SparseElement> everyones_;  ///< and of all
  std::optional<Autotune> autotune_;      ///< while it is at it
  Notes notes_;
  Communicator communicator_;  ///< after all that its operations use

  // Records.
  std::vector<MemberRecord> records_;
  Communication communication_;
  Stragglers stragglers_;
  std::vector<MemberTimes> paces_;  ///< of the latest step, by rank
  Clock::time_point made_ = Clock::now();
  uint64_t bytes_counted_ = 0;  ///< of what this group has sent
  StepTimes times_;
  Clock::time_point left_finish_ = Clock::now();

  // The trace.
  void trace_step(Clock::time_point entered, Clock::time_point exchanged);
  bool traced_ = false;
  base::TraceTrack* operations_ = nullptr;  ///< of the group, on their own thread
  const base::TraceLabel* bucket_label_ = nullptr;
  const base::TraceLabel* arrow_label_ = nullptr;
  void estimate_clock(Clock::time_point exchanged);
  uint32_t machine_ = 0;
  base::ClockOffset clock_;  ///< of the first rank
  int64_t entered_ = 0;      ///< of the step before, by this clock
  int64_t exchanged_ = 0;
};

}  // namespace lockstep::allreduce
