// A parameter server must answer any bytes with valid values or a typed error, and never allocate more than in
// proportion to the bytes received. The first byte says which message the rest is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/error.h"
#include "ps/coordinator.h"
#include "ps/messages.h"

namespace {

using namespace lockstep;

template <class Message>
bool parsed(const std::string& bytes, Message& message) {
  return message.ParseFromString(bytes);
}

/// Plays a job and its first data, as a chief sends them, and then members that join, push and leave.
void play(const wire::JobConfig& job, const data::Remainder& data) {
  ps::check(job);
  if (job.members() > 64 || job.servers() > 64) return;  // the server checks these against its own cluster
  ps::CoordinatorOptions options = ps::coordinator_options(job);
  ps::Coordinator coordinator(options, 0, data, 0);
  for (int member = 0; member < options.members; ++member) {
    coordinator.join(member, 1);
    const auto plan = coordinator.unseen_plan(member, 0);
    if (!plan) continue;
    const data::Round round = plan->round(0);
    const ps::Push push{member, 1, 1, 0, plan->id, 1, {1, 0, static_cast<uint64_t>(round.count)}};
    static_cast<void>(coordinator.offer(push));
    for (int server = 0; server < options.servers; ++server) coordinator.received(server, member, 1, 1);
    if (const auto decision = options.sync ? std::nullopt : coordinator.decide()) coordinator.committed(*decision);
  }
  if (const auto decision = coordinator.decide()) coordinator.committed(*decision);
  coordinator.depart(0, 1);
  wire::Ledger ledger;
  coordinator.save(ledger, 1);
  static_cast<void>(ps::Coordinator(options, ledger, 2).remaining());
}

void take(uint8_t kind, const std::string& bytes) {
  switch (kind % 5) {
    case 0: {
      wire::JobConfig job;
      if (!parsed(bytes, job)) return;
      play(job, {});
      break;
    }
    case 1: {
      wire::Ledger ledger;
      if (!parsed(bytes, ledger)) return;
      ps::CoordinatorOptions options;
      options.members = 3;
      options.batch = 4;
      options.examples = 100;
      options.passes = 3;
      const data::Remainder data = wire::from_wire(ledger.plan());
      static_cast<void>(ps::Coordinator(options, 0, data, 0).remaining());
      ps::Coordinator coordinator(options, ledger, 0);
      for (int i = 0; i < options.members; ++i) coordinator.join(i, 5);
      break;
    }
    case 2: {
      wire::Plan plan;
      if (!parsed(bytes, plan)) return;
      const data::Plan made = wire::from_wire(plan);
      const data::Rounds rounds(made);
      data::Round round;
      rounds.read(0, round);
      if (round.count < 0 || round.count > made.batch) std::abort();
      break;
    }
    case 3: {
      wire::Commit commit;
      if (!parsed(bytes, commit)) return;
      for (const ps::Contributor& c : ps::from_wire(commit).contributors) {
        if (c.member < 0) std::abort();
      }
      break;
    }
    default: {
      wire::PushEnd end;
      if (!parsed(bytes, end)) return;
      ps::CoordinatorOptions options;
      options.members = 2;
      options.batch = 4;
      options.examples = 100;
      options.sync = end.rounds() % 2 == 0;
      ps::Coordinator coordinator(options, 0, {}, 0);
      coordinator.join(0, 1);
      static_cast<void>(coordinator.unseen_plan(0, 0));
      const ps::Push push{0, 1, 1, 0, end.plan(), end.rounds(), {end.loss_sum(), end.correct(), end.examples()}};
      const bool accepted = coordinator.offer(push) == ps::Verdict::accepted;
      if (accepted && (end.rounds() != 1 || end.examples() != 4)) std::abort();
      coordinator.finish(0, 1, train::StopReason::data, end.rounds(), 1);
      static_cast<void>(coordinator.remaining());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    take(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  } catch (const lockstep::Error&) {
    return 0;
  }
  return 0;
}
