// Replicas of a model in one process ("mirrored"): each has its own threads, Setup and Trainer, and they exchange
// gradients by all-reduce in memory. The caller trains the first replica as usual; the others run here. Borrows model
// and data, which must outlive it. For the calling thread.
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
  /// `settings` are resolved, with the threads of one replica.
  Replicas(const settings::Settings& settings, const nn::ModelDef& model, const data::Dataset& dataset,
           const std::atomic<bool>* interrupt);
  /// Waits for the other replicas.
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// Returns the options for the first replica's Setup.
  [[nodiscard]] train::Together together(MemberStart start);
  /// Starts training the other replicas.
  void start();
  /// Called after the first replica has trained: waits for the others. Throws the error of one that failed.
  void finish();
  /// Called after the first replica failed: waits for the others, and throws the error of one that failed earlier.
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
  std::vector<std::vector<int>> cores_;  ///< cores of each replica; empty: no binding
  std::optional<base::KeptToCores> first_kept_;
  std::vector<std::shared_ptr<collective::Collective>> group_;
  allreduce::AllReduceExchange* first_ = nullptr;  ///< owned by the first replica's Setup
  MemberStart start_;
  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> errors_;  ///< error of each replica
  std::atomic<int> blamed_ = -1;            ///< first replica that failed
};

/// Returns the threads of each replica: the number asked for, or an equal share of the cores.
int threads_per_replica(const settings::Settings& settings);
/// Returns the examples per batch of each replica (or of a single process). Throws UsageError.
int64_t batch_per_replica(const settings::Settings& settings);

}  // namespace lockstep::role
