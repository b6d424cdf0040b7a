// The connections of a member of a large cluster, played: the real Relay over the World's connections, as mesh_tree.cpp
// does it with threads. A member looks for a parent, takes children, and passes on what it hears. Owned by a member;
// its owner passes on events of its connections and takes the relay's news.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/elastic/relay.h"
#include "simulation/elastic_messages.h"
#include "simulation/world.h"

namespace lockstep::simulation {

class ElasticTree {
 public:
  /// What a tree asks of its member.
  struct Owner {
    std::function<void(const allreduce::elastic::News& news)> tell;
    std::function<void(int member, const std::string& why)> unreachable;
    std::function<void(int member)> probe;  ///< find out whether that member's process is dead
  };
  ElasticTree(World& world, Process me, int members, uint64_t incarnation, Owner owner);

  allreduce::elastic::Relay& relay() { return relay_; }
  /// Sends what the relay wants to send, and tells its news.
  void flush();
  void seek();
  /// Heartbeats, silence and deadlines; about four times a second.
  void watch(bool paused);

  // Events. Each returns false if the connection is none of the tree's.
  bool connected(Link link);
  bool received(Link link, const ElasticPacket& packet);
  bool closed(Link link, const std::string& why);
  /// A member with a higher number has greeted.
  void greeted(int member, Link link, uint64_t incarnation);

 private:
  struct Neighbour {
    Link link = -1;
    double heard = 0;
    double sent = 0;
    bool leaves = false;   ///< one of the two has asked to end the connection
    bool writing = false;  ///< what waits for it is sent soon, in one
  };
  /// A connection with a better parent.
  struct Attempt {
    int member = -1;
    Link link = -1;
    double since = 0;
    bool welcome = false;
    std::vector<ElasticPacket> early;  ///< what it sent before the old parent has hung up
  };
  [[nodiscard]] double now() const { return world_.clock(me_); }
  void send(int member, ElasticMessage message);
  void send_pending(int member);
  void seek_after(double seconds);
  void fail_attempt(const std::string& why, bool refused);
  void leave_parent();
  void move_if_free();
  void enter(int member, Link link);
  void take(int member, const allreduce::elastic::RelayFrame& frame);
  void end(int member, const std::string& why);

  World& world_;
  const Process me_;
  const int members_;
  const uint64_t incarnation_;
  const Owner owner_;
  allreduce::elastic::Relay relay_;
  std::map<int, Neighbour> neighbours_;
  std::map<Link, int> links_;
  std::optional<Attempt> attempt_;
  int left_ = -1;  ///< parent that was asked to hang up
  double left_at_ = 0;
  uint64_t looks_ = 0;
};

}  // namespace lockstep::simulation
