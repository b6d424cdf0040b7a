// The exchange of a worker with parameter servers. Gradients are pushed in buckets while the backward pass still runs;
// finish() sends the rest, waits for the new parameters and writes them into the parameter store. A push is kept until
// its answer is there: after a failure the same push is sent again, and the servers know whether they had it.
// Borrows the parameter store. For the training thread; heartbeats have threads of their own (link.h).
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
#include "ps/placement.h"
#include "ps/server_link.h"

namespace lockstep::ps {

/// What training starts with: from the model's own initialisation, or a checkpoint.
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
  std::string job;  ///< a digest of what all roles must agree on
  Rules rules;
  CoordinatorOptions coordination;  ///< the chief tells it to the servers
  bool lock_free = false;
  Placement placement = Placement::balanced;
  Element wire = Element::kFloat32;
  double patience = 600;
  int threads = 1;
  size_t bucket_bytes = size_t{1} << 20;
  std::chrono::microseconds spin{0};  ///< how long waits for parameters poll before they sleep
  Log log;
  const std::atomic<bool>* interrupt = nullptr;
  base::TrafficMeter* meter = nullptr;  ///< of all its connections; borrowed
  base::TraceTrack* trace = nullptr;    ///< of the training thread; may be absent
  /// The chief: called when a server holds nothing; the spans live until the next call.
  std::function<Initial()> initial;
  exchange::LookForEnding look_for_ending;  ///< while a server cannot be reached; may be absent
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
  /// Not after an end without it: then all is written.
  [[nodiscard]] bool leads() const override { return !over_; }
  [[nodiscard]] std::vector<std::string> slot_names() const override;
  base::Result<exchange::Snapshot> snapshot() override;

  /// The chief, after leave(): everyone may go.
  void end();
  /// The run's name, known after join().
  [[nodiscard]] const std::string& run() const { return run_; }
  /// What the coordinator knew of all members when the latest snapshot or the end came.
  [[nodiscard]] const std::vector<WorkerHistory>& records() const { return records_; }
  [[nodiscard]] double job_seconds() const { return job_seconds_; }
  /// Of this process: seconds in finish(), and in between.
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
  /// All servers at one version (sync).
  base::Status level();
  void push_bucket();
  base::Status push(ServerPart& part, transport::Stream& stream, program::ParameterRange range, bool last);
  base::Status push_rest(ServerPart& part);
  /// Sync: a version waits until every server has the push, so what one of the others lost goes there again before
  /// the first one's answer is waited for.
  base::Status push_to_others();
  /// What a trace needs of an answer that came: its arrow, and what it says of the server's clock.
  void trace_answer(ServerPart& part, const wire::Reply& reply);
  /// Sends what is missing and reads the answer, again after a failure.
  base::Result<wire::Reply> complete(ServerPart& part);
  /// Waits for all answers to a push that was sent.
  base::Result<exchange::StepInfo> await_answers();
  [[nodiscard]] exchange::StepInfo info_from(const wire::Reply& reply);
  /// What the answer says of the push; the info has its stop already.
  static void set_outcome(exchange::StepInfo& info, const wire::Reply& reply);
  /// One try to take part.
  base::Result<exchange::StepInfo> try_to_join();
  /// Joins as if new: this process was given up by the others, or the parameters were set anew.
  base::Result<exchange::StepInfo> rejoin(const wire::Reply& reply);
  [[nodiscard]] std::optional<exchange::Ending> look_for_ending() const;
  /// Whether training has ended for all.
  [[nodiscard]] bool ended() const;
  /// It has, and this process was not there.
  exchange::StepInfo miss_the_end();
  void clip();
  void note(const base::Failure& failure);
  base::Result<wire::Ledger> hold();
  base::Result<wire::Snapshot> ask_hold(ServerPart& part);
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
  uint64_t generation_ = 0;                  ///< of the parameters that it took part with; 0: none yet
  std::string noted_;                        ///< the latest failure that was told
  bool given_up_ = false;                    ///< a server did not come back within the patience
  bool over_ = false;                        ///< training ended without this process
  std::atomic<bool> waits_for_all_ = false;  ///< for the first server's answer, which needs the others

  // The push under way.
  uint64_t sequence_ = 0;
  uint64_t plan_ = 0;
  int64_t rounds_ = 0;  ///< of the plan since the last push
  exchange::StepStart start_;
  program::ParameterRange bucket_;
  std::shared_ptr<int> hold_;  ///< of the gradients' memory: the transport has let go when this is the only one
  exchange::BatchReport report_;
  float gradient_scale_ = 1;
  float gradient_norm_ = 0;
  exchange::Spent spent_;     ///< on it so far
  Clock::time_point pushed_;  ///< all of it was sent: the wait for the answers begins
  bool rejoined_ = false;     ///< instead of an answer
  bool traced_ = false;

  Clock::time_point left_finish_;
  double last_wait_ = 0;
  double last_busy_ = 0;
  double wait_seconds_ = 0;
  double busy_seconds_ = 0;
  std::vector<std::vector<float>> state_;  ///< of the latest snapshot: parameters, then slots
  std::vector<WorkerHistory> records_;
  double job_seconds_ = 0;
  const base::TraceLabel* push_label_ = nullptr;
  const base::TraceLabel* pull_label_ = nullptr;
};

}  // namespace lockstep::ps
