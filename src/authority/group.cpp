#include "authority/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace lockstep::authority {
namespace {

/// Takes a number from the front of `text`. Texts that fmt would not write (leading zeros, signs) are refused, so that
/// equal groups have one text.
template <class Number>
bool take_number(std::string_view& text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const auto count = static_cast<size_t>(end - text.data());
  if (error != std::errc() || (count > 1 && text.front() == '0') || text.front() == '-') return false;
  for (const char c : text.substr(0, count)) {
    if (c >= 'A' && c <= 'F') return false;
  }
  text.remove_prefix(count);
  return true;
}

bool take_mark(std::string_view& text, char mark) {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_seat(std::string_view& text, Seat& seat) {
  return take_number(text, 10, seat.member) && take_mark(text, ':') && take_number(text, 16, seat.incarnation);
}

}  // namespace

const Seat* seat_of(const Group& group, int member) {
  const auto found = std::lower_bound(group.seats.begin(), group.seats.end(), member,
                                      [](const Seat& seat, int number) { return seat.member < number; });
  return found != group.seats.end() && found->member == member ? &*found : nullptr;
}

std::string text_of(const Group& group) {
  std::string text = fmt::format("{} {:x} ", group.number, group.id);
  if (group.seats.empty()) text += '-';
  for (size_t i = 0; i < group.seats.size(); ++i) {
    text += fmt::format("{}{}:{:x}", i == 0 ? "" : ",", group.seats[i].member, group.seats[i].incarnation);
  }
  return text;
}

std::optional<Group> parse_group(std::string_view text) {
  Group group;
  if (!take_number(text, 10, group.number) || !take_mark(text, ' ')) return std::nullopt;
  if (!take_number(text, 16, group.id) || !take_mark(text, ' ')) return std::nullopt;
  if (text == "-") return group;
  std::vector<Seat> seats;
  do {
    Seat seat;
    const int least = seats.empty() ? 0 : seats.back().member + 1;
    if (!take_seat(text, seat) || seat.member < least || seat.member >= kMostMembers) return std::nullopt;
    seats.push_back(seat);
  } while (take_mark(text, ','));
  if (!text.empty()) return std::nullopt;
  group.seats = std::move(seats);
  return group;
}

}  // namespace lockstep::authority
