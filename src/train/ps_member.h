// One of a cluster that trains with parameter servers.
#pragma once

#include <string>

#include "train/group_member.h"

namespace lockstep::train {

bool is_sync(const Settings& settings);
/// The folder of the whole run: run-dir, or what ps:0 says that it is called, in runs-dir. Waits for ps:0 then.
std::string find_cluster_run(const Settings& settings, const ClusterProcess& group, const std::string& job,
                             const std::atomic<bool>* interrupt);

class PsMember final : public GroupMember {
 public:
  using GroupMember::GroupMember;

  std::string find_run(const std::string& model_name) override;
  [[nodiscard]] bool leads() const override { return chief() && (exchange_ == nullptr || exchange_->leads()); }
  [[nodiscard]] Together together(MemberStart start) override;
  [[nodiscard]] TrainerOptions adapted(TrainerOptions options) const override;
  [[nodiscard]] Shown shown(const graph::ParameterStore& parameters) const override;
  void end() override;
  void report(Outcome& outcome) const override;

 private:
  [[nodiscard]] ps::PsOptions exchange_options(int64_t examples, bool mean_loss) const;

  ps::PsExchange* exchange_ = nullptr;  ///< the Setup's
};

}  // namespace lockstep::train
