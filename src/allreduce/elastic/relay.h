// How the members of a large cluster reach each other over few connections, as plain logic without network, threads or
// clock. Members form a tree: each has one connection to a member with a lower number, its parent, and accepts some
// from higher ones, so there are no circles. Every member passes on what it hears, so to its owner each member looks
// connected with all others: members arrive, send messages and are lost.
//
// Each member tells its neighbours which members can be reached through it, with their latest status and the path to
// them. A path through the receiver itself is no way, so stale news cannot send messages in circles. A member whose own
// connection breaks is lost at once, for all. Those behind it are only cut off: their neighbours look for another
// parent, and only after `kGrace` seconds without any way are they lost. Messages to them wait for as long.
//
// A member's best parent is its place in a tree of kChildren children each: (number - 1) / kChildren. If that one is
// not there, its parent is the next best, and so on; after these any lower member will do. A member with a worse parent
// keeps trying the better ones.
//
// Used by one thread at a time.
#pragma once

#include <deque>
#include <map>
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
inline constexpr double kGrace = 4;  ///< seconds

struct Sighting {
  int member = 0;
  uint64_t sequence = 0;
  MemberStatus status;
  std::string bytes;      ///< the encoded status
  std::vector<int> path;  ///< from the sender to the member
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
  void link_up(int peer);
  /// `why` empty: one of the two has found a better neighbour.
  void link_down(int peer, const std::string& why, double now);
  void take(int peer, RelayFrame frame, double now);
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
  std::vector<std::pair<int, RelayFrame>> take_frames() { return std::exchange(frames_, {}); }
  std::vector<News> take_news() { return std::exchange(news_, {}); }

 private:
  struct Member {
    bool here = false;
    bool was_here = false;
    uint64_t sequence = 0;  ///< number of its latest status
    MemberStatus status;
    std::string bytes;
    int via = -1;                    ///< neighbour on the way to it; -1: none
    std::map<int, Sighting> offers;  ///< reports of the neighbours
    std::set<int> told;              ///< neighbours that know a way through this member
    double cut_at = 0;               ///< since when there is no way, if it is here
    std::deque<Parcel> waiting;      ///< messages for as long
    std::optional<uint64_t> dead;    ///< incarnation that is dead
    double next_try = 0;             ///< as parent
  };

  void take_all(int peer, Sightings& sightings, double now);
  void take_all(int peer, const Departures& departures, double now);
  void take_parcel(int peer, const Parcel& parcel);
  void take_sighting(int peer, Sighting sighting, double now);
  void withdraw(int peer, int member, const std::string& why, double now);
  bool use_another(int member);
  void lose(int member, const std::string& why);
  void mark_dead(int member, uint64_t incarnation, int told_by);
  void use(int member, int via);
  void tell(int member);
  void tell_own(int peer);
  void send(int peer, RelayFrame frame);
  void route(const Parcel& parcel, int from);
  [[nodiscard]] Sighting sighting_of(int member) const;
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
  double began_ = -1;  ///< time of the first look for a parent
  std::vector<std::pair<int, RelayFrame>> frames_;
  std::vector<News> news_;
};

/// Returns the members that suit as parent of a member before any others, best first.
std::vector<int> best_parents(int member);

}  // namespace lockstep::allreduce::elastic
