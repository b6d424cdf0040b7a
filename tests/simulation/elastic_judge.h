// What must hold in every history of an elastic group: an observer that sees all members at once. It knows each state
// that training has reached, as a chain of steps, with the examples that are in it. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allreduce/elastic/assembly.h"
#include "data/plan.h"
#include "simulation/world.h"

namespace lockstep::simulation {

/// What a simulated cluster is, the same for all its members.
struct ElasticSetup {
  int members = 3;
  bool authority = false;  ///< a register decides: the process after the last member
  bool allow_split = false;
  bool relayed = false;      ///< members pass on each other's messages, as in large clusters
  bool shared_disk = false;  ///< all members see one folder
  int64_t examples = 60;     ///< of a pass; at most 64
  int64_t batch = 3;         ///< per member
  int64_t passes = 6;
  double start_wait = 10;
  double compute = 0.2;  ///< seconds of a step, at least
  uint64_t checkpoint_every = 8;
};

/// A state that training has reached.
struct ElasticState {
  uint64_t id = 0;
  uint64_t parent = 0;
  uint64_t step = 0;
  std::vector<uint64_t> seen;  ///< by pass: the examples that are in it, as bits
  data::Remainder data = {};   ///< those that are not
  int64_t examples = 0;
};

class ElasticJudge {
 public:
  ElasticJudge(World& world, ElasticSetup setup);

  [[nodiscard]] const ElasticState& state(uint64_t id) const { return states_.at(id); }
  [[nodiscard]] const ElasticSetup& setup() const { return setup_; }
  static constexpr uint64_t kInitial = 1;

  // What members do.
  void lives(Process process, uint64_t incarnation, const allreduce::elastic::Assembly* assembly);
  void dies(Process process);
  /// A member's group is connected. `mine`: the state that it has; `source`: the one that all go on from.
  void connected(Process process, const allreduce::elastic::Group& group, uint64_t source, const uint64_t* mine);
  /// A member applies a round of its plan to a state. Returns the state after it.
  uint64_t applies(Process process, const allreduce::elastic::Group& group, uint64_t before, const data::Plan& plan,
                   int64_t round);
  /// `interrupted`: a user ended training at that state.
  void saved(Process process, uint64_t state, uint64_t group, bool summary, bool interrupted);
  /// A user interrupts a process.
  void interrupts();
  /// Time of the first interrupt; -1: none.
  [[nodiscard]] double interrupted_at() const { return interrupted_; }
  /// A process ends by itself.
  void leaves(Process process) { left_.insert(process); }
  [[nodiscard]] bool all_left() const { return left_.size() == members_.size(); }
  /// Sizes of groups that have made a step.
  [[nodiscard]] const std::set<size_t>& sizes() const { return sizes_; }
  /// The register holds a group.
  void registered(const allreduce::elastic::Group& group);
  /// Looks at all members; after every event.
  void look();
  /// Looks at what was kept in the end.
  void look_at_end();
  [[nodiscard]] bool ended() const { return ended_ >= 0; }
  [[nodiscard]] double ended_at() const { return ended_; }

 private:
  struct Member {
    uint64_t incarnation = 0;
    const allreduce::elastic::Assembly* assembly = nullptr;
    uint64_t number = 0;  ///< of its latest group, in this life
    uint64_t state = 0;   ///< the one that it has trained to in that group
  };
  /// A state that all members of a group have: it must not get lost while enough of them live.
  struct Agreed {
    uint64_t state = 0;
    allreduce::elastic::Group group;
  };
  [[nodiscard]] bool contains(uint64_t state, uint64_t ancestor) const;
  [[nodiscard]] bool lives(const allreduce::elastic::Seat& seat) const;
  /// Returns the latest number of a group from which a member of this one has that state; 0: none has it from a group.
  [[nodiscard]] uint64_t group_of_holders(const allreduce::elastic::Group& group, uint64_t state) const;
  /// True if every group that may follow has a member that lives and has that state.
  [[nodiscard]] bool must_be_kept(const Agreed& agreed) const;
  void fail(const std::string& what) { world_.fail(what); }

  World& world_;
  const ElasticSetup setup_;
  std::vector<Member> members_;
  std::unordered_map<uint64_t, ElasticState> states_;
  std::map<uint64_t, allreduce::elastic::Group> groups_;           ///< by id
  std::map<uint64_t, std::map<uint64_t, std::set<int>>> applied_;  ///< by group id and state: who has applied it
  Agreed agreed_;
  std::map<uint64_t, std::string> loses_;  ///< by id of groups that began without the agreed state
  allreduce::elastic::Group registered_;
  uint64_t highest_ = 0;  ///< number of a group that has made a step
  uint64_t final_ = 0;    ///< state of the latest summary
  double ended_ = -1;
  double interrupted_ = -1;
  uint64_t deaths_ = 0;  ///< of processes that did not end by themselves
  uint64_t kept_ = 0;    ///< highest step that a disk has held
  std::set<Process> left_;
  std::set<size_t> sizes_;
};

}  // namespace lockstep::simulation
