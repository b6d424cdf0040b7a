#include "simulation/elastic_member.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::simulation {
namespace {

using allreduce::Standing;
using allreduce::elastic::AssemblyRules;
using allreduce::elastic::MemberPhase;
using allreduce::elastic::Seat;

constexpr double kConnect = 30;
constexpr double kLook = 0.1;
constexpr double kNamed = 30;           ///< seconds after which a wait has a reason
constexpr double kEngineDeadline = 60;  ///< seconds until an engine finds out that a connection is dead
constexpr double kLauncherAsks = 25;    ///< seconds after the end in which a launcher asks others to end

const char* const kStages[] = {"starts",
                               "forms a group",
                               "connects",
                               "receives the state",
                               "computes",
                               "exchanges",
                               "saves",
                               "waits for the leader's results",
                               "writes the results",
                               "tells all of the end",
                               "was interrupted and tells the others"};

}  // namespace

ElasticMember::ElasticMember(World& world, Process me, ElasticJudge& judge)
    : world_(world), me_(me), judge_(judge), peers_(static_cast<size_t>(judge.setup().members)), engine_(world, me) {}

ElasticMember::~ElasticMember() { judge_.dies(me_); }

void ElasticMember::start() {
  incarnation_ = world_.random().next() | 1U;
  AssemblyRules rules;
  rules.me = me_;
  rules.members = members();
  rules.incarnation = incarnation_;
  rules.allow_split = judge_.setup().allow_split;
  if (judge_.setup().authority) rules.authority = "the register";
  rules.relayed = judge_.setup().relayed;
  rules.start_wait = judge_.setup().start_wait;
  rules.patience = 1e9;
  for (int member = 0; member < members(); ++member) {
    rules.names.push_back("worker:" + std::to_string(member));
    rules.addresses.push_back("h" + std::to_string(member) + ":1");
  }
  rules.latest = read_checkpoint();
  assembly_ = std::make_unique<allreduce::elastic::Assembly>(rules);
  judge_.lives(me_, incarnation_, assembly_.get());
  ticked_ = now();
  if (relayed()) {
    tree_ = std::make_unique<ElasticTree>(
        world_, me_, members(), incarnation_,
        ElasticTree::Owner{[this](const allreduce::elastic::News& news) { tell(news); },
                           [this](int member, const std::string& why) { assembly_->peer_unreachable(member, why); },
                           [this](int member) {
                             if (!std::exchange(peer(member).probed, true)) probe(member);
                           }});
    tree_->relay().set_status(assembly_->status());
    tree_->seek();
  }
  for (int member = 0; member < me_ && !relayed(); ++member) try_peer(member);
  tick();
  world_.after(me_, world_.random().between(0.05, 0.5), [this] {
    form();
    pump();
  });
}

std::string ElasticMember::state() const {
  return fmt::format("{} {} at step {} in group {} ({}){}{}", world_.name(me_), kStages[static_cast<size_t>(stage_)],
                     here_.step, assembly_->group().number, assembly_->broken(),
                     assembly_->awaited().empty() ? "" : ", waits for " + assembly_->awaited(),
                     assembly_->failure().empty() ? "" : ", failed: " + assembly_->failure());
}

// The training thread.

void ElasticMember::enter_stage(Stage stage) {
  stage_ = stage;
  since_ = now();
}

/// Passes on what the Assembly wants, and works until it has to wait.
void ElasticMember::pump() {
  for (int i = 0; i < 1000; ++i) {
    for (const allreduce::elastic::LogLine& line : assembly_->take_log_lines()) {
      world_.note(me_, [&] { return "says: " + line.text; });
    }
    if (const auto question = assembly_->take_question()) ask_register(*question);
    send_out();
    if (!work()) break;
    if (!world_.alive(me_)) return;
  }
  if (timer_ || stage_ == Stage::starting) return;
  // The training thread looks again after a while, as it does while it waits.
  const double wait = until_ > now() ? std::min(until_ - now(), kLook) : kLook;
  const bool idle = stage_ == Stage::forming || stage_ == Stage::exchanging || stage_ == Stage::receiving;
  timer_ = true;
  world_.after(me_, idle ? 5 * kLook : std::max(wait, 0.001), [this] {
    timer_ = false;
    pump();
  });
}

bool ElasticMember::work() {
  switch (stage_) {
    case Stage::starting:
      return false;
    case Stage::forming:
      return work_forming();
    case Stage::connecting:
      return work_connecting();
    case Stage::receiving:
      return work_receiving();
    case Stage::computing:
      if (now() < until_) return false;
      send_note();
      return true;
    case Stage::exchanging:
      return work_exchanging();
    case Stage::saving:
    case Stage::finishing:
      return work_saving();
    case Stage::closing:
      return work_closing();
    case Stage::telling:
      return work_telling();
    case Stage::parting:
      return work_parting();
  }
  return false;
}

Standing ElasticMember::standing() const {
  Standing standing = here_;
  if (in_group_) {
    const std::vector<int64_t> done(static_cast<size_t>(plan_.shard.count), rounds_);
    standing.data = data::unapplied(plan_, done);
  }
  return standing;
}

void ElasticMember::form() {
  here_ = standing();
  in_group_ = false;
  notes_.clear();
  decision_.reset();
  engine_.leave();
  enter_stage(Stage::forming);
  until_ = now() + kNamed;
  assembly_->form(here_, now());
}

bool ElasticMember::work_forming() {
  if (interrupted_) {
    part();
    return true;
  }
  if (!assembly_->failure().empty()) {
    if (assembly_->over()) {
      leave();
    } else {
      world_.fail(world_.name(me_) + " gives up: " + assembly_->failure());
    }
    return false;
  }
  if (assembly_->interrupted()) {
    part();
    return true;
  }
  if (judge_.ended() && world_.now() > judge_.ended_at() + kLauncherAsks) {
    leave();
    return false;
  }
  // A scheduler that has interrupted one process ends those that still wait for others.
  if (judge_.interrupted_at() >= 0 && world_.now() > judge_.interrupted_at() + 4 * kLauncherAsks) interrupted_ = true;
  if (now() > until_ && assembly_->awaited().empty()) world_.fail(world_.name(me_) + " waits without a reason");
  if (judge_.setup().shared_disk) look_for_ending();
  if (const auto wanted = assembly_->take_preparation()) {
    assembly_->prepared(wanted->number, "address of " + world_.name(me_), now());
    return true;
  }
  if (auto decision = assembly_->take_decision()) {
    decision_ = std::move(decision);
    enter_stage(Stage::connecting);
    until_ = now() + kConnect;
    if (relayed()) {
      engine_.begin(decision_->group);
    } else {
      for (const Seat& seat : decision_->group.seats) send_to(seat.member, EngineHello{decision_->group.id});
    }
    return true;
  }
  return false;
}

bool ElasticMember::work_connecting() {
  std::string why = assembly_->why_give_up();
  if (why.empty() && relayed()) why = engine_.broken();
  if (!why.empty() || now() > until_ || interrupted_) {
    engine_.leave();
    enter_stage(Stage::forming);
    until_ = now() + kNamed;
    assembly_->not_connected(why.empty() ? "no connection within 30 s" : why, now());
    return true;
  }
  const std::set<int>& heard = engines_[decision_->group.id];
  if (relayed() && !engine_.ready()) return false;
  for (const Seat& seat : decision_->group.seats) {
    if (relayed()) break;
    if (seat.member != me_ && !heard.contains(seat.member)) return false;
  }
  adopt();
  return true;
}

void ElasticMember::adopt() {
  const allreduce::elastic::Decision decision = *std::exchange(decision_, std::nullopt);
  assembly_->connected(now());
  world_.note(me_, [&] { return assembly_->announced(); });
  int rank = 0;
  while (decision.group.seats[static_cast<size_t>(rank)].member != me_) ++rank;
  const bool holds = std::find(decision.holders.begin(), decision.holders.end(), rank) != decision.holders.end();
  const bool source = rank == decision.source;
  const bool receives = decision.transfer && !holds && !source;
  if (source && relayed()) engine_.share({decision.group.id, state_});
  if (source && !relayed()) {
    for (const Seat& seat : decision.group.seats) send_to(seat.member, StateSent{decision.group.id, state_});
  }
  had_state_ = here_.whole;
  before_ = here_;
  if (receives) here_.whole = here_.live = false;
  if (here_.step != decision.standing.step && !receives) world_.fail("a member holds another step than was decided");
  here_.step = decision.standing.step;
  here_.examples = decision.standing.examples;
  plan_ = {};
  plan_.id = decision.group.number;
  plan_.data = decision.standing.data;
  plan_.shard = {rank, static_cast<int>(decision.group.seats.size())};
  plan_.batch = judge_.setup().batch;
  plan_.examples = judge_.setup().examples;
  rounds_ = 0;
  in_group_ = true;
  enter_stage(Stage::receiving);
  if (!receives) states_[decision.group.id] = state_;
}

bool ElasticMember::work_receiving() {
  const uint64_t group = assembly_->group().id;
  if (relayed() && engine_.state()) states_.emplace(group, *engine_.state());
  const auto found = states_.find(group);
  if (found == states_.end()) {
    if (!group_fails()) return false;
    if (before_.whole && before_.live) {  // keeps the state that it has
      in_group_ = false;
      here_ = before_;
      here_.earlier = true;
    }
    form();
    return true;
  }
  judge_.connected(me_, assembly_->group(), found->second, had_state_ ? &state_ : nullptr);
  state_ = found->second;
  if (judge_.state(state_).step != here_.step) world_.fail("the state that was sent is another one than was decided");
  here_.whole = here_.live = true;
  here_.earlier = false;
  assembly_->received();
  begin_step();
  return true;
}

void ElasticMember::begin_step() {
  enter_stage(Stage::computing);
  until_ = now() + world_.random().between(1, 1.5) * judge_.setup().compute;
}

bool ElasticMember::leads() const { return assembly_->group().seats.front().member == me_; }

void ElasticMember::send_note() {
  StepNote note{assembly_->group().id, state_, false, interrupted_, leads() && assembly_->wants_regroup()};
  note.stop = interrupted_ || plan_.round(rounds_).pass >= judge_.setup().passes;
  enter_stage(Stage::exchanging);
  if (relayed()) return engine_.add(note);
  notes_[{note.group, note.state}][me_] = note;
  for (const Seat& seat : assembly_->group().seats) send_to(seat.member, note);
}

/// Returns what all members say about the step, once it is here.
std::optional<StepNote> ElasticMember::sum_of_step() const {
  const uint64_t group = assembly_->group().id;
  if (relayed()) return engine_.sum(state_);
  const auto found = notes_.find({group, state_});
  if (found == notes_.end() || found->second.size() < assembly_->group().seats.size()) return std::nullopt;
  StepNote sum{group, state_, false, false, false};
  for (const auto& [member, note] : found->second) {
    sum.stop = sum.stop || note.stop;
    sum.interrupted = sum.interrupted || note.interrupted;
    sum.regroup = sum.regroup || note.regroup;
  }
  return sum;
}

/// True if the group's step or state cannot arrive any more.
bool ElasticMember::group_fails() const {
  if (!assembly_->broken().empty()) return true;
  return relayed() && (!engine_.broken().empty() || now() - since_ > kEngineDeadline);
}

bool ElasticMember::work_exchanging() {
  const std::optional<StepNote> sum = sum_of_step();
  if (!sum) {
    if (!group_fails()) return false;
    form();
    return true;
  }
  by_user_ = sum->interrupted;
  if (!sum->stop) {
    state_ = judge_.applies(me_, assembly_->group(), state_, plan_, rounds_);
    ++rounds_;
    ++here_.step;
    here_.examples = static_cast<uint64_t>(judge_.state(state_).examples);
    world_.note(me_, [&] { return fmt::format("applies step {} of group {}", here_.step, assembly_->group().number); });
    if (leads() && here_.step % judge_.setup().checkpoint_every == 0) {
      regroup_after_ = sum->regroup;
      begin_saving(false);
      return true;
    }
  }
  after_step(sum->regroup, sum->stop);
  return true;
}

void ElasticMember::after_step(bool regroup, bool stop) {
  if (stop) {
    assembly_->close(now(), by_user_);
    enter_stage(Stage::closing);
    until_ = 0;
  } else if (regroup) {
    form();
  } else {
    begin_step();
  }
}

}  // namespace lockstep::simulation
