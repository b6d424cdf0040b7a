// The processes that a server hears of by their control streams: who is silent, and who has a role. Plain logic: the
// caller passes the seconds, and locks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::ps {

struct Peer {
  std::string role;  ///< "worker:1"
  int member = -1;
  uint64_t incarnation = 0;
  std::string address;
  bool knows_end = false;  ///< confirmed that it has heard of the end
  std::string process;     ///< for lines: host, number and folder
};

class Peers {
 public:
  using Id = uint64_t;

  explicit Peers(double now) : looked_(now) {}

  /// A process has said hello on a control stream.
  Id add(Peer peer, double now);
  void remove(Id id);
  void heard(Id id, double now);
  void knows_end(Id id);
  /// The reason why the peer was given up; empty: it was not.
  [[nodiscard]] std::string why(Id id) const;

  /// Gives up peers that have been silent for the limit, and returns them. `awaited` names what each member should have
  /// sent. After a pause of this process itself counting begins anew.
  std::vector<Id> give_up_silent(double now, const std::map<int, std::string>& awaited);
  /// Returns true if there is such a peer.
  [[nodiscard]] bool any(const std::function<bool(const Peer&)>& which) const;
  [[nodiscard]] bool has(const std::string& role, uint64_t incarnation) const;
  [[nodiscard]] std::vector<Id> those(const std::function<bool(const Peer&)>& which) const;

  /// The process that has a role, if it is another one. `alive`: it was heard of more than a second after `since`, so
  /// who came then is refused; otherwise it may be dead, and who came waits until it is given up or heard of.
  struct Holder {
    std::string process;
    bool alive = false;
  };
  [[nodiscard]] std::optional<Holder> other_holder(const std::string& role, uint64_t incarnation, double since) const;

 private:
  struct Entry {
    Id id = 0;
    Peer peer;
    double heard = 0;
    std::optional<double> said_something;  ///< like `heard`, whether this process was suspended or not
    std::string why;
  };
  [[nodiscard]] Entry* find(Id id);
  [[nodiscard]] const Entry* find(Id id) const;

  std::vector<Entry> entries_;
  Id latest_ = 0;
  double looked_;
};

}  // namespace lockstep::ps
