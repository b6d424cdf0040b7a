#include "ps/worker_flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "ps/messages.h"

namespace lockstep::ps {

using exchange::StepInfo;
using exchange::StepOutcome;

WorkerFlow::WorkerFlow(Servers& servers, WorkerFlowOptions options)
    : servers_(servers), options_(std::move(options)), parts_(static_cast<size_t>(servers.count())) {}

bool WorkerFlow::ended() const {
  for (int i = 0; i < servers_.count(); ++i) {
    if (servers_.ended(i)) return true;
  }
  return false;
}

std::string WorkerFlow::answer_to_push() const { return fmt::format("its answer to push {}", sequence_); }

/// Logs a failure that is retried; once, and only if it is not an ordinary lost connection.
void WorkerFlow::note(const base::Failure& failure) {
  if (failure.kind != base::FailureKind::refused) return;
  std::string line = failure.message();
  if (line == noted_) return;
  noted_ = std::move(line);
  options_.log("warning", noted_ + "; trying again");
}

// Joining.

base::Status WorkerFlow::connect_all(const std::string& awaited) {
  for (int i = 0; i < servers_.count(); ++i) {
    base::Status connected = servers_.connect(i, awaited);
    if (!connected) return connected;
  }
  run_ = servers_.welcome(0).run();
  return {};
}

base::Status WorkerFlow::initialise_if_needed() {
  // All servers must have one generation: a chief may have died after it had set only some of them again.
  const uint64_t current = servers_.welcome(0).generation();
  uint64_t generation = generation_;
  bool all = true;
  for (int i = 0; i < servers_.count(); ++i) {
    all = all && servers_.welcome(i).initialised() && servers_.welcome(i).generation() == current;
    generation = std::max(generation, servers_.welcome(i).generation());
  }
  if (all || !chief()) return {};
  const uint64_t version = servers_.find_initial();
  if (generation > 0) {
    options_.log("warning", fmt::format("a parameter server lost its state; all workers go back to step {}", version));
  }
  // The coordinator comes last: once it has its parameters, all servers have theirs.
  for (int i = servers_.count() - 1; i >= 0; --i) {
    base::Status sent = servers_.initialise(i, generation + 1);
    if (sent) continue;
    // All: what the others said when they were connected is old now.
    for (int server = 0; server < servers_.count(); ++server) servers_.drop(server, sent.failure().message());
    return sent;
  }
  for (int i = 0; i < servers_.count(); ++i) servers_.drop(i, "the parameters were set again");
  return connect_all("its welcome");
}

base::Result<std::optional<StepInfo>> WorkerFlow::join() {
  for (;;) {
    base::Result<StepInfo> joined = try_to_join();
    if (joined) return std::optional<StepInfo>(joined.value());
    if (options_.interrupted()) return base::Failure{base::FailureKind::interrupted, "interrupted"};
    if (ended()) return std::optional<StepInfo>(end_after_others());
    if (given_up_) return joined.failure();
    note(joined.failure());
  }
}

base::Result<StepInfo> WorkerFlow::try_to_join() {
  base::Status connected = connect_all("its welcome");
  if (!connected) {
    given_up_ = true;
    return connected.failure();
  }
  base::Status fine = initialise_if_needed();
  if (!fine) return fine.failure();
  fine = servers_.connect(0, "its parameters");
  if (!fine) return fine.failure();
  if (servers_.welcome(0).initialised()) fine = wait_for_one_generation(servers_.welcome(0).generation());
  if (!fine) return fine.failure();
  base::Status asked = wait_for(0);  // sync: the next version needs all servers
  // The step reached here, in case all went back.
  if (asked) asked = servers_.ask_to_join(at(0).version, generation_);
  base::Result<wire::Reply> reply = asked ? read(0) : asked.failure();
  servers_.waits_for(-1);
  if (!reply) {
    servers_.drop(0, reply.failure().message());
    return reply.failure();
  }
  generation_ = reply.value().generation();
  fine = wait_for_one_generation(generation_);
  if (!fine) return fine.failure();
  for (int i = 1; i < servers_.count(); ++i) {
    fine = wait_for(i);
    if (fine) fine = pull(i, at(0).version);
    servers_.waits_for(-1);
    if (!fine) return fine.failure();
  }
  if (options_.sync) fine = level();
  if (!fine) return fine.failure();
  rounds_ = 0;
  return info_from(reply.value());
}

base::Status WorkerFlow::wait_for(int server) {
  servers_.waits_for(server);
  for (int other = 0; other < servers_.count(); ++other) {
    const bool needed = server == 0 || other == 0;
    if (other == server || !needed || servers_.intact(other)) continue;
    return base::Failure{base::FailureKind::gone, "is gone", {fmt::format("ps:{}", other)}};
  }
  return {};
}

base::Status WorkerFlow::wait_for_one_generation(uint64_t generation) {
  for (int i = 1; i < servers_.count(); ++i) {
    const wire::Welcome& welcome = servers_.welcome(i);
    if (!welcome.initialised()) {
      base::Status there = pull(i, 0);
      if (!there) return there;
    } else if (welcome.generation() != generation) {
      if (welcome.generation() > generation) {
        // ps:0 ends this stream when it gets them. Its next version needs this server, so none comes before.
        base::Status asked = servers_.ask_for(0, servers_.welcome(0).version() + 1);
        servers_.waits_for(0);
        if (asked) static_cast<void>(read(0));
        servers_.waits_for(-1);
      }
      for (int server = 0; server < servers_.count(); ++server) servers_.drop(server, "the parameters are set again");
      return base::Failure{base::FailureKind::gone, "has other parameters than ps:0", {fmt::format("ps:{}", i)}};
    }
  }
  return {};
}

base::Result<std::optional<StepInfo>> WorkerFlow::join_anew() {
  for (int i = 0; i < servers_.count(); ++i) servers_.drop(i, "joining anew");
  return join();
}

base::Result<StepInfo> WorkerFlow::rejoin(const wire::Reply& reply) {
  rejoined_ = true;
  base::Result<std::optional<StepInfo>> joined = join_anew();
  if (!joined) return joined.failure();
  StepInfo info = *joined.value();
  if (reply.applied() || info.outcome != StepOutcome::missed) set_outcome(info, reply);
  if (info.applied()) {
    info.group = {reply.loss_sum(), reply.correct(), reply.examples()};
    info.learning_rate = reply.learning_rate();
    info.gradient_norm = reply.gradient_norm();
    info.staleness = reply.staleness();
  }
  return info;
}

base::Status WorkerFlow::pull(int server, uint64_t version) {
  base::Status connected = servers_.connect(server, "its parameters");
  if (!connected) return connected;
  base::Status asked = servers_.ask_for(server, version);
  base::Result<wire::Reply> reply = asked ? read(server) : asked.failure();
  if (reply) return {};
  servers_.drop(server, reply.failure().message());
  return reply.failure();
}

base::Status WorkerFlow::level() {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    uint64_t newest = 0;
    for (const Part& part : parts_) newest = std::max(newest, part.version);
    int behind = -1;
    for (int server = 0; server < servers_.count(); ++server) {
      if (at(server).version < newest) behind = server;
    }
    if (behind < 0) return {};
    base::Status pulled = connect_all("its parameters");
    if (!pulled) {
      given_up_ = true;
      return pulled;
    }
    for (int server = 0; server < servers_.count(); ++server) {
      if (went_back(server)) return base::Failure{base::FailureKind::gone, "has lost its parameters"};
    }
    pulled = wait_for(behind);
    if (pulled) pulled = pull(behind, newest);
    servers_.waits_for(-1);
    if (!pulled && options_.interrupted()) return pulled;
    if (!pulled) note(pulled.failure());
  }
  return base::Failure{base::FailureKind::other, "the servers did not reach one common version"};
}

base::Result<wire::Reply> WorkerFlow::read(int server) {
  base::Result<Servers::Parameters> came = servers_.read_parameters(server);
  if (!came) return came.failure();
  at(server).version = came.value().version;
  at(server).known_on = servers_.connections(server);
  return std::move(came.value().reply);
}

// A push.

void WorkerFlow::begin(int64_t batches) {
  batches_ = batches;
  rounds_ += batches;
  ++sequence_;
  for (int i = 0; i < servers_.count(); ++i) at(i).pushed_on = servers_.connections(i);
}

bool WorkerFlow::streams_to(int server) const {
  return at(server).pushed_on != 0 && at(server).pushed_on == servers_.connections(server);
}

base::Status WorkerFlow::push_rest(int server) {
  base::Status connected = servers_.connect(server, answer_to_push());
  if (!connected) {
    given_up_ = true;
    return connected;
  }
  if (went_back(server)) return base::Failure{base::FailureKind::gone, "has lost its parameters"};
  if (streams_to(server)) return servers_.push(server, false);
  at(server).pushed_on = servers_.connections(server);
  return servers_.push(server, true);
}

void WorkerFlow::send() {
  // ps:0 last: it counts the push as soon as it has it, if the others had it before.
  for (int i = servers_.count() - 1; i >= 0; --i) at(i).sent = push_rest(i).ok();
}

base::Status WorkerFlow::push_to_others() {
  for (int i = 1; i < servers_.count(); ++i) {
    while (!(at(i).sent && servers_.intact(i) && at(i).pushed_on == servers_.connections(i))) {
      base::Status pushed = push_rest(i);
      at(i).sent = pushed.ok();
      if (went_back(i)) return pushed;
      if (!pushed) servers_.drop(i, pushed.failure().message());
      if (given_up_ || options_.interrupted()) {
        return base::Failure{base::FailureKind::gone, "is gone", {fmt::format("ps:{}", i)}};
      }
    }
  }
  return {};
}

/// What the answer of this server needs from the others.
base::Status WorkerFlow::prepare_others(int server) {
  servers_.waits_for(server);
  if (server == 0) return push_to_others();
  if (servers_.intact(0)) return {};
  base::Status connected = servers_.connect(0, answer_to_push());
  // At the end ps:0 may be gone, and the others have heard all from it.
  if (ended() || !went_back(0)) return {};
  return connected ? base::Failure{base::FailureKind::gone, "has lost its parameters"} : connected;
}

base::Result<wire::Reply> WorkerFlow::complete(int server) {
  bool sent_here = streams_to(server) && at(server).sent;
  for (;;) {
    base::Status pushed = sent_here ? base::Status() : push_rest(server);
    if (pushed) pushed = prepare_others(server);
    base::Result<wire::Reply> reply = pushed ? read(server) : pushed.failure();
    servers_.waits_for(-1);
    if (reply) {
      servers_.answered(server, reply.value());
      return reply;
    }
    sent_here = false;
    at(server).pushed_on = 0;
    if (options_.interrupted() || given_up_) return reply;
    note(reply.failure());
    servers_.drop(server, reply.failure().message());
    // A server that lost its state needs the parameters from the chief; then all workers join again.
    base::Status back = servers_.connect(server, answer_to_push());
    if (!back) {
      given_up_ = true;
      return back.failure();
    }
    for (int i = 0; i < servers_.count(); ++i) {
      if (!went_back(i)) continue;
      wire::Reply anew;
      anew.set_rejoin(true);
      return anew;
    }
  }
}

bool WorkerFlow::went_back(int server) const {
  if (servers_.connections(server) == at(server).known_on) return false;  // its welcome is older than the parameters
  const wire::Welcome& welcome = servers_.welcome(server);
  return !welcome.initialised() || welcome.generation() != generation_ || welcome.version() < at(server).version;
}

base::Result<StepInfo> WorkerFlow::await() {
  rejoined_ = false;
  base::Result<StepInfo> answered = answers();
  if (!answered && !ended()) return answered;
  StepInfo info = answered ? std::move(answered.value()) : end_after_others();
  if (!rejoined_) rounds_ = info.applied() || info.plan ? 0 : rounds_ - batches_;
  return info;
}

base::Result<StepInfo> WorkerFlow::answers() {
  base::Result<wire::Reply> reply = complete(0);
  if (!reply) return reply.failure();
  const bool anew = reply.value().rejoin() && reply.value().stop() == 0;
  if (anew && !reply.value().applied()) return rejoin(reply.value());
  const bool stopped = reply.value().stop() != 0 && !reply.value().applied();
  for (int i = 1; i < servers_.count(); ++i) {
    if (stopped) {
      // The version that the other answers wait for will not be made.
      servers_.drop(i, "training stops");
      continue;
    }
    base::Result<wire::Reply> other = complete(i);
    if (!other) return other.failure();
    if (other.value().rejoin()) return rejoin({});  // the server lost its state: all workers go back
  }
  if (anew) return rejoin(reply.value());
  if (options_.sync && servers_.count() > 1) {
    base::Status levelled = level();
    for (int i = 0; !levelled && i < servers_.count(); ++i) {
      if (went_back(i)) return rejoin({});
    }
    if (!levelled) return levelled.failure();
  }
  return info_from(reply.value());
}

StepInfo WorkerFlow::end_after_others() {
  over_ = rejoined_ = true;
  StepInfo info;
  info.step = at(0).version;
  info.outcome = StepOutcome::missed;
  info.stop = {train::StopReason::data};
  for (int i = 0; i < servers_.count(); ++i) {
    const train::StopReason why = servers_.why_ended(i);
    if (why == train::StopReason::interrupted || why == train::StopReason::not_finite) info.stop = {why};
  }
  options_.log("warning", "training is over: it ended without this worker");
  return info;
}

void WorkerFlow::set_outcome(StepInfo& info, const wire::Reply& reply) {
  info.outcome = reply.applied() ? StepOutcome::applied : info.stop ? StepOutcome::ended : StepOutcome::retry;
}

StepInfo WorkerFlow::info_from(const wire::Reply& reply) {
  StepInfo info;
  info.step = at(0).version;
  info.learning_rate = reply.learning_rate();
  info.gradient_norm = reply.gradient_norm();
  if (reply.stop() != 0) info.stop = {stop_reason(reply.stop())};
  set_outcome(info, reply);
  info.group = {reply.loss_sum(), reply.correct(), reply.examples()};
  info.examples_total = reply.examples_total();
  info.staleness = reply.staleness();
  if (reply.has_plan()) {
    info.plan = from_wire(reply.plan());
    info.batches_per_step = std::max<int64_t>(reply.plan().batches_per_update(), 1);
    plan_ = info.plan->id;
    rounds_ = 0;
  }
  return info;
}

// The end, and snapshots.

base::Result<std::optional<StepInfo>> WorkerFlow::leave(const exchange::Farewell& farewell) {
  if (over_) return std::optional<StepInfo>();
  wire::Leave leave;
  leave.set_stop(static_cast<uint32_t>(farewell.reason));
  leave.set_loss(farewell.loss);
  leave.set_accuracy(farewell.accuracy);
  leave.set_rounds(rounds_);
  for (;;) {
    base::Status connected = servers_.connect(0, "the end of training");
    if (!connected) {
      if (ended()) return std::optional<StepInfo>();
      return connected.failure();
    }
    if (went_back(0)) return join_anew();
    base::Status said = servers_.say_leave(leave);
    const base::Result<bool> needed_again = said ? servers_.wait_end() : said.failure();
    if (!needed_again) {
      note(needed_again.failure());
      servers_.drop(0, needed_again.failure().message());
      continue;
    }
    if (needed_again.value()) return join_anew();
    rounds_ = 0;
    base::Status pulled = pull_last();
    if (pulled || ended()) return std::optional<StepInfo>();
    if (given_up_ || options_.interrupted()) return pulled.failure();
    note(pulled.failure());
    for (int i = 0; i < servers_.count(); ++i) {
      if (went_back(i)) return join_anew();
    }
  }
}

/// Takes the parameters of the end.
base::Status WorkerFlow::pull_last() {
  for (int i = 0; i < servers_.count(); ++i) {
    base::Status connected = servers_.connect(i, "the end of training");
    if (!connected) {
      given_up_ = true;
      return connected;
    }
    if (went_back(i)) return base::Failure{base::FailureKind::gone, "has lost its parameters"};
    base::Status pulled = pull(i, i == 0 ? 0 : at(0).version);
    if (!pulled) return pulled;
  }
  return {};
}

base::Status WorkerFlow::snapshot() {
  for (;;) {
    base::Status taken = try_snapshot();
    if (taken || options_.interrupted() || given_up_) return taken;
    note(taken.failure());
    for (int i = 0; i < servers_.count(); ++i) {
      if (went_back(i)) return taken;
    }
  }
}

base::Status WorkerFlow::try_snapshot() {
  const bool several = servers_.count() > 1;
  if (several) {
    // Keeps ps:0, and with it all servers, from making versions until `release`, so that their parts are of one
    // version.
    base::Status held = servers_.connect(0, "a snapshot");
    if (!held) {
      given_up_ = true;
      return held;
    }
    held = servers_.hold();
    if (!held) {
      servers_.drop(0, held.failure().message());
      return held;
    }
    held_on_ = servers_.connections(0);
  }
  uint64_t first = 0;
  for (int i = 0; i < servers_.count(); ++i) {
    base::Status connected = servers_.connect(i, "a snapshot");
    if (!connected) {
      given_up_ = true;
      return connected;
    }
    if (went_back(i)) {
      if (several) servers_.release();
      return base::Failure{base::FailureKind::gone, "has lost its parameters"};
    }
    const base::Result<uint64_t> version = servers_.read_state(i, first);
    if (!version) {
      servers_.drop(i, version.failure().message());
      return version.failure();
    }
    at(i).version = version.value();
    at(i).known_on = servers_.connections(i);
    if (i == 0) first = version.value();
    // After a reconnection ps:0 is no longer held.
    const bool torn = several && servers_.connections(0) != held_on_;
    if (torn || version.value() != first) {
      servers_.release();
      return base::Failure{base::FailureKind::other, "the servers' parts are not of one snapshot"};
    }
  }
  if (several) servers_.release();
  return {};
}

}  // namespace lockstep::ps
