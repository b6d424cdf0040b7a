// Placeholder until the real one is merged.
#include "allreduce/elastic/elastic_membership.h"

namespace lockstep::allreduce {
class ElasticMembership::Impl {};
ElasticMembership::ElasticMembership(ElasticOptions) {}
ElasticMembership::~ElasticMembership() = default;
base::Result<Formed> ElasticMembership::form(const Standing&) { return base::Failure{"not yet"}; }
bool ElasticMembership::wants_regroup() const { return false; }
base::Result<bool> ElasticMembership::close() { return true; }
void ElasticMembership::end() {}
bool ElasticMembership::over() const { return false; }
void ElasticMembership::publish(uint64_t, std::span<const float>) {}
train::StopReason ElasticMembership::evaluators_word() const { return train::StopReason::none; }
base::Result<std::string> ask_run_name(const ElasticOptions&) { return base::Failure{"not yet"}; }
}  // namespace lockstep::allreduce
