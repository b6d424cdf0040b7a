// A Job's first parameters, resuming, and the ledger.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/job.h"

namespace lockstep::ps {
namespace {

bool is_goal(train::StopReason reason) {
  return reason == train::StopReason::accuracy || reason == train::StopReason::loss;
}

CoordinatorOptions rules_of(const wire::JobConfig& config, bool record) {
  CoordinatorOptions options = coordinator_options(config);
  options.record = record;
  return options;
}

}  // namespace

void Job::adopt(const wire::JobConfig& config) {
  config_ = config;
  rules_ = from_wire(config.optimizer());
  generation_ = config.generation();
}

void Job::resume(wire::Ledger ledger, uint64_t version, double now) {
  if (coordinates()) {
    ledger.set_version(version);
    coordinator_ = std::make_unique<Coordinator>(rules_of(config_, options_.record), ledger, now);
  } else {
    std::map<int, PushName> applied;
    for (int i = 0; i < ledger.members_size(); ++i) {
      applied[i] = {ledger.members(i).incarnation(), ledger.members(i).applied()};
    }
    follower_.emplace(version, std::move(applied));
  }
  initialised_ = true;
  note_stored();
  version_since_ = now;
}

std::unique_ptr<Coordinator> Job::coordinator_for(const wire::JobConfig& config, uint64_t version,
                                                  const wire::Ledger& ledger, double now) const {
  if (!coordinates()) return nullptr;
  auto made = std::make_unique<Coordinator>(rules_of(config, options_.record), version, from_wire(ledger.plan()), now);
  made->set_examples(ledger.examples());
  return made;
}

void Job::set_parameters(SessionId by, const wire::JobConfig& config, uint64_t version,
                         std::unique_ptr<Coordinator> coordinator) {
  initialised_ = false;
  making_.reset();
  adopt(config);
  gradients_.clear();
  follower_.reset();
  if (!coordinates()) follower_.emplace(version, std::map<int, PushName>());
  for (const auto& [member, id] : current_) {
    Session& session = at(id);
    // Others may wait for these first parameters. Later ones have other versions than a waiting stream may expect.
    const bool first = session.told_generation == 0 && config.generation() <= 1;
    if (id == by || first) {
      session.told_generation = generation_;
      continue;
    }
    give_up(id, "the parameters were set again");
  }
  // A goal that was met stays met; other reasons to stop are found again if they still hold.
  if (coordinator_ && is_goal(coordinator_->stopped())) coordinator->stop(coordinator_->stopped());
  coordinator_ = std::move(coordinator);
  began_at_ = version;
}

void Job::parameters_set(double now) {
  initialised_ = true;
  lost_ = 0;
  without_state_.clear();
  if (follower_) tell_version();
  note_stored();
  version_since_ = now;
  orders_.changed = true;
}

/// One that is too large is this server's error, not a peer's: the server ends with a line.
std::string Job::ledger(double now) const {
  wire::Ledger ledger;
  if (coordinator_) {
    coordinator_->save(ledger, now);
  } else {
    for (const auto& [member, push] : follower_->applied()) {
      while (ledger.members_size() <= member) ledger.add_members();
      ledger.mutable_members(member)->set_incarnation(push.incarnation);
      ledger.mutable_members(member)->set_applied(push.sequence);
    }
  }
  ledger.set_generation(generation_);
  std::string bytes = ledger.SerializeAsString();
  if (bytes.size() <= kMostLedgerBytes) return bytes;
  throw IoError(
      fmt::format("the ledger of the data takes {} bytes; at most {} are allowed: the shares of an epoch "
                  "are in too many pieces; a larger batch makes fewer",
                  bytes.size(), kMostLedgerBytes));
}

void Job::welcome(wire::Welcome& welcome) const {
  welcome.set_generation(generation_);
  welcome.set_initialised(initialised_);
  if (initialised_) welcome.set_version(version());
  for (const wire::Range& range : config_.ranges()) *welcome.add_ranges() = range;
}

void Job::count_lost(uint64_t version, uint64_t generation) {
  const bool of_before = generation > 0 && generation < generation_;
  if (!of_before || version <= began_at_ + lost_) return;
  lost_ = version - began_at_;
  say("warning", fmt::format("{} steps after step {} are lost", lost_, began_at_));
}

}  // namespace lockstep::ps
