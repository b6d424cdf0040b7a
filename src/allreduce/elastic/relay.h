// How the members of a large cluster reach each other over few connections, as plain logic without network, threads or
// clock. Members form a tree: each has one connection to a member with a lower number, its parent, and accepts some
// from higher ones, so there are no circles. Every member passes on what it hears, so to its owner each member looks
// connected with all others: members arrive, send messages and are lost.
//
// Each member tells its neighbours which members can be reached through it, with their latest status and the path to
// them. A path through the receiver itself is no way, so stale news cannot send messages in circles. A member whose own
// connection breaks is lost at once, for all. Those behind it are only cut off: their neighbours look for another
// parent, and only after `kGrace` seconds without any way are they lost. Messages to them wait for as long, up to
// kMostWaitingBytes of them; then the oldest are dropped, and their senders try again.
//
// A member's best parent is its place in a tree of kChildren children each: (number - 1) / kChildren. If that one is
// not there, its parent is the next best, and so on; after these any lower member will do. A member with a worse parent
// keeps trying the better ones. After a connection that broke soon, it pauses before it tries that one again.
//
// A member whose address refuses connections is dead for all, unless it is connected with one of them, or denies it by
// a later status: a firewall may have refused in its place.
//
// Used by one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "allreduce/elastic/agreement.h"

namespace lockstep::allreduce::elastic {

/// Up to this many members of a cluster, each is connected with all others.
inline constexpr int kMeshMembers = 8;
inline constexpr int kChildren = 3;
/// Most members with higher numbers that a member accepts. Usually they are kChildren; more while others are missing.
inline constexpr int kMostChildren = 8;
inline constexpr double kGrace = 4;  ///< seconds
inline constexpr size_t kMostWaitingBytes = size_t{16} << 20;

/// A member's status and its encoded form.
struct KnownStatus {
  MemberStatus status;
  std::string bytes;
};
struct Sighting {
  int member = 0;
  uint64_t sequence = 0;
  std::shared_ptr<const KnownStatus> known;  ///< shared by all that pass it on; never null
  std::vector<int> path;                     ///< from the sender to the member
};
struct Sightings {
  std::vector<Sighting> all;
};

struct Departure {
  int member = 0;
  uint64_t incarnation = 0;
  std::string why;  ///< empty: the way to it broke
  bool dead = false;
};
struct Departures {
  std::vector<Departure> all;
};

struct Parcel {
  int from = 0;
  uint64_t incarnation = 0;
  std::vector<int> to;
  uint16_t kind = 0;
  std::string content;  ///< an encoded message
};

struct Leaving {
  bool ends = false;
};

using RelayFrame = std::variant<Sightings, Departures, Parcel, Leaving>;

/// News for the owner.
struct Arrived {
  MemberStatus status;
};
struct Told {
  MemberStatus status;
};
struct Received {
  uint16_t kind = 0;
  std::string content;
};
struct Lost {
  std::string why;
};
struct Dead {};
struct News {
  int member = 0;
  std::variant<Arrived, Told, Received, Lost, Dead> what;
};

class Relay {
 public:
  Relay(int me, int members);

  /// Tells all members this one's status, if it has changed. `reach` is left out: all reach each other.
  void set_status(MemberStatus status);
  /// Sends a message to some members.
  void post(const std::vector<int>& to, uint16_t kind, const std::string& content);

  // Connections to neighbours.
  void link_up(int peer, double now);
  /// `why` empty: one of the two has found a better neighbour.
  void link_down(int peer, const std::string& why, double now);
  void take(int peer, RelayFrame frame, double now);
  /// The answer to a member with a higher number that asks this one to be its parent.
  struct Room {
    bool granted = false;
    int drop = -1;       ///< child that has to find another parent instead; -1: none
    int neighbours = 0;  ///< children that it has
  };
  [[nodiscard]] Room room_for(int peer) const;
  /// The process of a lost member is dead for certain.
  void confirm_dead(int member);
  void tick(double now);

  // The parent.
  /// Returns a member that should be tried as parent now.
  [[nodiscard]] std::optional<int> next_try(double now) const;
  /// The attempt failed.
  void tried(int member, double now);
  [[nodiscard]] int parent() const { return parent_; }
  /// True if that member was here and is lost or cut off, and is not known to be dead.
  [[nodiscard]] bool misses(int member) const;

  // Pending output; each item is returned once.
  /// Returns the neighbours to whom something is to be sent. What waits longer is sent in fewer frames.
  [[nodiscard]] std::vector<int> pending() const;
  std::vector<RelayFrame> take_frames(int peer);
  std::vector<std::pair<int, RelayFrame>> take_frames();
  std::vector<News> take_news() { return std::exchange(news_, {}); }

 private:
  struct Member {
    bool here = false;
    bool was_here = false;
    uint64_t sequence = 0;  ///< number of its latest status
    std::shared_ptr<const KnownStatus> known;
    int via = -1;                    ///< neighbour on the way to it; -1: none
    std::map<int, Sighting> offers;  ///< reports of the neighbours
    std::set<int> told;              ///< neighbours that know a way through this member
    double cut_at = 0;               ///< since when there is no way, if it is here
    std::optional<uint64_t> dead;    ///< incarnation that is dead
    double next_try = 0;             ///< as parent
    double up_at = 0;                ///< start of the latest connection with it as parent
    int breaks = 0;                  ///< short connections with it as parent, in a row
  };

  void take_all(int peer, Sightings& sightings, double now);
  void take_all(int peer, const Departures& departures, double now);
  void take_parcel(int peer, const Parcel& parcel);
  void take_sighting(int peer, Sighting sighting, double now);
  void withdraw(int peer, int member, const std::string& why, double now);
  bool use_another(int member);
  void lose(int member, const std::string& why);
  void mark_dead(int member, uint64_t incarnation, int told_by);
  void deny_death();
  void use(int member, int via);
  void tell(int member);
  void tell_own(int peer);
  void send(int peer, RelayFrame frame);
  void pause_parent(int member, double now);
  void keep(Parcel parcel);
  void send_kept(int member, int via);
  void route(const Parcel& parcel, int from);
  [[nodiscard]] Sighting sighting_of(int member) const;
  [[nodiscard]] static uint64_t incarnation_of(const Member& member) {
    return member.known ? member.known->status.incarnation : 0;
  }
  [[nodiscard]] Member& at(int member) { return members_[static_cast<size_t>(member)]; }
  [[nodiscard]] const Member& at(int member) const { return members_[static_cast<size_t>(member)]; }
  void add_news(int member, std::variant<Arrived, Told, Received, Lost, Dead> what) {
    news_.push_back({member, std::move(what)});
  }

  const int me_;
  std::vector<int> ancestors_;  ///< best parents, best first
  std::vector<Member> members_;
  std::set<int> links_;
  int parent_ = -1;
  bool had_parent_ = false;
  double began_ = -1;           ///< time of the first look for a parent
  std::deque<Parcel> waiting_;  ///< messages to members that are cut off, in order
  size_t waiting_bytes_ = 0;
  std::map<int, std::vector<RelayFrame>> frames_;  ///< by neighbour
  std::vector<News> news_;
};

/// Returns the members that suit as parent of a member before any others, best first.
std::vector<int> best_parents(int member);

}  // namespace lockstep::allreduce::elastic
