#include "allreduce/elastic/messages.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "wire/data_messages.h"
#include "wire/frames.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr uint64_t kMostGroups = uint64_t{1} << 56U;  ///< largest plausible group number
constexpr size_t kMostAddress = size_t{1} << 20;

using WireSeats = google::protobuf::RepeatedPtrField<wire::Seat>;

void put_seats(const Seats& seats, WireSeats& to) {
  for (const Seat& seat : seats) {
    wire::Seat& added = *to.Add();
    added.set_member(seat.member);
    added.set_incarnation(seat.incarnation);
  }
}

Seats take_seats(const WireSeats& seats, int members) {
  std::vector<Seat> made;
  int last = -1;
  for (const wire::Seat& seat : seats) {
    if (seat.member() <= last || seat.member() >= members) {
      throw DataError(fmt::format("invalid group: member {} after {}, of {} members", seat.member(), last, members));
    }
    last = seat.member();
    made.push_back({seat.member(), seat.incarnation()});
  }
  return made;
}

uint64_t checked_number(uint64_t number) {
  if (number > kMostGroups) throw DataError(fmt::format("group number {}", number));
  return number;
}

void put(const Standing& standing, wire::Standing& to) {
  to.set_whole(standing.whole);
  to.set_live(standing.live);
  to.set_step(standing.step);
  to.set_examples(standing.examples);
  to_wire(standing.data, *to.mutable_data());
  to.set_bucket_bytes(standing.bucket_bytes);
}

Standing take(const wire::Standing& from) {
  Standing standing;
  standing.whole = from.whole();
  standing.live = from.live();
  standing.step = from.step();
  standing.examples = from.examples();
  standing.data = from_wire(from.data());
  standing.bucket_bytes = from.bucket_bytes();
  return standing;
}

wire::Status made(const MemberStatus& status) {
  wire::Status to;
  to.set_incarnation(status.incarnation);
  to.set_phase(static_cast<uint32_t>(status.phase));
  to.set_whole(status.whole);
  to.set_earlier(status.earlier);
  to.set_live(status.live);
  to.set_step(status.step);
  to.set_seen(status.seen);
  to.set_left(status.left);
  to.set_knows_end(status.knows_end);
  to.set_interrupted(status.interrupted);
  to.mutable_group()->set_number(status.group.number);
  to.mutable_group()->set_id(status.group.id);
  put_seats(status.group.seats, *to.mutable_group()->mutable_seats());
  for (const int member : status.reach) to.add_reach(member);
  return to;
}

MemberStatus read(const wire::Status& from, int members) {
  MemberStatus status;
  if (from.phase() >= kMemberPhases) throw DataError(fmt::format("member in unknown phase {}", from.phase()));
  status.incarnation = from.incarnation();
  status.phase = static_cast<MemberPhase>(from.phase());
  status.whole = from.whole();
  status.earlier = from.earlier();
  status.live = from.live();
  status.step = from.step();
  status.seen = checked_number(from.seen());
  status.left = checked_number(from.left());
  status.knows_end = from.knows_end();
  status.interrupted = from.interrupted();
  status.group = {checked_number(from.group().number()), from.group().id(), take_seats(from.group().seats(), members)};
  const bool grouped = status.group.number > 0;
  const bool needed = status.phase == MemberPhase::running || status.phase == MemberPhase::closing;
  if (grouped == status.group.seats.empty() || (needed && !grouped))
    throw DataError("group without members, or members without a group");
  int last = -1;
  for (const int member : from.reach()) {
    if (member <= last || member >= members)
      throw DataError(fmt::format("member {} does not fit: ascending numbers below {} are allowed", member, members));
    status.reach.push_back(last = member);
  }
  return status;
}

wire::Proposal made(const Proposal& proposal) {
  wire::Proposal to;
  to.set_number(proposal.number);
  put_seats(proposal.seats, *to.mutable_seats());
  return to;
}

Proposal read(const wire::Proposal& from, int members) {
  return {checked_number(from.number()), take_seats(from.seats(), members)};
}

wire::Acceptance made(const Acceptance& acceptance) {
  wire::Acceptance to;
  to.set_number(acceptance.number);
  to.set_address(acceptance.address);
  put(acceptance.standing, *to.mutable_standing());
  to.set_lineage(acceptance.lineage);
  return to;
}

Acceptance read(const wire::Acceptance& from, int /*members*/) {
  if (from.address().size() > kMostAddress) throw DataError("address is too long");
  return {from.number(), from.address(), take(from.standing()), from.lineage()};
}

wire::Refusal made(const Refusal& refusal) {
  wire::Refusal to;
  to.set_number(refusal.number);
  return to;
}

Refusal read(const wire::Refusal& from, int /*members*/) { return {from.number()}; }

wire::Decision made(const Decision& decision) {
  wire::Decision to;
  to.set_number(decision.group.number);
  to.set_id(decision.group.id);
  put_seats(decision.group.seats, *to.mutable_seats());
  for (const std::string& address : decision.addresses) to.add_addresses(address);
  to.set_source(decision.source);
  to.set_transfer(decision.transfer);
  put(decision.standing, *to.mutable_standing());
  for (const int rank : decision.holders) to.add_holders(rank);
  return to;
}

Decision read(const wire::Decision& from, int members) {
  Decision decision;
  decision.group = {checked_number(from.number()), from.id(), take_seats(from.seats(), members)};
  decision.addresses = {from.addresses().begin(), from.addresses().end()};
  decision.source = from.source();
  decision.transfer = from.transfer();
  decision.standing = take(from.standing());
  decision.holders = {from.holders().begin(), from.holders().end()};
  return decision;
}

template <class Wire>
Message parsed(Kind kind, const std::string& bytes, int members) {
  Wire message;
  if (!message.ParseFromString(bytes)) {
    throw DataError(fmt::format("damaged message in a frame of kind {}", static_cast<int>(kind)));
  }
  return read(message, members);
}

}  // namespace

transport::Header header(Kind kind) {
  transport::Header header;
  header.kind = static_cast<uint16_t>(kind);
  return header;
}

Kind kind_of(const Message& message) {
  constexpr Kind kinds[] = {Kind::status, Kind::proposal, Kind::acceptance, Kind::refusal, Kind::decision};
  return kinds[message.index()];
}

std::string encode(const Message& message) {
  return std::visit([](const auto& m) { return made(m).SerializeAsString(); }, message);
}

Message decode(Kind kind, const std::string& bytes, int members) {
  switch (kind) {
    case Kind::status:
      return parsed<wire::Status>(kind, bytes, members);
    case Kind::proposal:
      return parsed<wire::Proposal>(kind, bytes, members);
    case Kind::acceptance:
      return parsed<wire::Acceptance>(kind, bytes, members);
    case Kind::refusal:
      return parsed<wire::Refusal>(kind, bytes, members);
    case Kind::decision:
      return parsed<wire::Decision>(kind, bytes, members);
    default:
      throw DataError(fmt::format("frame of unknown kind {}", static_cast<int>(kind)));
  }
}

}  // namespace lockstep::allreduce::elastic
