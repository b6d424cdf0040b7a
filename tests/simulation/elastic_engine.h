// How the members of a large group exchange gradients in a simulation: each has a connection to the first one, which
// adds up all parts of a step and sends the sum to all, or to none if a connection breaks. Owned by a member.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "simulation/elastic_messages.h"
#include "simulation/world.h"

namespace lockstep::simulation {

class ElasticEngine {
 public:
  ElasticEngine(World& world, Process me) : world_(world), me_(me) {}

  /// Begins to connect a group.
  void begin(const allreduce::elastic::Group& group);
  [[nodiscard]] bool ready() const { return ready_; }
  /// Returns why the group's connections are broken; empty: they are not.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  void share(const StateSent& sent);
  [[nodiscard]] std::optional<uint64_t> state() const { return state_; }
  void add(const StepNote& note) { take(me_, note); }
  /// The sum of all parts of the step from that state, if it is here.
  [[nodiscard]] std::optional<StepNote> sum(uint64_t state) const;
  void leave();

  // Events. Each returns false if the connection is none of the engine's.
  bool connected(Link link);
  bool received(Link link, const ElasticMessage& message);
  bool closed(Link link);
  /// A member of that group connects.
  void greeted(int member, Link link, uint64_t group);

 private:
  [[nodiscard]] bool leads() const { return group_ && group_->seats.front().member == me_; }
  void send(Link link, ElasticMessage message);
  void send_all(const ElasticMessage& message);
  void take(int member, const StepNote& note);
  void look_if_ready();
  void abort(const std::string& why);

  World& world_;
  const Process me_;
  std::optional<allreduce::elastic::Group> group_;
  Link up_ = -1;                                          ///< to the first member
  std::map<uint64_t, std::map<int, Link>> members_;       ///< by group: the connections of the others
  std::map<Link, std::pair<uint64_t, int>> connections_;  ///< the same: group and member
  bool ready_ = false;
  std::string broken_;
  std::optional<uint64_t> state_;
  std::map<uint64_t, std::map<int, StepNote>> parts_;  ///< by state
  std::map<uint64_t, StepNote> sums_;
};

}  // namespace lockstep::simulation
