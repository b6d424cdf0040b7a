#include "simulation/elastic_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace lockstep::simulation {
namespace {

using allreduce::Standing;
using allreduce::elastic::AssemblyRules;
using allreduce::elastic::MemberPhase;
using allreduce::elastic::Seat;

constexpr double kConnect = 30;
constexpr double kFarewell = 20;
constexpr double kShortFarewell = 2;
constexpr double kLook = 0.1;
constexpr double kNamed = 30;        ///< seconds after which a wait has a reason
constexpr double kLauncherAsks = 5;  ///< seconds after the end in which a launcher asks others to end
constexpr size_t kKeep = 3;

const char* const kStages[] = {"starts",
                               "forms a group",
                               "connects",
                               "receives the state",
                               "computes",
                               "exchanges",
                               "saves",
                               "waits for the leader's results",
                               "writes the results",
                               "tells all of the end"};

std::string file_of(uint64_t step) { return fmt::format("step-{:09}", step); }

/// A checkpoint's text: "STATE GROUP ." with the dot as proof that it is whole.
std::optional<std::pair<uint64_t, uint64_t>> parse_checkpoint(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos || !text.ends_with(" .")) return std::nullopt;
  std::pair<uint64_t, uint64_t> found;
  std::from_chars(text.data(), text.data() + space, found.first);
  std::from_chars(text.data() + space + 1, text.data() + text.size() - 2, found.second);
  return found;
}

}  // namespace

ElasticMember::ElasticMember(World& world, Process me, ElasticJudge& judge, Disk* shared)
    : world_(world), me_(me), judge_(judge), shared_(shared), peers_(static_cast<size_t>(judge.setup().members)) {}

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
  for (int member = 0; member < me_; ++member) try_peer(member);
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

// Checkpoints.

/// Returns the number of the group that wrote it.
uint64_t ElasticMember::read_checkpoint() {
  const std::vector<std::string> names = disk().names();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!name->starts_with("step-")) continue;
    const auto kept = parse_checkpoint(disk().read(*name).value_or(""));
    if (!kept) continue;
    state_ = kept->first;
    here_.step = judge_.state(state_).step;
    here_.examples = static_cast<uint64_t>(judge_.state(state_).examples);
    here_.data = judge_.state(state_).data;
    return kept->second;
  }
  return 0;
}

void ElasticMember::begin_saving(bool summary) {
  enter_stage(summary ? Stage::finishing : Stage::saving);
  until_ = now() + world_.disk(me_).write_delay;
  written_ = false;
}

/// Writes, asks the fence, and renames into place.
bool ElasticMember::work_saving() {
  if (now() < until_) return false;
  if (!std::exchange(written_, true)) {
    assembly_->begin_check(now());
    return true;
  }
  const std::optional<std::string> why = assembly_->checked(now());
  if (!why) return false;
  const bool results = stage_ == Stage::finishing;
  if (why->empty()) {
    const uint64_t group = assembly_->group().number;
    const std::string name = file_of(here_.step);
    disk().write(name, fmt::format("{} {} .", state_, group));
    disk().sync(name);
    std::vector<std::string> all = disk().names();
    std::erase_if(all, [](const std::string& file) { return !file.starts_with("step-"); });
    for (size_t i = 0; i + kKeep < all.size(); ++i) disk().remove(all[i]);
    if (results) disk().write("summary", std::to_string(here_.step));
    judge_.saved(me_, state_, group, results);
    world_.note(me_, [&] { return fmt::format("keeps step {}{}", here_.step, results ? " as the result" : ""); });
  } else {
    world_.note(me_, [&] { return fmt::format("does not keep step {}: {}", here_.step, *why); });
  }
  if (!results) {
    after_step(regroup_after_, false);
    return true;
  }
  assembly_->end(now());
  enter_stage(Stage::telling);
  until_ = now() + kFarewell;
  return true;
}

// The training thread.

void ElasticMember::enter_stage(Stage stage) { stage_ = stage; }

/// Passes on what the Assembly wants, and works until it has to wait.
void ElasticMember::pump() {
  for (int i = 0; i < 1000; ++i) {
    for (const allreduce::elastic::LogLine& line : assembly_->take_log_lines()) {
      world_.note(me_, [&] { return "says: " + line.text; });
    }
    if (const auto question = assembly_->take_question()) ask_register(*question);
    for (allreduce::elastic::Send& out : assembly_->take_sends()) {
      auto* const status = std::get_if<allreduce::elastic::MemberStatus>(&out.message);
      if (status != nullptr && judge_.setup().relayed) status->reach.clear();
      if (out.to >= 0) {
        send_to(out.to, std::move(out.message));
      } else if (status == nullptr || last_status_ != *status) {
        if (status != nullptr) last_status_ = *status;
        send_all(out.message);
      }
    }
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
  enter_stage(Stage::forming);
  until_ = now() + kNamed;
  assembly_->form(here_, now());
}

bool ElasticMember::work_forming() {
  if (!assembly_->failure().empty()) {
    if (assembly_->over()) {
      leave();
    } else {
      world_.fail(world_.name(me_) + " gives up: " + assembly_->failure());
    }
    return false;
  }
  if (judge_.ended() && world_.now() > judge_.ended_at() + kFarewell + kLauncherAsks) {
    leave();
    return false;
  }
  if (now() > until_ && assembly_->awaited().empty()) world_.fail(world_.name(me_) + " waits without a reason");
  if (disk().read("summary") && shared_ != nullptr) assembly_->found_ending(here_.step, false, now());
  if (const auto wanted = assembly_->take_preparation()) {
    assembly_->prepared(wanted->number, "address of " + world_.name(me_), now());
    return true;
  }
  if (auto decision = assembly_->take_decision()) {
    decision_ = std::move(decision);
    enter_stage(Stage::connecting);
    until_ = now() + kConnect;
    for (const Seat& seat : decision_->group.seats) send_to(seat.member, EngineHello{decision_->group.id});
    return true;
  }
  return false;
}

bool ElasticMember::work_connecting() {
  const std::string why = assembly_->why_give_up();
  if (!why.empty() || now() > until_) {
    enter_stage(Stage::forming);
    until_ = now() + kNamed;
    assembly_->not_connected(why.empty() ? "no connection within 30 s" : why, now());
    return true;
  }
  const std::set<int>& heard = engines_[decision_->group.id];
  for (const Seat& seat : decision_->group.seats) {
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
  if (source) {
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
  const auto found = states_.find(group);
  if (found == states_.end()) {
    if (assembly_->broken().empty()) return false;
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
  begin_step();
  return true;
}

void ElasticMember::begin_step() {
  enter_stage(Stage::computing);
  until_ = now() + world_.random().between(1, 1.5) * judge_.setup().compute;
}

bool ElasticMember::leads() const { return assembly_->group().seats.front().member == me_; }

void ElasticMember::send_note() {
  StepNote note{assembly_->group().id, state_, false, leads() && assembly_->wants_regroup()};
  note.stop = plan_.round(rounds_).pass >= judge_.setup().passes;
  notes_[{note.group, note.state}][me_] = note;
  for (const Seat& seat : assembly_->group().seats) send_to(seat.member, note);
  enter_stage(Stage::exchanging);
}

bool ElasticMember::work_exchanging() {
  const std::map<int, StepNote>& notes = notes_[{assembly_->group().id, state_}];
  if (notes.size() < assembly_->group().seats.size()) {
    if (assembly_->broken().empty()) return false;
    form();
    return true;
  }
  bool stop = false;
  bool regroup = false;
  for (const auto& [member, note] : notes) {
    stop = stop || note.stop;
    regroup = regroup || note.regroup;
  }
  if (!stop) {
    state_ = judge_.applies(me_, assembly_->group(), state_, plan_, rounds_);
    ++rounds_;
    ++here_.step;
    here_.examples = static_cast<uint64_t>(judge_.state(state_).examples);
    world_.note(me_, [&] { return fmt::format("applies step {} of group {}", here_.step, assembly_->group().number); });
    if (leads() && here_.step % judge_.setup().checkpoint_every == 0) {
      regroup_after_ = regroup;
      begin_saving(false);
      return true;
    }
  }
  after_step(regroup, stop);
  return true;
}

void ElasticMember::after_step(bool regroup, bool stop) {
  if (stop) {
    assembly_->close(now(), false);
    enter_stage(Stage::closing);
    until_ = 0;
  } else if (regroup) {
    form();
  } else {
    begin_step();
  }
}

bool ElasticMember::work_closing() {
  if (assembly_->knows_end()) {
    enter_stage(Stage::telling);
    until_ = now() + kShortFarewell;
    return true;
  }
  const int leader = assembly_->leader(now());
  if (leader >= 0 && leader != me_) return false;
  begin_saving(true);
  return true;
}

bool ElasticMember::work_telling() {
  if (assembly_->may_leave(now()) || now() > until_) leave();
  return false;
}

void ElasticMember::leave() {
  judge_.leaves(me_);
  world_.exit(me_);
}

}  // namespace lockstep::simulation
