// A worker's exchange with parameter servers. Gradients are pushed in buckets while the backward pass still runs;
// finish() sends the rest, waits for the new parameters and writes them into the parameter store. A push is kept until
// it is answered: after a failure the same push is sent again, and the servers know whether they had it. Borrows the
// parameter store. For the training thread; heartbeats have their own threads (server_link.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tracer.h"
#include "cluster/spec.h"
#include "exchange/exchange.h"
#include "program/parameters.h"
#include "ps/coordinator.h"
#include "ps/messages.h"
#include "ps/server_link.h"
#include "schedule/placement.h"
#include "schedule/push_buckets.h"

namespace lockstep::ps {

/// Initial state of training: from the model's own initialisation, or a checkpoint.
struct Initial {
  uint64_t version = 0;
  uint64_t examples = 0;
  std::span<const float> parameters;
  std::vector<std::span<const float>> slots;  ///< may be empty: zeros
  data::Remainder data;
};

struct PsOptions {
  cluster::Spec spec;
  cluster::Task task;
  transport::Security security;
  std::string job;  ///< digest of the settings that all roles must agree on
  Rules rules;
  CoordinatorOptions coordination;  ///< settings that the chief sends to the servers
  bool lock_free = false;
  schedule::Placement placement = schedule::Placement::balanced;
  Element wire = Element::kFloat32;
  double patience = 600;
  int threads = 1;
  size_t bucket_bytes = size_t{1} << 20;
  std::chrono::microseconds spin{0};  ///< time that waits for parameters poll before they sleep
  Log log;
  const std::atomic<bool>* interrupt = nullptr;
  base::TrafficMeter* meter = nullptr;  ///< counts the traffic of all its connections; borrowed
  base::TraceTrack* trace = nullptr;    ///< track of the training thread; may be absent
  /// Chief: called when a server has no parameters; the spans live until the next call.
  std::function<Initial()> initial;
  exchange::LookForEnding look_for_ending;  ///< asked while a server cannot be reached; may be absent
};

class PsExchange final : public exchange::Exchange {
 public:
  PsExchange(program::ParameterStore& parameters, PsOptions options);
  ~PsExchange() override;

  base::Result<std::optional<exchange::StepInfo>> join() override;
  void begin(const exchange::StepStart& start) override;
  void ready(program::ParameterRange range, exchange::Event event) override;
  base::Result<exchange::StepInfo> finish(const exchange::BatchReport& report) override;
  base::Result<std::optional<exchange::StepInfo>> leave(const exchange::Farewell& farewell) override;
  /// True until training has ended without this worker; then all is written already.
  [[nodiscard]] bool leads() const override { return !over_; }
  [[nodiscard]] std::vector<std::string> slot_names() const override;
  base::Result<exchange::Snapshot> snapshot() override;

  /// Chief, after leave(): lets all members go.
  void end();
  /// The run's name; known after join().
  [[nodiscard]] const std::string& run() const { return run_; }
  /// The coordinator's records of all members, as of the latest snapshot or the end.
  [[nodiscard]] const std::vector<WorkerHistory>& records() const { return records_; }
  [[nodiscard]] double job_seconds() const { return job_seconds_; }
  /// Seconds of this process in finish(), and in between.
  [[nodiscard]] double wait_seconds() const { return wait_seconds_; }
  [[nodiscard]] double busy_seconds() const { return busy_seconds_; }

 private:
  struct ServerPart;

  [[nodiscard]] bool chief() const { return member_ == 0; }
  base::Status connect_all(const std::string& awaited);
  base::Status initialise_if_needed();
  base::Status send_initial(ServerPart& part, const Initial& initial, uint64_t generation);
  /// Reads one answer of parameters into the store.
  base::Result<wire::Reply> read_parameters(ServerPart& part);
  base::Status pull(ServerPart& part, uint64_t version);
  /// Brings all servers to one version (sync).
  base::Status level();
  void push_bucket(program::ParameterRange bucket);
  base::Status push(ServerPart& part, transport::Stream& stream, program::ParameterRange range, bool last);
  base::Status push_rest(ServerPart& part);
  /// Sync: sends the push again to other servers that lost it. A version waits until every server has the push, so this
  /// comes before the wait for the first server's answer.
  base::Status push_to_others();
  /// Records an answer in the trace: its arrow, and the offset of the server's clock.
  void trace_answer(ServerPart& part, const wire::Reply& reply);
  /// Sends the missing part of the push and reads the answer; retries after a failure.
  base::Result<wire::Reply> complete(ServerPart& part);
  /// Waits for all answers to the push in flight.
  base::Result<exchange::StepInfo> await_answers();
  [[nodiscard]] exchange::StepInfo info_from(const wire::Reply& reply);
  /// Sets the outcome from the answer; the stop in `info` is already set.
  static void set_outcome(exchange::StepInfo& info, const wire::Reply& reply);
  /// Tries once to join.
  base::Result<exchange::StepInfo> try_to_join();
  /// Joins as a new member: the others gave this process up, or the parameters were set again.
  base::Result<exchange::StepInfo> rejoin(const wire::Reply& reply);
  [[nodiscard]] std::optional<exchange::Ending> look_for_ending() const;
  /// Returns true if training has ended for all.
  [[nodiscard]] bool ended() const;
  /// Ends training here because it has ended without this process.
  exchange::StepInfo end_after_others();
  void clip();
  void note(const base::Failure& failure);
  base::Status hold();
  void release();
  base::Result<exchange::Snapshot> try_snapshot();
  base::Status read_state(ServerPart& part, transport::Stream& stream, wire::Snapshot& end);
  void take_records(const wire::Ledger& ledger);
  [[nodiscard]] bool interrupted() const { return options_.interrupt != nullptr && options_.interrupt->load(); }

  program::ParameterStore& parameters_;
  PsOptions options_;
  int member_;
  uint64_t incarnation_;
  std::vector<std::unique_ptr<ServerPart>> parts_;
  std::string run_;
  uint64_t generation_ = 0;  ///< generation of the parameters it joined with; 0: not joined
  std::string noted_;        ///< latest failure that was logged
  bool given_up_ = false;    ///< a server did not come back within the patience
  bool over_ = false;        ///< training ended without this process
  /// true while waiting for the first server's answer, which needs the others
  std::atomic<bool> waits_for_all_ = false;

  // The push in flight.
  uint64_t sequence_ = 0;
  uint64_t plan_ = 0;
  int64_t rounds_ = 0;  ///< rounds of the plan since the last push
  exchange::StepStart start_;
  schedule::PushBuckets buckets_;
  std::shared_ptr<int> hold_;  ///< reference to the gradients' memory; unique again when the transport has released it
  exchange::BatchReport report_;
  float gradient_scale_ = 1;
  float gradient_norm_ = 0;
  exchange::Spent spent_;     ///< time spent on it so far
  Clock::time_point pushed_;  ///< when it was fully sent and the wait for answers began
  bool rejoined_ = false;     ///< joined again instead of getting an answer
  uint64_t held_on_ = 0;      ///< connection that holds ps:0 for a snapshot
  bool traced_ = false;

  Clock::time_point left_finish_;
  double last_wait_ = 0;
  double last_busy_ = 0;
  double wait_seconds_ = 0;
  double busy_seconds_ = 0;
  std::vector<std::vector<float>> state_;  ///< state of the latest snapshot: parameters, then slots
  std::vector<WorkerHistory> records_;
  double job_seconds_ = 0;
  const base::TraceLabel* push_label_ = nullptr;
  const base::TraceLabel* pull_label_ = nullptr;
};

}  // namespace lockstep::ps
