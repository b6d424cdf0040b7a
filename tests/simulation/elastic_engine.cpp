#include "simulation/elastic_engine.h"

namespace lockstep::simulation {

void ElasticEngine::begin(const allreduce::elastic::Group& group) {
  leave();
  group_ = group;
  ready_ = false;
  broken_.clear();
  state_.reset();
  parts_.clear();
  sums_.clear();
  if (leads()) {
    look_if_ready();
  } else {
    up_ = world_.connect(me_, group.seats.front().member);
  }
}

void ElasticEngine::leave() {
  if (!group_) return;
  if (up_ >= 0) world_.close(me_, std::exchange(up_, -1));
  for (const auto& [member, link] : std::exchange(members_[group_->id], {})) {
    world_.close(me_, link);
    connections_.erase(link);
  }
  members_.erase(group_->id);
  group_.reset();
}

void ElasticEngine::abort(const std::string& why) {
  leave();
  broken_ = why;
}

void ElasticEngine::send(Link link, ElasticMessage message) {
  const ElasticPacket packet = std::make_shared<const ElasticMessage>(std::move(message));
  world_.send(me_, link, packet, [&] { return describe(*packet); });
}

void ElasticEngine::send_all(const ElasticMessage& message) {
  const ElasticPacket packet = std::make_shared<const ElasticMessage>(message);
  for (const auto& [member, link] : members_[group_->id]) {
    world_.send(me_, link, packet, [&] { return describe(*packet); });
  }
}

void ElasticEngine::look_if_ready() {
  if (!leads() || ready_ || members_[group_->id].size() + 1 < group_->seats.size()) return;
  ready_ = true;
  send_all(EngineReady{group_->id});
}

void ElasticEngine::share(const StateSent& sent) {
  state_ = sent.state;
  if (leads()) {
    send_all(sent);
  } else if (up_ >= 0) {
    send(up_, sent);
  }
}

void ElasticEngine::take(int member, const StepNote& note) {
  if (!group_ || note.group != group_->id) return;
  if (!leads()) {
    if (member != me_) {
      sums_[note.state] = note;
    } else if (up_ >= 0) {
      send(up_, note);
    }
    return;
  }
  std::map<int, StepNote>& parts = parts_[note.state];
  parts[member] = note;
  if (parts.size() < group_->seats.size()) return;
  StepNote sum = note;
  for (const auto& [from, part] : parts) {
    sum.stop = sum.stop || part.stop;
    sum.interrupted = sum.interrupted || part.interrupted;
    sum.regroup = sum.regroup || part.regroup;
  }
  parts_.erase(note.state);
  sums_[note.state] = sum;
  send_all(sum);
}

std::optional<StepNote> ElasticEngine::sum(uint64_t state) const {
  const auto found = sums_.find(state);
  return found == sums_.end() ? std::nullopt : std::optional(found->second);
}

bool ElasticEngine::connected(Link link) {
  if (link != up_) return false;
  send(link, EngineHello{group_->id});
  return true;
}

bool ElasticEngine::received(Link link, const ElasticMessage& message) {
  const auto found = connections_.find(link);
  if (link != up_ && found == connections_.end()) return false;
  if (std::holds_alternative<EngineReady>(message)) ready_ = true;
  if (const auto* const note = std::get_if<StepNote>(&message)) take(link == up_ ? -1 : found->second.second, *note);
  const auto* const sent = std::get_if<StateSent>(&message);
  if (sent != nullptr && group_ && sent->group == group_->id) {
    state_ = sent->state;
    if (leads()) send_all(*sent);
  }
  return true;
}

bool ElasticEngine::closed(Link link) {
  if (link == up_) {
    up_ = -1;
    abort("the engine's connection broke");
    return true;
  }
  const auto found = connections_.find(link);
  if (found == connections_.end()) return false;
  const auto [group, member] = found->second;
  connections_.erase(found);
  members_[group].erase(member);
  if (members_[group].empty()) members_.erase(group);
  if (group_ && group == group_->id) abort("the engine's connection to " + world_.name(member) + " broke");
  return true;
}

void ElasticEngine::greeted(int member, Link link, uint64_t group) {
  members_[group][member] = link;
  connections_[link] = {group, member};
  if (group_ && group == group_->id) look_if_ready();
}

}  // namespace lockstep::simulation
