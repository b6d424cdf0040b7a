// A member of a cluster that trains with parameter servers.
#pragma once

#include <string>

#include "role/group_member.h"
#include "schedule/placement.h"

namespace lockstep::role {

bool is_sync(const settings::Settings& settings);
schedule::Placement placement_of(const settings::Settings& settings);
/// Returns the folder of the whole run: run-dir, or runs-dir and the name that ps:0 gives. Waits for ps:0 in the second
/// case.
std::string find_cluster_run(const settings::Settings& settings, const ClusterProcess& process, const std::string& job,
                             const std::atomic<bool>* interrupt);

class PsMember final : public GroupMember {
 public:
  using GroupMember::GroupMember;

  std::string find_run(const std::string& model_name) override;
  [[nodiscard]] bool leads() const override { return chief() && (exchange_ == nullptr || exchange_->leads()); }
  [[nodiscard]] train::Together together(MemberStart start) override;
  [[nodiscard]] train::TrainerOptions adapted(train::TrainerOptions options) const override;
  [[nodiscard]] train::Shown shown(const program::ParameterStore& parameters) const override;
  void end() override;
  void report(train::Outcome& outcome) const override;

 private:
  [[nodiscard]] ps::PsOptions exchange_options(int64_t examples, bool mean_loss) const;

  ps::PsExchange* exchange_ = nullptr;  ///< owned by the Setup
};

}  // namespace lockstep::role
