// Replicas of a model in one process ("mirrored"): each is a thread group with a Setup and a Trainer of its own, and
// they meet by all-reduce in memory. The first is the caller's, who trains as usual; the others are run here. Borrows
// model and data, which must outlive it. For the calling thread.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "allreduce/all_reduce_exchange.h"
#include "base/cores.h"
#include "role/group_member.h"

namespace lockstep::role {

class Replicas {
 public:
  /// `settings` as resolved, with the threads of one replica.
  Replicas(const settings::Settings& settings, const nn::ModelDef& model, const data::Dataset& dataset,
           const std::atomic<bool>* interrupt);
  /// Waits for the others.
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// For the first one's Setup.
  [[nodiscard]] train::Together together(MemberStart start);
  /// Begins training the others.
  void start();
  /// After the first one has trained: waits for the others. Throws what went wrong in one of them.
  void finish();
  /// After the first one failed: waits for the others, and throws what went wrong in one of them where that was before.
  void fail();
  void report(train::Outcome& outcome) const;

 private:
  [[nodiscard]] train::Together join(int replica, MemberStart start, allreduce::AllReduceExchange** made);
  void train(int replica);
  void wait();
  [[nodiscard]] std::vector<std::string> names() const;

  settings::Settings settings_;
  const nn::ModelDef& model_;
  const data::Dataset& dataset_;
  const std::atomic<bool>* interrupt_;
  std::vector<std::vector<int>> cores_;  ///< of each replica; none: all of them
  std::optional<base::KeptToCores> first_kept_;
  std::vector<std::shared_ptr<collective::Collective>> group_;
  allreduce::AllReduceExchange* first_ = nullptr;  ///< its Setup's
  MemberStart start_;
  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> errors_;  ///< of each replica
  std::atomic<int> blamed_ = -1;            ///< who failed first
};

/// Threads of each replica: those asked for, or an equal share of the cores.
int threads_per_replica(const settings::Settings& settings);
/// Examples per batch of each replica, or of the only one there is. Throws UsageError.
int64_t batch_per_replica(const settings::Settings& settings);

}  // namespace lockstep::role
