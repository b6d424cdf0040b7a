// One of a cluster, or of the replicas in one process, that trains by all-reduce.
#pragma once

#include <memory>
#include <string>

#include "allreduce/all_reduce_exchange.h"
#include "allreduce/elastic/elastic_membership.h"
#include "role/group_member.h"

namespace lockstep::role {

constexpr double kBucketMegabyte = 1024 * 1024;  ///< as bucket-mb counts

/// What settings and a start say about the exchange; the rest is the caller's.
allreduce::AllReduceOptions all_reduce_options(const settings::Settings& settings, const MemberStart& start,
                                               int64_t batch);
/// What of the outcome the exchange knows; `names` are the members'.
void add_all_reduce_report(const allreduce::AllReduceExchange& exchange, const std::vector<std::string>& names,
                           train::Outcome& outcome);

/// How this process reaches the members of its cluster; what a member alone needs is the caller's to add.
allreduce::ElasticOptions elastic_options(const settings::Settings& settings, const ClusterProcess& group,
                                          const std::string& job, const std::atomic<bool>* interrupt);
/// The folder of the whole run, as a member says that it is called, in runs-dir. Waits for one who knows.
std::string find_all_reduce_run(const settings::Settings& settings, const ClusterProcess& group, const std::string& job,
                                const std::atomic<bool>* interrupt);

class AllReduceMember final : public GroupMember {
 public:
  /// A rank of an MPI job joins it here.
  AllReduceMember(ClusterProcess group, const settings::Settings& settings, std::string job,
                  const std::atomic<bool>* interrupt);
  /// A rank that did not come to `end` failed, and does not wait for the others.
  ~AllReduceMember() override;

  std::string find_run(const std::string& model_name) override;
  [[nodiscard]] bool leadership_moves() const override { return !group_.mpi; }
  [[nodiscard]] bool leads() const override { return exchange_ == nullptr ? chief() : exchange_->leads(); }
  [[nodiscard]] train::Together together(MemberStart start) override;
  [[nodiscard]] train::TrainerOptions adapted(train::TrainerOptions options) const override;
  void end() override;
  void report(train::Outcome& outcome) const override;

 private:
  [[nodiscard]] std::unique_ptr<allreduce::Membership> membership() const;
  /// What the user can do when a rank is lost.
  [[nodiscard]] std::string advice() const;

  bool ended_ = false;
  std::shared_ptr<collective::Collective> ranks_;     ///< of an MPI job
  std::string run_;                                   ///< its name, where this process made it
  allreduce::AllReduceExchange* exchange_ = nullptr;  ///< the Setup's
};

}  // namespace lockstep::role
