// A process that trains as one of several: how settings become an exchange with the others, where its files lie, and
// what is known of them all at the end. A Session has one when it is a worker or the chief of a cluster. For one
// thread.
//
//   ps_member.h           with parameter servers
//   all_reduce_member.h   by all-reduce
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/traffic_meter.h"
#include "cluster/spec.h"
#include "exchange/run_events.h"
#include "ps/ps_exchange.h"
#include "train/setup.h"
#include "train/training_observer.h"

namespace lockstep::role {

/// This process of a cluster.
struct ClusterProcess {
  cluster::Spec spec;
  cluster::Task task;
  ps::Log log;
  bool mpi = false;  ///< all-reduce: the members are ranks of an MPI job
  /// What the user types to go on with a run; absent where a launcher starts it again by itself.
  std::function<std::string(const std::string& run)> resume_command = {};
  base::TrafficMeter* meter = nullptr;           ///< of what this process exchanges with the others; borrowed
  exchange::LookForEnding look_for_ending = {};  ///< once the run's folder is known
};

/// Signs of the run's end in its folder, from now on.
exchange::LookForEnding look_in(const std::string& run);
/// A digest of what all roles of a job must agree on. `settings` as the user gave them, resolved but not changed.
std::string job_digest(const settings::Settings& settings, const cluster::Spec& spec);
/// Rules about cluster settings that no single one shows; throws UsageError.
void check_cluster_settings(const settings::Settings& settings, const cluster::Spec& spec);
/// This process, for an observer whose files lie in `folder`.
run::ObservedRole observed_role(const ClusterProcess& group, const std::string& folder);
/// This process's keys: those of --tls, or of the folder in it that is named after its machine (`lockstep keys new`).
transport::Security security_of(const settings::Settings& settings, const ClusterProcess& group);
/// Logs where this process's certificate expires soon. Throws UsageError for keys that cannot be used.
void check_keys(const settings::Settings& settings, const ClusterProcess& group);

/// What a member's exchange starts with.
struct MemberStart {
  int64_t examples = 0;                              ///< in a pass
  bool mean_loss = true;                             ///< the loss is a mean over the batch
  const checkpoint::TrainingState* state = nullptr;  ///< of the checkpoint, or new; borrowed for the call
  /// With servers, the chief: the newest checkpoint, or the model as it is made.
  std::function<ps::Initial()> initial;
  exchange::RunEvents* events = nullptr;  ///< all-reduce; borrowed, may be absent
  base::TraceTrack* trace = nullptr;      ///< of the training thread; may be absent
};

class GroupMember {
 public:
  GroupMember(ClusterProcess group, const settings::Settings& settings, std::string job,
              const std::atomic<bool>* interrupt);
  virtual ~GroupMember() = default;
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;

  [[nodiscard]] bool chief() const { return group_.spec.member_index(group_.task) == 0; }
  [[nodiscard]] const cluster::Task& task() const { return group_.task; }
  /// Of the run for the chief, whose files are everyone's; of the role for others.
  [[nodiscard]] std::string folder(const std::string& run) const;
  /// Examples per batch of this worker.
  [[nodiscard]] int64_t batch() const;

  /// Where the whole run lies.
  void set_run(const std::string& run) { group_.look_for_ending = look_in(run); }
  /// The folder of the whole run where the settings do not say: asks the others, and waits for them.
  virtual std::string find_run(const std::string& model_name) = 0;
  /// Whether another one than the chief may come to lead.
  [[nodiscard]] virtual bool leadership_moves() const { return false; }
  /// Whether this process writes for all now.
  [[nodiscard]] virtual bool leads() const { return chief(); }
  /// For a Setup.
  [[nodiscard]] virtual train::Together together(MemberStart start) = 0;
  [[nodiscard]] virtual train::TrainerOptions adapted(train::TrainerOptions options) const = 0;
  /// Where its parameters are and who computes, for an observer.
  [[nodiscard]] virtual train::Shown shown(const program::ParameterStore& parameters) const;
  [[nodiscard]] run::ObservedRole observed(const std::string& folder) const { return observed_role(group_, folder); }
  /// Who leads, after training: tells everyone to go.
  virtual void end() = 0;
  /// Adds what is known of all members.
  virtual void report(train::Outcome& outcome) const = 0;

 protected:
  [[nodiscard]] int members() const { return static_cast<int>(group_.spec.members().size()); }

  ClusterProcess group_;
  settings::Settings settings_;
  std::string job_;
  const std::atomic<bool>* interrupt_;
};

/// As the cluster has parameter servers or not.
std::unique_ptr<GroupMember> make_member(ClusterProcess group, const settings::Settings& settings, std::string job,
                                         const std::atomic<bool>* interrupt);

}  // namespace lockstep::role
