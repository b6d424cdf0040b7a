// Members that come, go and die. Every member listens at its address of the cluster and keeps a connection with a
// heartbeat to every other one, so each has evidence of its own of who is there. When the group breaks, the lowest
// number among those who hold the state proposes the next one; it is made when all of its members have accepted.
// A closed connection or five seconds of silence is a death; being slow is not. See docs/allreduce.md.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "allreduce/membership.h"
#include "cluster/spec.h"
#include "exchange/exchange.h"
#include "transport/stream.h"

namespace lockstep::allreduce {

/// A line for people: level "info", "warning" or "error".
using Log = std::function<void(std::string_view level, const std::string& text)>;

struct ElasticOptions {
  cluster::Spec spec;
  cluster::Task task;
  transport::Security security;
  std::string job;         ///< a digest of what all members must agree on
  std::string run;         ///< the run's name, where this member knows it; told to those who ask
  int expected = 0;        ///< members to wait for at the start; 0: all of the spec
  int min_workers = 0;     ///< fewer do not go on; 0: more than half of those who are not known to be dead
  int max_workers = 0;     ///< more than these wait outside; 0: all may take part
  double start_wait = 60;  ///< seconds at the start for all expected members
  double patience = 600;   ///< seconds to wait for enough members
  collective::GroupOptions group;
  /// Makes this member's half of a group (gloo_engine.h).
  std::function<std::unique_ptr<collective::Joining>(int rank, int size)> engine;
  Log log;
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed; ends every wait
  base::TrafficMeter* meter = nullptr;      ///< of what members tell each other; the groups have their own; borrowed
  exchange::LookForEnding look_for_ending;  ///< of who waits for a group; may be absent
};

class ElasticMembership final : public Membership {
 public:
  /// Listens at once; throws IoError or UsageError where it cannot.
  explicit ElasticMembership(ElasticOptions options);
  ~ElasticMembership() override;
  ElasticMembership(const ElasticMembership&) = delete;
  ElasticMembership& operator=(const ElasticMembership&) = delete;

  base::Result<Formed> form(const Standing& standing) override;
  [[nodiscard]] bool wants_regroup() const override;
  base::Result<Parting> close(train::StopReason why) override;
  void end() override;
  [[nodiscard]] bool over() const override;
  [[nodiscard]] bool interrupted() const override;
  [[nodiscard]] bool foremost() const override;
  void publish(uint64_t step, std::span<const float> parameters) override;
  [[nodiscard]] train::StopReason evaluators_word() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The run's name, asked of any member that knows it; waits for one as long as the patience lasts.
base::Result<std::string> ask_run_name(const ElasticOptions& options);

}  // namespace lockstep::allreduce
