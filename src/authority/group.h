// Groups of members that may train, numbered in the order of their start, and their text form: what an authority's
// register holds. Plain values; free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::authority {

/// One process of a member.
struct Seat {
  int member = 0;
  uint64_t incarnation = 0;

  friend bool operator==(const Seat&, const Seat&) = default;
};

struct Group {
  uint64_t number = 0;      ///< 0: none has been yet
  uint64_t id = 0;          ///< unique: two proposals of one number differ in it
  std::vector<Seat> seats;  ///< by member, ascending

  friend bool operator==(const Group&, const Group&) = default;
};

/// Most members of a group, and largest number of a member plus one.
constexpr int kMostMembers = 100'000;

/// Returns the seat of that member; null if it has none.
const Seat* seat_of(const Group& group, int member);

/// Returns the group as one line: "7 3f2ab4c1d2e3f405 0:1a2b,2:99ff", with id and incarnations in hexadecimal. Equal
/// groups have equal texts.
std::string text_of(const Group& group);
/// Parses such a line; nothing if it is not one.
std::optional<Group> parse_group(std::string_view text);

}  // namespace lockstep::authority
