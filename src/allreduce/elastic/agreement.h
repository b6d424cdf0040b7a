// Messages by which members agree on a group, as plain values (proto/allreduce.proto on the wire). The rules are in
// assembly.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "allreduce/membership.h"
#include "authority/group.h"

namespace lockstep::allreduce::elastic {

enum class MemberPhase : uint8_t {
  starting,    ///< not ready to train yet
  forming,     ///< wants to be in the next group
  connecting,  ///< the group is decided
  running,
  closing,  ///< training is over; the leader writes the results
  ended
};
constexpr uint32_t kMemberPhases = 6;

/// Two parts of a broken network may use the same number for their groups, never the same id.
using authority::Group;
using authority::Seat;
using authority::Seats;

struct MemberStatus {
  uint64_t incarnation = 0;
  MemberPhase phase = MemberPhase::starting;
  bool whole = true;  ///< as in Standing
  bool earlier = false;
  bool live = false;
  uint64_t step = 0;
  uint64_t seen = 0;         ///< highest group number that it knows
  uint64_t left = 0;         ///< it will not be in groups up to this number (any more)
  bool knows_end = false;    ///< it knows that everything is written
  bool interrupted = false;  ///< a user interrupted it, or another member of its group
  Group group;               ///< the latest group in which it was connected
  std::vector<int> reach;    ///< members that it is connected to, ascending; left out if members pass on messages

  friend bool operator==(const MemberStatus&, const MemberStatus&) = default;
};

struct Proposal {
  uint64_t number = 0;
  Seats seats;
};

struct Acceptance {
  uint64_t number = 0;
  std::string address;  ///< address for the engine
  Standing standing;
  uint64_t lineage = 0;  ///< id of the group whose state it holds; 0: none
};

/// From a member: it does not take part. From the proposer: it withdraws the proposal.
struct Refusal {
  uint64_t number = 0;
};

struct Decision {
  Group group;
  std::vector<std::string> addresses;  ///< addresses by rank
  int source = 0;                      ///< rank of the member with the state
  bool transfer = true;
  Standing standing;
  std::vector<int> holders;  ///< other ranks that already have that state
};

using Message = std::variant<MemberStatus, Proposal, Acceptance, Refusal, Decision>;

}  // namespace lockstep::allreduce::elastic
