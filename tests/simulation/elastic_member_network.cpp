// Connections of a member, as those of the mesh: it connects to members with lower numbers, accepts those with higher
// ones, and finds lost ones by their silence.
#include <fmt/format.h>

#include <algorithm>

#include "simulation/elastic_member.h"

namespace lockstep::simulation {
namespace {

using allreduce::elastic::MemberStatus;

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
    answer = cell_.swap(ask->swap->expected, ask->swap->next);
    world_.disk(me_).write("register", authority::text_of(cell_.group()));
    world_.disk(me_).sync("register");
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
  if (const auto* greeting = std::get_if<Greeting>(&got)) {
    if (const auto found = strangers_.find(link); found != strangers_.end()) {
      const int member = found->second.from;
      strangers_.erase(found);
      send(link, Greeting{incarnation_});
      enter(member, link, greeting->incarnation);
      return pump();
    }
    for (int member = 0; member < me_; ++member) {
      if (peer(member).attempt == link) enter(member, link, greeting->incarnation);
    }
    return pump();
  }
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
  pump();
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
    assembly_->peer_confirmed_dead(member, now());
    return pump();
  }
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
