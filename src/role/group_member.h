// A process that trains as a member of a group: makes its exchange from the settings, knows the folder of its files,
// and reports on all members at the end. A Session has one if it is a worker or the chief of a cluster. For one thread.
//
//    ps_member.h           with parameter servers
//    all_reduce_member.h   by all-reduce
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

/// This process's place in a cluster.
struct ClusterProcess {
  cluster::Spec spec;
  cluster::Task task;
  ps::Log log;
  bool mpi = false;  ///< all-reduce: the members are ranks of an MPI job
  /// Returns the command that resumes a run; absent if a launcher restarts it by itself.
  std::function<std::string(const std::string& run)> resume_command = {};
  base::TrafficMeter* meter = nullptr;           ///< counts this process's traffic with the others; borrowed
  exchange::LookForEnding look_for_ending = {};  ///< set once the run's folder is known
  /// Writes a line to the launcher, which holds the register of who may train; absent without such a launcher.
  std::function<void(const std::string& line)> tell_launcher = {};
  double launched = 0;  ///< when the launcher began, in seconds since 1970; 0: no launcher, or it does not say
};

/// Returns a function that looks for signs of the run's end in its folder, from now on.
exchange::LookForEnding look_in(const std::string& run);
/// Returns a digest of the settings that all roles of a job must agree on. `settings` are as the user gave them,
/// resolved but not changed.
std::string job_digest(const settings::Settings& settings, const cluster::Spec& spec);
/// Checks cluster settings against each other; throws UsageError. `launched`: a launcher starts the roles.
void check_cluster_settings(const settings::Settings& settings, const cluster::Spec& spec, bool launched);
/// Describes this process to an observer with files in `folder`.
run::ObservedRole observed_role(const ClusterProcess& process, const std::string& folder);
/// Returns this process's keys: those in --tls, or in the subfolder named after its machine (`lockstep keys new`).
transport::Security security_of(const settings::Settings& settings, const ClusterProcess& process);
/// Logs a warning if this process's certificate expires soon. Throws UsageError for keys that cannot be used.
void check_keys(const settings::Settings& settings, const ClusterProcess& process);

/// The starting point of a member's exchange.
struct MemberStart {
  int64_t examples = 0;                              ///< examples per pass
  bool mean_loss = true;                             ///< the loss is a mean over the batch
  const checkpoint::TrainingState* state = nullptr;  ///< state of the checkpoint, or a new one; borrowed for the call
  /// Chief, with parameter servers: returns the newest checkpoint, or the model's initial parameters.
  std::function<ps::Initial()> initial;
  exchange::RunEvents* events = nullptr;  ///< only for all-reduce; borrowed, may be absent
  base::TraceTrack* trace = nullptr;      ///< track of the training thread; may be absent
};

class GroupMember {
 public:
  GroupMember(ClusterProcess process, const settings::Settings& settings, std::string job,
              const std::atomic<bool>* interrupt);
  virtual ~GroupMember() = default;
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;

  [[nodiscard]] bool chief() const { return process_.spec.member_index(process_.task) == 0; }
  [[nodiscard]] const cluster::Task& task() const { return process_.task; }
  /// Returns the folder of the chief's files, which is the run's, or the role's folder for other members.
  [[nodiscard]] std::string folder(const std::string& run) const;
  /// Returns the examples per batch of this worker.
  [[nodiscard]] int64_t batch() const;

  /// Sets the folder of the whole run.
  void set_run(const std::string& run) { process_.look_for_ending = look_in(run); }
  /// Returns the folder of the whole run if the settings do not give it: asks the others, and waits for them.
  virtual std::string find_run(const std::string& model_name) = 0;
  /// Returns true if leadership may move from the chief to another member.
  [[nodiscard]] virtual bool leadership_moves() const { return false; }
  /// Returns true if this process leads now and writes the run's files.
  [[nodiscard]] virtual bool leads() const { return chief(); }
  /// Returns the options that a Setup needs to train with the others.
  [[nodiscard]] virtual train::Together together(MemberStart start) = 0;
  [[nodiscard]] virtual train::TrainerOptions adapted(train::TrainerOptions options) const = 0;
  /// Describes the graph's devices for an observer: where the parameters are and who computes.
  [[nodiscard]] virtual train::Shown shown(const program::ParameterStore& parameters) const;
  [[nodiscard]] run::ObservedRole observed(const std::string& folder) const { return observed_role(process_, folder); }
  /// Returns why a file of its group must not be kept: another group may have taken its place. Empty: it may. Waits
  /// for the answer; for the training thread.
  virtual std::string why_not_latest() { return {}; }
  /// Returns the number of its group; 0: groups do not change.
  [[nodiscard]] virtual uint64_t group() const { return 0; }
  /// Leader, after training: tells all members to leave.
  virtual void end() = 0;
  /// Adds the report on all members.
  virtual void report(train::Outcome& outcome) const = 0;

 protected:
  [[nodiscard]] int members() const { return static_cast<int>(process_.spec.members().size()); }

  ClusterProcess process_;
  settings::Settings settings_;
  std::string job_;
  const std::atomic<bool>* interrupt_;
};

/// Makes a PsMember if the cluster has parameter servers, otherwise an AllReduceMember.
std::unique_ptr<GroupMember> make_member(ClusterProcess process, const settings::Settings& settings, std::string job,
                                         const std::atomic<bool>* interrupt);

}  // namespace lockstep::role
