// A Job's pushes and versions, and members that join.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "optim/schedule.h"
#include "ps/job.h"

namespace lockstep::ps {
namespace {

constexpr double kRoomWait = 60;  ///< seconds; a silent worker is given up long before

}  // namespace

void Job::overwrite(SessionId id) {
  const auto kept = gradients_.find(at(id).member);
  if (kept == gradients_.end() || kept->second.session != id) return;
  gradients_.erase(kept);
  if (follower_) follower_->overwritten(at(id).member);
}

Verdict Job::push(SessionId id, const Push& push, std::shared_ptr<std::vector<float>> values, float scale) {
  Session& session = at(id);
  const PushName name{push.incarnation, push.sequence};
  session.push = push;
  if (coordinator_) {
    session.verdict = coordinator_->offer(push);
  } else {
    session.verdict = is_applied(push) ? Verdict::repeated : Verdict::accepted;
  }
  if (session.verdict != Verdict::accepted) return session.verdict;
  gradients_[push.member] = {name, id, std::move(values), scale, std::nullopt};
  if (follower_) {
    follower_->arrived(push.member, name);
    tell_received(push.member, name);
  }
  return session.verdict;
}

void Job::spent(int member, double waiting, double busy) {
  if (!coordinator_) return;
  WorkerHistory& record = coordinator_->record(member);
  record.wait_seconds += std::max(0.0, waiting);
  record.busy_seconds += std::max(0.0, busy);
}

void Job::put_common(wire::Reply& reply, int member, uint64_t known_plan) {
  reply.set_stop(static_cast<uint32_t>(coordinator_->stopped()));
  reply.set_learning_rate(optim::learning_rate(rules_.schedule, told_.version == 0 ? 0 : told_.version - 1));
  reply.set_gradient_norm(gradient_norm_);
  reply.set_examples(told_.latest.examples);
  reply.set_loss_sum(told_.latest.loss_sum);
  reply.set_correct(told_.latest.correct);
  reply.set_examples_total(told_.examples);
  reply.set_staleness(coordinator_->latest_staleness(member));
  if (const std::optional<data::Plan> plan = coordinator_->unseen_plan(member, known_plan)) {
    to_wire(*plan, *reply.mutable_plan());
    reply.mutable_plan()->set_batches_per_update(coordinator_->batches_per_update(member));
  }
}

wire::Reply Job::reply(SessionId id) {
  const Session& session = at(id);
  wire::Reply reply;
  if (!coordinator_) return reply;
  const Push& push = session.push;
  put_common(reply, push.member, push.plan);
  const bool applied = is_applied(push);
  reply.set_applied(applied);
  // Several batches cannot be computed again: a worker that lost them takes a new share.
  reply.set_rejoin(session.verdict == Verdict::rejoin || !coordinator_->takes_part(push.member, push.incarnation) ||
                   (!applied && push.rounds > 1));
  return reply;
}

std::optional<Update> Job::next(double now) const {
  if (!initialised_ || updating() || held_ > 0 || answers_first()) return std::nullopt;
  Update update;
  update.generation = generation_;
  if (coordinator_) {
    std::optional<Decision> decision = coordinator_->decide();
    if (!decision) return std::nullopt;
    update.decision = std::move(*decision);
  } else {
    std::optional<Follower::Next> announced = follower_->next(now);
    if (!announced) return std::nullopt;
    update.decision = std::move(announced->update);
    update.missing = std::move(announced->missing);
  }
  for (const Contributor& contributor : update.decision.contributors) {
    const auto found = gradients_.find(contributor.member);
    const bool is_here = found != gradients_.end() && found->second.push == name_of(contributor);
    if (is_here) update.parts.push_back({contributor, found->second.values, found->second.scale});
  }
  return update;
}

bool Job::room(bool there, const std::string& folder, double now) {
  if (there) {
    no_room_since_ = 0;
    return true;
  }
  const std::string line =
      fmt::format("ps:{}: no room for another copy of the parameters in {}: updates wait for workers to read theirs",
                  options_.index, folder);
  if (no_room_since_ == 0) {
    no_room_since_ = now;
    say("warning", line);
  }
  if (now - no_room_since_ < kRoomWait) return false;
  throw IoError(fmt::format("{}; none has in {:.0f} s", line, kRoomWait));
}

void Job::begin(const Update& update, double now) {
  const Decision& decision = update.decision;
  for (const Contributor& lost : update.missing) {
    say("warning", fmt::format("step {}: the gradient of {} is lost; ps:{} goes on without it", decision.version,
                               names_of({lost.member}, {}), options_.index));
  }
  pushes_ += decision.contributors.size();
  if (coordinator_) {
    coordinator_->committed(decision);
  } else {
    follower_->committed(now);
  }
  making_ = decision;
}

void Job::finish(const Update& update, double now) {
  if (update.generation != generation_ || !updating()) return;  // the parameters were set again meanwhile
  making_.reset();
  note_stored();
  orders_.changed = true;
  for (const Contributor& contributor : update.decision.contributors) {  // nobody sends their like again
    const auto found = gradients_.find(contributor.member);
    const bool its = found != gradients_.end() && found->second.push == name_of(contributor);
    if (!its || found->second.booked) continue;
    if (!has_stream(found->first, found->second)) gradients_.erase(found);
  }
  if (!coordinator_) return;
  version_since_ = now;
  warned_ = false;
  if (coordinator_->options().servers > 1) orders_.announced.push_back(update.decision);
}

void Job::note_stored() {
  if (coordinator_) told_ = {coordinator_->version(), coordinator_->latest(), coordinator_->examples()};
}

bool Job::has_stream(int member, const Gradient& gradient) const {
  const auto found = current_.find(member);
  return found != current_.end() && found->second == gradient.session;
}

std::optional<Booked> Job::book(const Update& update, const optim::Update& how) {
  if (update.parts.empty() || update.generation != generation_) return std::nullopt;
  const Update::Part& part = update.parts.front();
  const auto found = gradients_.find(part.from.member);
  const bool same = found != gradients_.end() && found->second.push == name_of(part.from);
  if (same && has_stream(found->first, found->second)) {
    found->second.booked = how;
    return std::nullopt;
  }
  if (same) gradients_.erase(found);
  ++applying_;
  return Booked{part.values, how};
}

std::optional<Booked> Job::take_booked(SessionId id) {
  const auto found = gradients_.find(at(id).member);
  const bool booked = found != gradients_.end() && found->second.session == id && found->second.booked;
  if (!booked) return std::nullopt;
  Booked taken{found->second.values, *found->second.booked};
  found->second.booked.reset();
  ++applying_;
  return taken;
}

bool Job::is_quiet() const {
  return applying_ == 0 && std::none_of(gradients_.begin(), gradients_.end(),
                                        [](const auto& gradient) { return gradient.second.booked.has_value(); });
}

void Job::join(SessionId id, uint64_t version, uint64_t generation) {
  const Session& session = at(id);
  count_lost(version, generation);
  coordinator_->join(session.member, session.incarnation);
  lost_at_.erase(session.member);
  orders_.changed = true;
}

wire::Reply Job::join_reply(SessionId id) {
  wire::Reply reply;
  put_common(reply, at(id).member, 0);
  reply.set_generation(generation_);
  return reply;
}

}  // namespace lockstep::ps
