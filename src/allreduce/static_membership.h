// One fixed group: threads of one process, or ranks of an MPI job. It cannot go on without a member.
#pragma once

#include <memory>
#include <string>

#include "allreduce/membership.h"

namespace lockstep::allreduce {

class StaticMembership final : public Membership {
 public:
  /// `advice`: what the user can do; added to the failure when the group breaks
  StaticMembership(std::shared_ptr<collective::Collective> collective, std::string advice);

  base::Result<Formed> form(const Standing& standing) override;
  base::Result<Parting> close(train::StopReason why) override;
  void end() override;
  [[nodiscard]] bool first_survivor() const override { return collective_->rank() == 0; }

 private:
  std::shared_ptr<collective::Collective> collective_;
  std::string advice_;
  bool formed_ = false;
};

}  // namespace lockstep::allreduce
