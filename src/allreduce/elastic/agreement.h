// What members say to each other to agree on a group, as plain values (proto/allreduce.proto on the wire). assembly.h
// has the rules.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "allreduce/membership.h"

namespace lockstep::allreduce::elastic {

enum class MemberPhase : uint8_t {
  starting,    ///< not ready to train yet
  forming,     ///< wants to be in the next group
  connecting,  ///< the group is decided
  running,
  closing,  ///< training is over; what is left is to write it down
  ended
};
constexpr uint32_t kMemberPhases = 6;

/// A process of a member.
struct Seat {
  int member = 0;
  uint64_t incarnation = 0;

  friend bool operator==(const Seat&, const Seat&) = default;
};

struct Group {
  uint64_t number = 0;  ///< 0: none
  uint64_t id = 0;      ///< of this group alone: two parts of a broken network may use a number twice
  std::vector<Seat> seats;

  friend bool operator==(const Group&, const Group&) = default;
};

struct MemberStatus {
  uint64_t incarnation = 0;
  MemberPhase phase = MemberPhase::starting;
  bool whole = true;  ///< as in Standing
  bool live = false;
  uint64_t step = 0;
  uint64_t seen = 0;         ///< the highest number of a group that it has heard of
  uint64_t left = 0;         ///< of groups up to this number it will be no part (any more)
  bool knows_end = false;    ///< it has heard that everything is written
  bool interrupted = false;  ///< a user has ended it, or another one of its group
  Group group;               ///< the latest that it was connected in
  std::vector<int> reach;    ///< whom it has a connection with, ascending

  friend bool operator==(const MemberStatus&, const MemberStatus&) = default;
};

struct Proposal {
  uint64_t number = 0;
  std::vector<Seat> seats;
};

struct Acceptance {
  uint64_t number = 0;
  std::string address;  ///< for the engine
  Standing standing;
  uint64_t lineage = 0;  ///< id of the group whose state it holds; 0: of none
};

/// From a member: it does not take part; from the proposer: it gives the proposal up.
struct Refusal {
  uint64_t number = 0;
};

struct Decision {
  Group group;
  std::vector<std::string> addresses;  ///< by rank
  int source = 0;                      ///< rank
  bool transfer = true;
  Standing standing;
  std::vector<int> holders;  ///< ranks that have that state already, besides the source
};

using Message = std::variant<MemberStatus, Proposal, Acceptance, Refusal, Decision>;

}  // namespace lockstep::allreduce::elastic
