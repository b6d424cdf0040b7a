// A member of a cluster that trains by all-reduce, and options shared with the replicas of one process.
#pragma once

#include <memory>
#include <string>

#include "allreduce/all_reduce_exchange.h"
#include "allreduce/elastic/elastic_membership.h"
#include "role/group_member.h"

namespace lockstep::role {

constexpr double kBucketMegabyte = 1024 * 1024;  ///< as in bucket-mb

/// Returns the options that settings and start determine; the caller sets the rest.
allreduce::AllReduceOptions all_reduce_options(const settings::Settings& settings, const MemberStart& start,
                                               int64_t batch);
/// Adds the exchange's results to the outcome; `names` are the members' names.
void add_all_reduce_report(const allreduce::AllReduceExchange& exchange, const std::vector<std::string>& names,
                           train::Outcome& outcome);

/// Returns the options for reaching the members of the cluster; the caller adds a member's own options.
allreduce::ElasticOptions elastic_options(const settings::Settings& settings, const ClusterProcess& process,
                                          const std::string& job, const std::atomic<bool>* interrupt);
/// Returns the folder of the whole run, from the name that a member gives and runs-dir. Waits for a member that knows
/// it.
std::string find_all_reduce_run(const settings::Settings& settings, const ClusterProcess& process,
                                const std::string& job, const std::atomic<bool>* interrupt);

class AllReduceMember final : public GroupMember {
 public:
  /// Joins the MPI job if there is one.
  AllReduceMember(ClusterProcess process, const settings::Settings& settings, std::string job,
                  const std::atomic<bool>* interrupt);
  /// A rank destroyed before `end` has failed, and does not wait for the others.
  ~AllReduceMember() override;

  std::string find_run(const std::string& model_name) override;
  [[nodiscard]] bool leadership_moves() const override { return !process_.mpi; }
  [[nodiscard]] bool leads() const override { return exchange_ == nullptr ? chief() : exchange_->leads(); }
  [[nodiscard]] train::Together together(MemberStart start) override;
  [[nodiscard]] train::TrainerOptions adapted(train::TrainerOptions options) const override;
  std::string why_not_latest() override;
  [[nodiscard]] uint64_t group() const override;
  void end() override;
  void report(train::Outcome& outcome) const override;

 private:
  [[nodiscard]] std::unique_ptr<allreduce::Membership> membership() const;
  /// Returns advice for the user when a rank is lost.
  [[nodiscard]] std::string advice() const;

  bool ended_ = false;
  uint64_t latest_group_ = 0;                         ///< number in the checkpoint that it begins with
  std::shared_ptr<collective::Collective> ranks_;     ///< ranks of an MPI job
  std::string run_;                                   ///< name of the run, if this process made it
  allreduce::AllReduceExchange* exchange_ = nullptr;  ///< owned by the Setup
};

}  // namespace lockstep::role
