// Connections of a member, as those of the mesh: it connects to members with lower numbers, accepts those with higher
// ones, and finds lost ones by their silence.
#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/messages.h"
#include "simulation/elastic_member.h"

namespace lockstep::simulation {
namespace {

using allreduce::elastic::MemberStatus;
using allreduce::elastic::RelayFrame;

constexpr double kTick = 0.25;
constexpr double kHeartbeat = 1;
constexpr double kSilence = 5;
constexpr double kPause = 3;
constexpr double kProbe = 0.5;
constexpr double kRegisterAnswers = 4.5;

std::string name_of(const allreduce::elastic::Message& message) {
  static const char* const names[] = {"status", "proposal", "acceptance", "refusal", "decision"};
  std::string text = names[message.index()];
  if (const auto* status = std::get_if<MemberStatus>(&message)) {
    text += fmt::format(" phase {} group {} left {} step {}", static_cast<int>(status->phase), status->group.number,
                        status->left, status->step);
  }
  if (const auto* proposal = std::get_if<allreduce::elastic::Proposal>(&message)) {
    text += fmt::format(" {}", proposal->number);
  }
  if (const auto* decision = std::get_if<allreduce::elastic::Decision>(&message)) {
    text += " " + authority::text_of(decision->group);
  }
  return text;
}

std::string name_of(const RelayFrame& frame) {
  if (const auto* sightings = std::get_if<allreduce::elastic::Sightings>(&frame)) {
    std::string text = "sees";
    for (const auto& one : sightings->all) {
      const MemberStatus& status = one.known->status;
      text += fmt::format(" {}(phase {} group {})", one.member, static_cast<int>(status.phase), status.group.number);
    }
    return text;
  }
  if (const auto* departures = std::get_if<allreduce::elastic::Departures>(&frame)) {
    std::string text = "misses";
    for (const auto& one : departures->all) text += fmt::format(" {}{}", one.member, one.dead ? " (dead)" : "");
    return text;
  }
  if (const auto* parcel = std::get_if<allreduce::elastic::Parcel>(&frame)) {
    return fmt::format("passes on a message of kind {} from {}", parcel->kind, parcel->from);
  }
  return "leaves";
}

}  // namespace

std::string describe(const ElasticMessage& message) {
  struct Describe {
    std::string operator()(const Greeting& /*greeting*/) const { return "greeting"; }
    std::string operator()(const allreduce::elastic::Message& member) const { return name_of(member); }
    std::string operator()(const EngineHello& hello) const {
      return fmt::format("connects in group {:x}", hello.group);
    }
    std::string operator()(const StepNote& note) const { return fmt::format("gradients of state {:x}", note.state); }
    std::string operator()(const StateSent& sent) const { return fmt::format("state {:x}", sent.state); }
    std::string operator()(const AskRegister& ask) const {
      return ask.swap ? "swap to " + authority::text_of(ask.swap->next) : "read";
    }
    std::string operator()(const Full& /*full*/) const { return "no room"; }
    std::string operator()(const Beat& /*beat*/) const { return "heartbeat"; }
    std::string operator()(const EngineReady& ready) const { return fmt::format("group {:x} is ready", ready.group); }
    std::string operator()(const RelayFrame& frame) const { return name_of(frame); }
    std::string operator()(const RegisterSays& says) const {
      return fmt::format("outcome {}: {}", static_cast<int>(says.answer.outcome),
                         authority::text_of(says.answer.group));
    }
  };
  return std::visit(Describe{}, message);
}

void RegisterActor::start() {
  const std::optional<std::string> kept = world_.disk(me_).read("register");
  const std::optional<authority::Group> group = kept ? authority::parse_group(*kept) : std::nullopt;
  if (group) cell_ = authority::Cell(*group);
}

void RegisterActor::received(Link link, const std::any& message) {
  const auto* const ask = std::get_if<AskRegister>(std::any_cast<const ElasticPacket&>(message).get());
  if (ask == nullptr) return;
  authority::Answer answer{authority::Outcome::present, cell_.group(), {}};
  if (ask->swap) {
    authority::Cell after = cell_;
    answer = after.swap(ask->swap->expected, ask->swap->next);
    if (!world_.disk(me_).write("register", authority::text_of(after.group()))) return;  // as without an answer
    world_.disk(me_).sync("register");
    cell_ = after;
    judge_.registered(cell_.group());
  }
  const ElasticPacket packet = std::make_shared<const ElasticMessage>(RegisterSays{ask->number, answer});
  world_.send(me_, link, packet, [&] { return describe(*packet); });
}

void ElasticMember::send(Link link, ElasticMessage message) {
  const ElasticPacket packet = std::make_shared<const ElasticMessage>(std::move(message));
  world_.send(me_, link, packet, [&] { return describe(*packet); });
}

void ElasticMember::send_to(int member, ElasticMessage message) {
  if (member == me_ || peer(member).link < 0) return;
  peer(member).sent = now();
  send(peer(member).link, std::move(message));
}

void ElasticMember::send_all(const ElasticMessage& message) {
  for (int member = 0; member < members(); ++member) send_to(member, message);
}

void ElasticMember::try_peer(int member) {
  if (peer(member).link >= 0 || peer(member).attempt >= 0) return;
  peer(member).attempt = world_.connect(me_, member);
  peer(member).heard = now();
}

void ElasticMember::retry_peer(int member) {
  const double wait = std::min(0.02 * (1 << std::min(peer(member).tries++, 5)), 0.5);
  world_.after(me_, wait, [this, member] { try_peer(member); });
}

/// Tries the address of a lost member, which must connect by itself: is its process dead?
void ElasticMember::probe(int member) {
  world_.after(me_, kProbe, [this, member] {
    if (peer(member).link >= 0 || !peer(member).probed) return;
    if (tree_ && !tree_->relay().misses(member)) {
      peer(member).probed = false;
      return;
    }
    probes_[world_.connect(me_, member)] = member;
  });
}

void ElasticMember::accepted(Link link, Process from) { strangers_[link] = {from, now()}; }

void ElasticMember::connected(Link link) {
  if (link == register_link_) {
    register_connected_ = true;
    if (asking_) send(link, AskRegister{asked_, asking_->swap});
    return;
  }
  if (const auto found = probes_.find(link); found != probes_.end()) {
    const int member = found->second;
    probes_.erase(found);
    world_.close(me_, link);
    return probe(member);
  }
  if (engine_.connected(link)) return;
  if (tree_) return static_cast<void>(tree_->connected(link));
  send(link, Greeting{incarnation_});
}

void ElasticMember::enter(int member, Link link, uint64_t incarnation) {
  Peer& there = peer(member);
  if (there.link >= 0) {
    world_.close(me_, there.link);
    lose(member, "it connected again");
  }
  there.link = link;
  there.attempt = -1;
  there.arrived = there.probed = false;
  there.incarnation = incarnation;
  there.heard = there.sent = now();
  there.tries = 0;
  send(link, Message(assembly_->status()));
}

void ElasticMember::lose(int member, const std::string& why) {
  Peer& there = peer(member);
  there.link = -1;
  if (std::exchange(there.arrived, false)) assembly_->peer_lost(member, why, now());
  if (member < me_) return retry_peer(member);
  there.probed = true;
  probe(member);
}

void ElasticMember::received(Link link, const std::any& message) {
  const ElasticMessage& got = *std::any_cast<const ElasticPacket&>(message);
  if (link == register_link_) {
    if (const auto* says = std::get_if<RegisterSays>(&got)) take_answer(says->number, says->answer);
    return pump();
  }
  const ElasticPacket& packet = std::any_cast<const ElasticPacket&>(message);
  if (engine_.received(link, got) || (tree_ && tree_->received(link, packet))) return pump();
  const auto stranger = strangers_.find(link);
  const int member = stranger == strangers_.end() ? -1 : stranger->second.from;
  if (const auto* greeting = std::get_if<Greeting>(&got)) {
    if (member >= 0) {
      strangers_.erase(stranger);
      if (tree_) {
        tree_->greeted(member, link, greeting->incarnation);
        return pump();
      }
      send(link, Greeting{incarnation_});
      enter(member, link, greeting->incarnation);
      return pump();
    }
    for (int lower = 0; lower < me_; ++lower) {
      if (peer(lower).attempt == link) enter(lower, link, greeting->incarnation);
    }
    return pump();
  }
  const auto* const hello = std::get_if<EngineHello>(&got);
  if (hello != nullptr && member >= 0) {
    strangers_.erase(stranger);
    engine_.greeted(member, link, hello->group);
    return pump();
  }
  take_message(link, got);
  pump();
}

void ElasticMember::take_message(Link link, const ElasticMessage& got) {
  const auto from = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.link == link; });
  if (from == peers_.end()) return;
  from->heard = now();
  const auto member = static_cast<int>(from - peers_.begin());
  if (const auto* told = std::get_if<Message>(&got)) {
    const auto* const status = std::get_if<MemberStatus>(told);
    if (from->arrived) {
      assembly_->receive(member, *told, now());
    } else if (status != nullptr && status->incarnation == from->incarnation) {
      from->arrived = true;
      assembly_->peer_connected(member, *status, now());
    }
  } else if (const auto* hello = std::get_if<EngineHello>(&got)) {
    engines_[hello->group].insert(member);
  } else if (const auto* note = std::get_if<StepNote>(&got)) {
    notes_[{note->group, note->state}][member] = *note;
  } else if (const auto* sent = std::get_if<StateSent>(&got)) {
    states_[sent->group] = sent->state;
  }
}

/// News of the relay.
void ElasticMember::tell(const allreduce::elastic::News& news) {
  struct Tell {
    ElasticMember& self;
    int from;
    void operator()(const allreduce::elastic::Arrived& arrived) const {
      self.assembly_->peer_connected(from, arrived.status, self.now());
    }
    void operator()(const allreduce::elastic::Told& told) const {
      self.assembly_->receive(from, told.status, self.now());
    }
    void operator()(const allreduce::elastic::Received& received) const {
      const auto kind = static_cast<allreduce::elastic::Kind>(received.kind);
      self.assembly_->receive(from, allreduce::elastic::decode(kind, received.content, self.members()), self.now());
    }
    void operator()(const allreduce::elastic::Lost& lost) const {
      self.assembly_->peer_lost(from, lost.why, self.now());
    }
    void operator()(const allreduce::elastic::Dead& /*dead*/) const {
      self.assembly_->peer_confirmed_dead(from, self.now());
    }
  };
  std::visit(Tell{*this, news.member}, news.what);
}

/// Sends what the Assembly wants to send.
void ElasticMember::send_out() {
  const std::vector<allreduce::elastic::Send> sends = assembly_->take_sends();
  for (size_t i = 0; i < sends.size();) {
    const auto* const status = std::get_if<MemberStatus>(&sends[i].message);
    if (sends[i].to < 0) {
      const bool fresh = status == nullptr || last_status_ != *status;
      if (status != nullptr) last_status_ = *status;
      if (tree_) {
        if (status != nullptr) tree_->relay().set_status(*status);
      } else if (fresh) {
        send_all(sends[i].message);
      }
      ++i;
      continue;
    }
    if (!tree_) {
      send_to(sends[i].to, sends[i].message);
      ++i;
      continue;
    }
    // One message to several members is sent as one.
    const std::string text = encode(sends[i].message);
    const allreduce::elastic::Kind kind = kind_of(sends[i].message);
    std::vector<int> to;
    for (; i < sends.size() && sends[i].to >= 0; ++i) {
      if (kind_of(sends[i].message) != kind || encode(sends[i].message) != text) break;
      to.push_back(sends[i].to);
    }
    tree_->relay().post(to, static_cast<uint16_t>(kind), text);
  }
  if (tree_) tree_->flush();
}

void ElasticMember::closed(Link link, const std::string& why) {
  const bool refused = why == "connection refused";
  if (link == register_link_) {
    register_link_ = -1;
    register_connected_ = false;
    take_answer(asked_, {authority::Outcome::unanswered, {}, {.text = "the register: " + why}});
    return pump();
  }
  strangers_.erase(link);
  if (const auto found = probes_.find(link); found != probes_.end()) {
    const int member = found->second;
    probes_.erase(found);
    if (!refused) return probe(member);
    peer(member).probed = false;
    if (tree_) {
      tree_->relay().confirm_dead(member);
      tree_->flush();
    } else {
      assembly_->peer_confirmed_dead(member, now());
    }
    return pump();
  }
  if (engine_.closed(link) || (tree_ && tree_->closed(link, why))) return pump();
  for (int member = 0; member < members(); ++member) {
    if (peer(member).attempt == link) {
      peer(member).attempt = -1;
      if (refused) assembly_->peer_confirmed_dead(member, now());
      assembly_->peer_unreachable(member, refused ? "connection refused: no process listens there" : why);
      retry_peer(member);
    } else if (peer(member).link == link) {
      lose(member, "connection closed");
    }
  }
  pump();
}

/// Looks for silent members, and sends heartbeats.
void ElasticMember::watch() {
  const bool paused = now() - std::exchange(ticked_, now()) > kPause;
  if (tree_) {
    tree_->watch(paused);
    tree_->relay().tick(now());
    tree_->flush();
    return watch_strangers(paused);
  }
  for (int member = 0; member < members(); ++member) {
    Peer& there = peer(member);
    if (paused) there.heard = now();
    const double silent = now() - there.heard;
    if (there.attempt >= 0 && silent > kSilence) {
      world_.close(me_, std::exchange(there.attempt, -1));
      assembly_->peer_unreachable(member, "no greeting within 5 s");
      retry_peer(member);
    } else if (there.link >= 0 && silent > kSilence) {
      world_.close(me_, there.link);
      lose(member, fmt::format("no heartbeat for {:.1f} s", silent));
    } else if (there.link >= 0 && now() - there.sent >= kHeartbeat) {
      send_to(member, Message(assembly_->status()));
    }
  }
  watch_strangers(paused);
}

void ElasticMember::watch_strangers(bool paused) {
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    if (paused) stranger->second.since = now();
    const bool late = now() - stranger->second.since > kSilence;
    if (late) world_.close(me_, stranger->first);
    stranger = late ? strangers_.erase(stranger) : std::next(stranger);
  }
}

void ElasticMember::tick() {
  watch();
  assembly_->tick(now());
  if (tree_) tree_->relay().set_status(assembly_->status());
  pump();
  world_.after(me_, kTick, [this] { tick(); });
}

void ElasticMember::ask_register(const allreduce::elastic::Question& question) {
  asking_ = question;
  const uint64_t number = ++asked_;
  if (register_link_ < 0) {
    register_link_ = world_.connect(me_, members());
  } else if (register_connected_) {
    send(register_link_, AskRegister{number, question.swap});
  }
  world_.after(me_, kRegisterAnswers, [this, number] {
    if (!asking_ || asked_ != number) return;
    if (register_link_ >= 0) world_.close(me_, std::exchange(register_link_, -1));
    register_connected_ = false;
    take_answer(number, {authority::Outcome::unanswered, {}, {.text = "the register: no answer"}});
    pump();
  });
}

void ElasticMember::take_answer(uint64_t number, const authority::Answer& answer) {
  if (!asking_ || number != asked_) return;
  asking_.reset();
  assembly_->answered(answer, now());
}

}  // namespace lockstep::simulation
