// A process that trains as one of a cluster: how settings become an exchange with parameter servers, where its files
// lie, and what the cluster knew of its workers. A Session has one when it is a worker or the chief. For one thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/spec.h"
#include "ps/ps_exchange.h"
#include "train/setup.h"

namespace lockstep::train {

/// Which process of which cluster.
struct Group {
  cluster::Spec spec;
  cluster::Task task;
  ps::Log log;
};

/// A digest of what all roles of a job must agree on. `settings` as the user gave them, resolved but not changed.
std::string job_digest(const Settings& settings, const cluster::Spec& spec);
/// Rules about cluster settings that no single one shows; throws UsageError.
void check_cluster_settings(const Settings& settings, const cluster::Spec& spec);
bool is_sync(const Settings& settings);
/// The folder of the whole run: run-dir, or what ps:0 says that it is called, in runs-dir. Waits for ps:0 then.
std::string find_cluster_run(const Settings& settings, const Group& group, const std::string& job,
                             const std::atomic<bool>* interrupt);
transport::Security security_of(const Settings& settings);

class ClusterMember {
 public:
  ClusterMember(Group group, const Settings& settings, std::string job, const std::atomic<bool>* interrupt);

  [[nodiscard]] bool chief() const { return group_.spec.member_index(group_.task) == 0; }
  [[nodiscard]] const cluster::Task& task() const { return group_.task; }
  /// Of the run for the chief, whose files are everyone's; of the role for others.
  [[nodiscard]] std::string folder(const std::string& run) const;
  /// Examples per batch of this worker.
  [[nodiscard]] int64_t batch() const;

  /// For a Setup; `initial` is what the chief starts with.
  [[nodiscard]] Together together(int64_t examples, bool mean_loss, std::function<ps::Initial()> initial);
  [[nodiscard]] TrainerOptions adapted(TrainerOptions options) const;
  /// The chief, after training: tells everyone to go.
  void end();
  [[nodiscard]] std::vector<WorkerRecord> workers(const Outcome& outcome) const;

 private:
  [[nodiscard]] ps::PsOptions exchange_options(int64_t examples, bool mean_loss) const;

  Group group_;
  Settings settings_;
  std::string job_;
  const std::atomic<bool>* interrupt_;
  ps::PsExchange* exchange_ = nullptr;  ///< the Setup's
};

}  // namespace lockstep::train
