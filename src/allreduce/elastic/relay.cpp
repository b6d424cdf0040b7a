#include "allreduce/elastic/relay.h"

#include <algorithm>

#include "allreduce/elastic/messages.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kSettle = 1;       ///< seconds in which the best parents may still start
constexpr double kRetryBest = 0.2;  ///< seconds between attempts with one of the best, without a parent
constexpr double kRetryAny = 1;     ///< the same with any other
constexpr double kImprove = 2;      ///< seconds between attempts with a better one
constexpr size_t kMostWaiting = 4096;
constexpr size_t kMostBytes = size_t{1} << 20;  ///< approximate limit of the statuses in one frame

size_t bytes_of(const Sightings& sightings) {
  size_t bytes = 0;
  for (const Sighting& one : sightings.all) bytes += one.known->bytes.size();
  return bytes;
}

size_t bytes_of(const Parcel& parcel) { return parcel.content.size() + parcel.to.size() * sizeof(int); }

}  // namespace

std::vector<int> best_parents(int member) {
  std::vector<int> best;
  while (member > 0) best.push_back(member = (member - 1) / kChildren);
  return best;
}

Relay::Relay(int me, int members) : me_(me), ancestors_(best_parents(me)), members_(static_cast<size_t>(members)) {}

// Output.

/// Frames in a row to one neighbour are joined; of several sightings of one member the latest counts.
void Relay::send(int peer, RelayFrame frame) {
  std::vector<RelayFrame>& pending = frames_[peer];
  if (!pending.empty() && pending.back().index() == frame.index()) {
    if (auto* const before = std::get_if<Sightings>(&pending.back());
        before != nullptr && bytes_of(*before) < kMostBytes) {
      for (Sighting& more : std::get<Sightings>(frame).all) {
        const auto same = std::find_if(before->all.begin(), before->all.end(),
                                       [&](const Sighting& one) { return one.member == more.member; });
        same == before->all.end() ? before->all.push_back(std::move(more)) : static_cast<void>(*same = std::move(more));
      }
      return;
    }
    if (auto* const before = std::get_if<Departures>(&pending.back())) {
      auto& more = std::get<Departures>(frame).all;
      before->all.insert(before->all.end(), more.begin(), more.end());
      return;
    }
  }
  pending.push_back(std::move(frame));
}

std::vector<int> Relay::pending() const {
  std::vector<int> peers;
  for (const auto& [peer, frames] : frames_) peers.push_back(peer);
  return peers;
}

std::vector<RelayFrame> Relay::take_frames(int peer) {
  const auto found = frames_.find(peer);
  if (found == frames_.end()) return {};
  std::vector<RelayFrame> frames = std::move(found->second);
  frames_.erase(found);
  return frames;
}

std::vector<std::pair<int, RelayFrame>> Relay::take_frames() {
  std::vector<std::pair<int, RelayFrame>> all;
  for (const int peer : pending()) {
    for (RelayFrame& frame : take_frames(peer)) all.emplace_back(peer, std::move(frame));
  }
  return all;
}

Sighting Relay::sighting_of(int member) const {
  const Member& one = at(member);
  Sighting sighting{member, one.sequence, one.known, {me_}};
  if (member == me_) return sighting;
  const std::vector<int>& path = one.offers.at(one.via).path;
  sighting.path.insert(sighting.path.end(), path.begin(), path.end());
  return sighting;
}

/// Tells all neighbours the way to a member, or that it does not go through this one.
void Relay::tell(int member) {
  Member& one = at(member);
  for (const int peer : links_) {
    if (peer != one.via) {
      send(peer, Sightings{{sighting_of(member)}});
      one.told.insert(peer);
    } else if (one.told.erase(peer) > 0) {
      send(peer, Departures{{{member, incarnation_of(one), "", false}}});
    }
  }
}

void Relay::set_status(MemberStatus status) {
  status.reach.clear();
  Member& mine = at(me_);
  if (mine.known && mine.known->status == status) return;
  ++mine.sequence;
  std::string bytes = encode(status);
  mine.known = std::make_shared<const KnownStatus>(KnownStatus{std::move(status), std::move(bytes)});
  tell(me_);
}

// Ways.

/// Goes by what a neighbour says of a member from now on.
void Relay::use(int member, int via) {
  Member& one = at(member);
  const Sighting& offer = one.offers.at(via);
  if (one.here && incarnation_of(one) != offer.known->status.incarnation) {
    one.here = false;
    add_news(member, Lost{"it was restarted"});
  }
  const bool arrives = !one.here;
  if (arrives || offer.sequence > one.sequence) {
    one.sequence = offer.sequence;
    one.known = offer.known;
    arrives ? add_news(member, Arrived{one.known->status}) : add_news(member, Told{one.known->status});
  }
  one.here = one.was_here = true;
  one.dead.reset();
  one.via = via;
  tell(member);
  send_kept(member, via);
}

void Relay::take_sighting(int peer, Sighting sighting, double now) {
  const int member = sighting.member;
  if (member == me_) return;
  Member& one = at(member);
  const bool useless = std::find(sighting.path.begin(), sighting.path.end(), me_) != sighting.path.end();
  // A later status shows that it lives.
  const bool dead = one.dead == sighting.known->status.incarnation && sighting.sequence <= one.sequence;
  if (useless || dead) return withdraw(peer, member, "", now);
  const bool known = one.here && incarnation_of(one) == sighting.known->status.incarnation;
  const bool newer = !known || sighting.sequence > one.sequence;
  const auto before = one.offers.find(peer);
  const bool moved = before == one.offers.end() || before->second.path != sighting.path;
  one.offers[peer] = std::move(sighting);
  if (one.via < 0 || newer || (one.via == peer && moved)) use(member, peer);
}

/// A neighbour is no way to a member any more.
void Relay::withdraw(int peer, int member, const std::string& why, double now) {
  Member& one = at(member);
  if (one.offers.erase(peer) == 0 || one.via != peer) return;
  if (use_another(member)) return;
  if (!why.empty()) return lose(member, why);
  one.via = -1;
  one.cut_at = now;
  for (const int neighbour : std::exchange(one.told, {})) {
    send(neighbour, Departures{{{member, incarnation_of(one), "", false}}});
  }
}

/// Goes by another neighbour, best one that knows the same process by a short way. Returns false if there is none.
bool Relay::use_another(int member) {
  const Member& one = at(member);
  const auto worse = [&](const Sighting& sighting) {
    return std::pair(sighting.known->status.incarnation != incarnation_of(one), sighting.path.size());
  };
  const auto best = std::min_element(one.offers.begin(), one.offers.end(),
                                     [&](const auto& a, const auto& b) { return worse(a.second) < worse(b.second); });
  if (best == one.offers.end()) return false;
  use(member, best->first);
  return true;
}

void Relay::lose(int member, const std::string& why) {
  Member& one = at(member);
  one.here = false;
  one.via = -1;
  send_kept(member, -1);
  for (const int neighbour : std::exchange(one.told, {})) {
    send(neighbour, Departures{{{member, incarnation_of(one), why, false}}});
  }
  add_news(member, Lost{why});
}

void Relay::mark_dead(int member, uint64_t incarnation, int told_by) {
  Member& one = at(member);
  const Departures gone{{{member, incarnation, "", true}}};
  const auto own = one.offers.find(member);
  if (own != one.offers.end() && own->second.known->status.incarnation == incarnation) {
    // This one is connected with it, and knows better. It may tell all that it lives.
    if (told_by != member) send(member, gone);
    return;
  }
  std::erase_if(one.offers, [&](const auto& offer) { return offer.second.known->status.incarnation == incarnation; });
  if (!one.was_here || incarnation_of(one) != incarnation || one.dead == incarnation) return;
  if (one.here && use_another(member)) return;
  one.dead = incarnation;
  if (one.here) lose(member, "its process is gone");
  add_news(member, Dead{});
  for (const int neighbour : links_) send(neighbour, gone);
}

/// Others think that this process is dead, as a firewall in between refuses connections: it is not.
void Relay::deny_death() {
  if (!at(me_).known) return;
  ++at(me_).sequence;
  tell(me_);
}

bool Relay::misses(int member) const {
  const Member& one = at(member);
  return one.was_here && one.via < 0 && !one.dead;
}

void Relay::confirm_dead(int member) {
  if (misses(member)) mark_dead(member, incarnation_of(at(member)), -1);
}

// Neighbours.

void Relay::link_up(int peer, double now) {
  links_.insert(peer);
  if (peer < me_) {
    parent_ = peer;
    had_parent_ = true;
    at(peer).up_at = now;
  }
  Sightings all;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    Member& one = at(member);
    if (one.dead) send(peer, Departures{{{member, *one.dead, "", true}}});
    const bool known = member == me_ ? one.sequence > 0 : one.via >= 0;
    if (!known) continue;
    one.told.insert(peer);
    all.all.push_back(sighting_of(member));
    if (bytes_of(all) < kMostBytes) continue;
    send(peer, std::exchange(all, {}));
  }
  if (!all.all.empty()) send(peer, std::move(all));
}

/// Lower numbers come first, because they have fewer members to choose from: one with a higher number must look for
/// another parent.
Relay::Room Relay::room_for(int peer) const {
  const auto children = static_cast<int>(std::distance(links_.upper_bound(me_), links_.end()));
  if (children < kMostChildren || links_.contains(peer)) return {true, -1, children};
  const int last = *links_.rbegin();
  return last < peer ? Room{false, -1, children} : Room{true, last, children};
}

void Relay::link_down(int peer, const std::string& why, double now) {
  links_.erase(peer);
  if (parent_ == peer) {
    parent_ = -1;
    pause_parent(peer, now);
  }
  frames_.erase(peer);
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    at(member).told.erase(peer);
    withdraw(peer, member, member == peer ? why : "", now);
  }
}

/// A parent that takes connections and ends them must not be asked without a pause.
void Relay::pause_parent(int member, double now) {
  Member& one = at(member);
  one.breaks = now - one.up_at < kGrace ? one.breaks + 1 : 0;
  one.next_try = now + std::min(kRetryBest * (1 << std::min(one.breaks, 10)), kImprove);
}

void Relay::take(int peer, RelayFrame frame, double now) {
  // Parcels may still come from a neighbour that is being left.
  if (const auto* const parcel = std::get_if<Parcel>(&frame)) take_parcel(peer, *parcel);
  if (!links_.contains(peer)) return;
  if (auto* const sightings = std::get_if<Sightings>(&frame)) take_all(peer, *sightings, now);
  if (const auto* const departures = std::get_if<Departures>(&frame)) take_all(peer, *departures, now);
}

void Relay::take_all(int peer, Sightings& sightings, double now) {
  for (Sighting& sighting : sightings.all) take_sighting(peer, std::move(sighting), now);
}

void Relay::take_all(int peer, const Departures& departures, double now) {
  for (const Departure& departure : departures.all) {
    if (departure.member == me_) {
      if (departure.dead && departure.incarnation == incarnation_of(at(me_))) deny_death();
      continue;
    }
    const auto& offers = at(departure.member).offers;
    const auto offer = offers.find(peer);
    if (departure.dead) {
      mark_dead(departure.member, departure.incarnation, peer);
    } else if (offer != offers.end() && offer->second.known->status.incarnation == departure.incarnation) {
      withdraw(peer, departure.member, departure.why, now);
    }
  }
}

void Relay::tick(double now) {
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    const Member& one = at(member);
    if (member != me_ && one.here && one.via < 0 && now - one.cut_at > kGrace) lose(member, "the way to it broke");
  }
}

// Messages.

void Relay::post(const std::vector<int>& to, uint16_t kind, const std::string& content) {
  const std::set<int> each(to.begin(), to.end());
  route({me_, incarnation_of(at(me_)), {each.begin(), each.end()}, kind, content}, -1);
}

void Relay::take_parcel(int peer, const Parcel& parcel) {
  const Member& sender = at(parcel.from);
  const bool mine = std::find(parcel.to.begin(), parcel.to.end(), me_) != parcel.to.end();
  if (mine && parcel.from != me_ && sender.here && incarnation_of(sender) == parcel.incarnation) {
    add_news(parcel.from, Received{parcel.kind, parcel.content});
  }
  route(parcel, peer);
}

/// Sends a parcel on, once to each neighbour that is the way to some of its receivers.
void Relay::route(const Parcel& parcel, int from) {
  std::map<int, std::vector<int>> ways;
  std::vector<int> later;
  for (const int member : parcel.to) {
    const Member& one = at(member);
    if (member == me_ || !one.here) continue;
    (one.via >= 0 && one.via != from ? ways[one.via] : later).push_back(member);
  }
  for (auto& [way, members] : ways)
    send(way, Parcel{parcel.from, parcel.incarnation, members, parcel.kind, parcel.content});
  if (!later.empty()) keep({parcel.from, parcel.incarnation, std::move(later), parcel.kind, parcel.content});
}

void Relay::keep(Parcel parcel) {
  if (bytes_of(parcel) > kMostWaitingBytes) return;
  waiting_bytes_ += bytes_of(parcel);
  waiting_.push_back(std::move(parcel));
  while (waiting_.size() > kMostWaiting || waiting_bytes_ > kMostWaitingBytes) {
    waiting_bytes_ -= bytes_of(waiting_.front());
    waiting_.pop_front();
  }
}

/// Sends what waits for a member by that way; -1: drops it.
void Relay::send_kept(int member, int via) {
  for (Parcel& parcel : waiting_) {
    const auto found = std::find(parcel.to.begin(), parcel.to.end(), member);
    if (found == parcel.to.end()) continue;
    waiting_bytes_ -= bytes_of(parcel);
    parcel.to.erase(found);
    if (!parcel.to.empty()) waiting_bytes_ += bytes_of(parcel);
    if (via >= 0) send(via, Parcel{parcel.from, parcel.incarnation, {member}, parcel.kind, parcel.content});
  }
  std::erase_if(waiting_, [](const Parcel& parcel) { return parcel.to.empty(); });
}

// The parent.

std::optional<int> Relay::next_try(double now) const {
  std::optional<int> next;
  // The one whose turn came first, so that none keeps another from its turn.
  const auto consider = [&](int member) {
    if (now >= at(member).next_try && (!next || at(member).next_try < at(*next).next_try)) next = member;
  };
  for (const int member : ancestors_) {
    if (member == parent_) break;
    consider(member);
  }
  const bool settled = had_parent_ || (began_ >= 0 && now - began_ >= kSettle);
  for (int member = 0; member < me_ && parent_ < 0 && settled; ++member) consider(member);
  return next;
}

void Relay::tried(int member, double now) {
  if (began_ < 0) began_ = now;
  const bool best = std::find(ancestors_.begin(), ancestors_.end(), member) != ancestors_.end();
  at(member).next_try = now + (parent_ >= 0 ? kImprove : best ? kRetryBest : kRetryAny);
}

}  // namespace lockstep::allreduce::elastic
