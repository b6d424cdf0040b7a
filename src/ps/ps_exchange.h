// A worker's exchange with parameter servers. Gradients are pushed in buckets while the backward pass still runs;
// finish() sends the rest, waits for the new parameters and writes them into the parameter store. A push is kept until
// it is answered: after a failure the same push is sent again, and the servers know whether they had it. What to send
// again and whom to wait for decides its WorkerFlow (worker_flow.h). Borrows the parameter store. For the training
// thread; heartbeats have their own threads (server_link.h).
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
#include "ps/worker_flow.h"
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
  [[nodiscard]] bool leads() const override { return !flow_->over(); }
  [[nodiscard]] std::vector<std::string> slot_names() const override;
  base::Result<exchange::Snapshot> snapshot() override;

  /// Chief, after leave(): lets all members go.
  void end();
  /// The run's name; known after join().
  [[nodiscard]] const std::string& run() const { return flow_->run(); }
  /// The coordinator's records of all members, as of the latest snapshot or the end.
  [[nodiscard]] const std::vector<WorkerHistory>& records() const { return records_; }
  [[nodiscard]] double job_seconds() const { return job_seconds_; }
  /// Seconds of this process in finish(), and in between.
  [[nodiscard]] double wait_seconds() const { return wait_seconds_; }
  [[nodiscard]] double busy_seconds() const { return busy_seconds_; }

 private:
  struct ServerPart;
  class Links;

  [[nodiscard]] std::unique_ptr<Servers> make_links();
  /// Called by a thread of a link: a server is lost, which another one's answer may need.
  void on_lost(int server);
  void push_bucket(program::ParameterRange bucket);
  /// Sends a range of the gradients; `last` ends the push.
  base::Status push(ServerPart& part, program::ParameterRange range, bool last);
  /// Records an answer in the trace: its arrow, and the offset of the server's clock.
  void trace_answer(ServerPart& part, const wire::Reply& reply);
  /// Reads one answer of parameters into the store.
  base::Result<wire::Reply> read_parameters(ServerPart& part);
  base::Status send_initial(ServerPart& part, uint64_t generation);
  base::Result<wire::Snapshot> read_state(ServerPart& part, uint64_t version);
  [[nodiscard]] std::optional<exchange::Ending> look_for_ending() const;
  void clip();
  void take_records(const wire::Ledger& ledger);
  [[nodiscard]] bool interrupted() const { return options_.interrupt != nullptr && options_.interrupt->load(); }

  program::ParameterStore& parameters_;
  PsOptions options_;
  int member_;
  uint64_t incarnation_;
  std::vector<std::unique_ptr<ServerPart>> parts_;
  std::unique_ptr<Servers> links_;
  std::unique_ptr<WorkerFlow> flow_;
  std::optional<Initial> initial_;
  std::atomic<int> waits_for_ = -1;  ///< server whose answer is waited for

  // The push in flight.
  schedule::PushBuckets buckets_;
  std::shared_ptr<int> hold_;  ///< reference to the gradients' memory; unique again when the transport has released it
  exchange::BatchReport report_;
  float gradient_scale_ = 1;
  float gradient_norm_ = 0;
  exchange::Spent spent_;     ///< time spent on it so far
  Clock::time_point pushed_;  ///< when it was fully sent and the wait for answers began
  bool traced_ = false;

  Clock::time_point left_finish_;
  double last_wait_ = 0;
  double last_busy_ = 0;
  double wait_seconds_ = 0;
  double busy_seconds_ = 0;
  std::vector<std::vector<float>> state_;  ///< state of the latest snapshot: parameters, then slots
  wire::Snapshot snapshot_;                ///< what ps:0 said of it
  std::vector<WorkerHistory> records_;
  double job_seconds_ = 0;
  const base::TraceLabel* push_label_ = nullptr;
  const base::TraceLabel* pull_label_ = nullptr;
};

}  // namespace lockstep::ps
