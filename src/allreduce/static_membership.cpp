#include "allreduce/static_membership.h"

#include <numeric>

namespace lockstep::allreduce {

StaticMembership::StaticMembership(std::shared_ptr<collective::Collective> collective, std::string advice)
    : collective_(std::move(collective)), advice_(std::move(advice)) {}

base::Result<Formed> StaticMembership::form(const Standing& standing) {
  if (formed_) return base::Failure{advice_};
  formed_ = true;
  Formed formed;
  formed.number = 1;
  formed.members.resize(static_cast<size_t>(collective_->size()));
  std::iota(formed.members.begin(), formed.members.end(), 0);
  formed.collective = collective_;
  formed.standing = standing;
  return formed;
}

base::Result<bool> StaticMembership::close() {
  if (collective_->rank() == 0) return true;
  base::Result<bool> ended = collective_->barrier();
  if (!ended) return ended;
  return false;
}

void StaticMembership::end() { static_cast<void>(collective_->barrier()); }

}  // namespace lockstep::allreduce
