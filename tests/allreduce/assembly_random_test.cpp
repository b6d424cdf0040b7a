// Thousands of histories of members that start, form, train, die, are cut off and return, with delayed messages. In any
// order: no member is in two groups of one number, all members of a group know the same, and once all can reach each
// other and want to train, they form one group.
#include "allreduce/assembly_support.h"

namespace lockstep::allreduce::elastic::testing {
namespace {

class History {
 public:
  explicit History(uint64_t seed)
      : random_(seed), split_(seed % 3 == 0), world_(2 + static_cast<int>(seed % 4), rules(seed)) {
    world_.on_collect = [this](int member) { look(member); };
    for (int i = 0; i < world_.count(); ++i) world_.start(i);
  }

  void play() {
    for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
      disturb();
      for (size_t n = below(6); n > 0; --n) world_.deliver([this](size_t count) { return below(count); });
      for (int member = 0; member < world_.count(); ++member) {
        if (below(3) > 0) work(member);
      }
      if (below(4) == 0) world_.pass_without_settling(0.1 * static_cast<double>(below(40)));
    }
    calm();
  }

 private:
  static AssemblyRules rules(uint64_t seed) {
    AssemblyRules rules;
    rules.allow_split = seed % 3 == 0;
    if (seed % 3 == 1) rules.authority = "the register";
    rules.start_wait = 5;
    rules.patience = 1e9;
    return rules;
  }
  size_t below(size_t count) { return random_() % count; }
  int anyone() { return static_cast<int>(below(static_cast<size_t>(world_.count()))); }

  void disturb() {
    const int a = anyone();
    const int b = anyone();
    switch (below(14)) {
      case 0:
        if (world_.at(a).assembly) world_.kill(a, below(2) == 0);
        break;
      case 1:
      case 2:
        if (!world_.at(a).assembly) world_.start(a);
        break;
      case 3:
        if (a != b) world_.sever(a, b);
        break;
      case 4:
        if (a != b && below(3) == 0) world_.cut(a, b);
        break;
      case 5:
      case 6:
        if (a != b) world_.heal(a, b);
        break;
      case 7:
        world_.away = below(3) == 0;
        world_.loses = below(3) == 0;
        break;
      default:
        train(a);
    }
  }

  /// Acts like the exchange: steps while the group stands, forms when it does not or a new member waits.
  void train(int member) {
    if (!world_.at(member).assembly) return;
    Assembly& assembly = world_.assembly(member);
    if (assembly.phase() == MemberPhase::starting) return world_.form(member);
    if (assembly.phase() != MemberPhase::running) return;
    const int leader = assembly.group().seats.front().member;
    const bool regroup = world_.at(leader).assembly && world_.assembly(leader).wants_regroup();
    if (!assembly.broken().empty() || regroup) return world_.form(member);
    world_.step(member);
  }
  void work(int member) { world_.work(member); }

  /// Groups all of whose members are in them, and so can make a step.
  size_t able_groups() {
    std::set<uint64_t> able;
    for (int member = 0; member < world_.count(); ++member) {
      if (!world_.at(member).assembly || world_.assembly(member).phase() != MemberPhase::running) continue;
      const Group& group = world_.assembly(member).group();
      const bool whole = std::all_of(group.seats.begin(), group.seats.end(), [&](const Seat& seat) {
        const World::Member& other = world_.at(seat.member);
        return other.assembly && other.incarnation == seat.incarnation &&
               other.assembly->phase() == MemberPhase::running && other.assembly->group().id == group.id;
      });
      if (whole) able.insert(group.id);
    }
    return able.size();
  }

  void look(int member) {
    if (!world_.at(member).assembly) return;
    const Assembly& assembly = *world_.at(member).assembly;
    if (assembly.phase() != MemberPhase::running) return;
    ASSERT_TRUE(split_ || able_groups() <= 1) << "two groups can train";
    const Group& group = assembly.group();
    const Seat seat{member, world_.at(member).incarnation};
    const auto [entry, fresh] = numbers_.emplace(std::pair(seat.incarnation, group.number), group.id);
    ASSERT_EQ(entry->second, group.id) << "a member in two groups of number " << group.number;
    const auto [told, first] = groups_.emplace(group.id, group);
    ASSERT_EQ(told->second, group) << "two groups of one id";
    ASSERT_NE(std::find(group.seats.begin(), group.seats.end(), seat), group.seats.end());
    const auto& decisions = world_.formed[group.id];
    for (const auto& [other, decision] : decisions) {
      const Decision& mine = decisions.at(member);
      ASSERT_EQ(decision.source, mine.source);
      ASSERT_EQ(decision.transfer, mine.transfer);
      ASSERT_EQ(decision.standing.step, mine.standing.step);
      ASSERT_EQ(decision.addresses, mine.addresses);
    }
  }

  /// The network heals and all members are present: they end up in one group.
  void calm() {
    if (::testing::Test::HasFailure()) return;
    world_.away = world_.loses = false;
    for (int a = 0; a < world_.count(); ++a) {
      if (!world_.at(a).assembly) world_.start(a);
    }
    for (int a = 0; a < world_.count(); ++a) {
      for (int b = 0; b < a; ++b) world_.heal(a, b);
    }
    for (int i = 0; i < 200; ++i) {
      world_.pass(0.5);
      if (whole()) return;
      for (int member = 0; member < world_.count(); ++member) train(member);
    }
    std::string states;
    for (int i = 0; i < world_.count(); ++i) {
      const MemberStatus status = world_.assembly(i).status();
      states += "\nworker:" + std::to_string(i) + " phase " + std::to_string(static_cast<int>(status.phase)) +
                " group " + std::to_string(status.group.number) + " left " + std::to_string(status.left) + " " +
                world_.assembly(i).broken();
      for (const LogLine& line : world_.at(i).log_lines) states += "\n    " + line.text;
    }
    FAIL() << "no group of all:" << states;
  }
  bool whole() {
    for (int i = 0; i < world_.count(); ++i) {
      if (!world_.running(i) || static_cast<int>(world_.members_of(i).size()) != world_.count()) return false;
      if (world_.assembly(i).group().id != world_.assembly(0).group().id) return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  bool split_;
  World world_;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> numbers_;
  std::map<uint64_t, Group> groups_;
};

TEST(AnyHistory, LeavesEveryoneAgreedAndEndsInOneGroup) {
  for (uint64_t seed = 0; seed < 2000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    History(seed).play();
  }
}

}  // namespace
}  // namespace lockstep::allreduce::elastic::testing
