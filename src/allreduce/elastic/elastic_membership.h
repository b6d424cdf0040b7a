// Members that join, leave and die. Every member listens at its address of the cluster and keeps a connection with a
// heartbeat to every other one, so each sees for itself which members are present. When the group breaks, the lowest
// number among the members with the state proposes the next group. It is made when all its members have accepted. A
// closed connection or five seconds of silence counts as death; being slow does not. See docs/allreduce.md.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "allreduce/membership.h"
#include "authority/register.h"
#include "cluster/spec.h"
#include "exchange/exchange.h"
#include "transport/stream.h"

namespace lockstep::allreduce {

/// Receives a line for the log: level "info", "warning" or "error".
using Log = std::function<void(std::string_view level, const std::string& text)>;

struct ElasticOptions {
  cluster::Spec spec;
  cluster::Task task;
  transport::Security security;
  std::string job;      ///< digest of the settings that all members must share
  std::string run;      ///< the run's name, if known; told to processes that ask
  int expected = 0;     ///< members to wait for at the start; 0: all in the spec
  int min_workers = 0;  ///< fewest members of a group, besides the rule (assembly.h)
  int max_workers = 0;  ///< most members of a group, the others wait outside; 0: no limit
  bool allow_split = false;
  /// Makes the client of the authority over who may train; absent: the majority rule.
  std::function<std::unique_ptr<authority::Register>()> authority = {};
  uint64_t latest = 0;     ///< number of the latest group in the files that this member has read
  double start_wait = 60;  ///< seconds to wait at the start for all expected members
  double patience = 600;   ///< seconds to wait for enough members
  collective::GroupOptions group;
  /// Makes this member's half of a group (gloo_engine.h).
  std::function<std::unique_ptr<collective::Joining>(int rank, int size)> engine;
  Log log;
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed; ends every wait
  base::TrafficMeter* meter = nullptr;           ///< traffic between members, without that of the groups; borrowed
  exchange::LookForEnding look_for_ending;       ///< asked while waiting for a group; may be absent
};

class ElasticMembership final : public Membership {
 public:
  /// Listens at once. Throws IoError or UsageError if it cannot.
  explicit ElasticMembership(ElasticOptions options);
  ~ElasticMembership() override;
  ElasticMembership(const ElasticMembership&) = delete;
  ElasticMembership& operator=(const ElasticMembership&) = delete;

  base::Result<Formed> form(const Standing& standing) override;
  void received() override;
  [[nodiscard]] bool wants_regroup() const override;
  base::Result<Parting> close(train::StopReason why) override;
  void end() override;
  [[nodiscard]] bool over() const override;
  [[nodiscard]] bool interrupted() const override;
  [[nodiscard]] bool first_survivor() const override;
  [[nodiscard]] std::string why_not_latest() override;
  void publish(uint64_t step, std::span<const float> parameters) override;
  [[nodiscard]] train::StopReason evaluator_stop() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Asks the members for the run's name, until one knows it or the patience ends.
base::Result<std::string> ask_run_name(const ElasticOptions& options);

}  // namespace lockstep::allreduce
