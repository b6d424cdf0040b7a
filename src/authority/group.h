// Groups of members that may train, numbered in the order of their start, and their text form: what an authority's
// register holds. Plain values; free functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::authority {

/// One process of a member.
struct Seat {
  int member = 0;
  uint64_t incarnation = 0;

  friend bool operator==(const Seat&, const Seat&) = default;
};

/// A list of seats. Copies share it, as it is in every message about a group.
class Seats {
 public:
  Seats() = default;
  Seats(std::vector<Seat> seats) : seats_(std::make_shared<const std::vector<Seat>>(std::move(seats))) {}
  Seats(std::initializer_list<Seat> seats) : Seats(std::vector<Seat>(seats)) {}

  [[nodiscard]] auto begin() const { return list().begin(); }
  [[nodiscard]] auto end() const { return list().end(); }
  [[nodiscard]] size_t size() const { return list().size(); }
  [[nodiscard]] bool empty() const { return list().empty(); }
  [[nodiscard]] const Seat& front() const { return list().front(); }
  const Seat& operator[](size_t i) const { return list()[i]; }

  friend bool operator==(const Seats& a, const Seats& b) { return a.seats_ == b.seats_ || a.list() == b.list(); }

 private:
  [[nodiscard]] const std::vector<Seat>& list() const {
    static const std::vector<Seat> none;
    return seats_ ? *seats_ : none;
  }
  std::shared_ptr<const std::vector<Seat>> seats_;
};

struct Group {
  uint64_t number = 0;  ///< 0: none has been yet
  uint64_t id = 0;      ///< unique: two proposals of one number differ in it
  Seats seats;          ///< by member, ascending

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
