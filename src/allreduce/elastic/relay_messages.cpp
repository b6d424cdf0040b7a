#include "allreduce/elastic/relay_messages.h"

#include <fmt/format.h>

#include <set>

#include "base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr size_t kLongestReason = 500;

template <class Wire>
Wire parse_relayed(Kind kind, const std::string& bytes) {
  Wire message;
  if (!message.ParseFromString(bytes)) {
    throw DataError(fmt::format("damaged message in a frame of kind {}", static_cast<int>(kind)));
  }
  return message;
}

int checked_member(int member, int members) {
  if (member >= 0 && member < members) return member;
  throw DataError(fmt::format("member {} does not exist: there are {}", member, members));
}

wire::Sightings made(const Sightings& sightings) {
  wire::Sightings to;
  for (const Sighting& sighting : sightings.all) {
    wire::Sighting& one = *to.add_sightings();
    one.set_member(sighting.member);
    one.set_sequence(sighting.sequence);
    one.set_status(sighting.known->bytes);
    for (const int member : sighting.path) one.add_path(member);
  }
  return to;
}

Sightings read(const wire::Sightings& from, int sender, int members) {
  Sightings sightings;
  for (const wire::Sighting& one : from.sightings()) {
    Sighting& sighting = sightings.all.emplace_back();
    sighting.member = checked_member(one.member(), members);
    sighting.sequence = one.sequence();
    sighting.known = std::make_shared<const KnownStatus>(
        KnownStatus{std::get<MemberStatus>(decode(Kind::status, one.status(), members)), one.status()});
    for (const int member : one.path()) sighting.path.push_back(checked_member(member, members));
    const std::vector<int>& path = sighting.path;
    const bool fits = !path.empty() && path.front() == sender && path.back() == sighting.member &&
                      path.size() <= static_cast<size_t>(members);
    if (!fits) throw DataError(fmt::format("the path of {} steps to member {} is none", path.size(), sighting.member));
  }
  return sightings;
}

wire::Departures made(const Departures& departures) {
  wire::Departures to;
  for (const Departure& departure : departures.all) {
    wire::Departure& one = *to.add_departures();
    one.set_member(departure.member);
    one.set_incarnation(departure.incarnation);
    one.set_why(departure.why);
    one.set_dead(departure.dead);
  }
  return to;
}

Departures read(const wire::Departures& from, int members) {
  Departures departures;
  for (const wire::Departure& one : from.departures()) {
    departures.all.push_back({checked_member(one.member(), members), one.incarnation(),
                              base::as_utf8(one.why().substr(0, kLongestReason)), one.dead()});
  }
  return departures;
}

wire::Parcel made(const Parcel& parcel) {
  wire::Parcel to;
  to.set_from(parcel.from);
  to.set_incarnation(parcel.incarnation);
  for (const int member : parcel.to) to.add_to(member);
  to.set_kind(parcel.kind);
  to.set_content(parcel.content);
  return to;
}

Parcel read(const wire::Parcel& from, int members) {
  Parcel parcel;
  parcel.from = checked_member(from.from(), members);
  parcel.incarnation = from.incarnation();
  std::set<int> seen;
  for (const int member : from.to()) {
    parcel.to.push_back(checked_member(member, members));
    if (!seen.insert(member).second) throw DataError(fmt::format("a message names member {} twice", member));
  }
  if (from.kind() > UINT16_MAX) throw DataError(fmt::format("message of unknown kind {}", from.kind()));
  parcel.kind = static_cast<uint16_t>(from.kind());
  parcel.content = from.content();
  // Also if it is for others, which would blame the member that passes it on.
  static_cast<void>(decode(static_cast<Kind>(parcel.kind), parcel.content, members));
  return parcel;
}

wire::Leaving made(const Leaving& leaving) {
  wire::Leaving to;
  to.set_ends(leaving.ends);
  return to;
}

}  // namespace

Kind kind_of(const RelayFrame& frame) {
  constexpr Kind kinds[] = {Kind::sightings, Kind::departures, Kind::parcel, Kind::leaving};
  return kinds[frame.index()];
}

std::string encode(const RelayFrame& frame) {
  return std::visit([](const auto& f) { return made(f).SerializeAsString(); }, frame);
}

RelayFrame decode_relayed(Kind kind, const std::string& bytes, int from, int members) {
  switch (kind) {
    case Kind::sightings:
      return read(parse_relayed<wire::Sightings>(kind, bytes), from, members);
    case Kind::departures:
      return read(parse_relayed<wire::Departures>(kind, bytes), members);
    case Kind::parcel:
      return read(parse_relayed<wire::Parcel>(kind, bytes), members);
    case Kind::leaving:
      return Leaving{parse_relayed<wire::Leaving>(kind, bytes).ends()};
    default:
      throw DataError(fmt::format("frame of unknown kind {}", static_cast<int>(kind)));
  }
}

}  // namespace lockstep::allreduce::elastic
