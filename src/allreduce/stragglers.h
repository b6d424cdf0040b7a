// Who makes the others wait: which member is slow, since when, by how much, and whether it computes or waits for data;
// or the network. It is given what all members know after each step, so all come to the same result. Plain values, no
// clock and no threads.
//
// A member is slow when its own time until it comes to the exchange is well above the median of the others', and that
// matters for the step. Whoever comes last waits for the transfer alone, so the shortest wait of a step is what the
// network took; a slow link slows everyone down alike, and times alone cannot tell whose it is. Everything is judged by
// averages in which single slow steps (a checkpoint, an evaluation) count little, and has to last for 20 steps and 2 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::allreduce {

/// Of one member in one step, in seconds.
struct MemberTimes {
  double load = 0;     ///< waiting for data
  double compute = 0;  ///< everything else until it came to the exchange
  double wait = 0;     ///< in the exchange, with nothing left to compute
};

enum class Slowness : uint8_t { computing, loading, network };
constexpr int kNetwork = -1;  ///< in place of a member

struct StragglerEvent {
  int member = kNetwork;
  Slowness why = Slowness::network;
  bool over = false;  ///< it is as fast as the others again
  std::string text;   ///< one line for people
};

/// A time in which a member or the network was slow.
struct Episode {
  int member = kNetwork;
  Slowness why = Slowness::network;
  uint64_t since_step = 0;
  double since = 0;    ///< seconds, as they were given
  double seconds = 0;  ///< how long it lasted, or has lasted so far
  double factor = 1;   ///< at its worst: own time over the others', or exchanging over what it took at first
  bool over = false;
};

struct MemberPace {
  std::string name;
  uint64_t steps = 0;
  double last_share = 0;  ///< of its steps: everyone waited for it
  MemberTimes mean;
};

struct StragglerReport {
  std::vector<MemberPace> members;  ///< that made steps, by number
  std::vector<Episode> episodes;    ///< in the order of their beginnings
  /// For people; no lines where nothing was slow.
  [[nodiscard]] std::vector<std::string> lines() const;

  std::vector<std::string> names;  ///< by member number
};

class Stragglers {
 public:
  /// `names` by member number: "worker:2".
  explicit Stragglers(std::vector<std::string> names);

  /// The group has other members, or its way of exchanging has changed: what was usual begins anew, and whoever is slow
  /// is so no longer until it shows again. `members` by rank.
  void restart(std::vector<int> members);
  /// After each step: its number, the seconds since the beginning of training, everyone's times by rank. Allocates only
  /// where there is something to say.
  std::vector<StragglerEvent> step(uint64_t step, double now, std::span<const MemberTimes> times);
  [[nodiscard]] StragglerReport report() const;

 private:
  /// An average over some 20 steps. A sample counts at most three times the average, or `least`.
  struct Average {
    double value = 0;
    uint64_t samples = 0;

    void add(double sample, double least);
  };
  /// Whether something holds, once it has held long enough.
  struct Watch {
    bool on = false;
    uint64_t held = 0;  ///< steps for which it has been otherwise
    uint64_t since_step = 0;
    double since = 0;
    size_t episode = 0;

    /// True where it changes.
    bool update(bool otherwise, uint64_t step, double now);
  };
  struct Pace {
    Average load;
    Average compute;
    Watch watch;

    [[nodiscard]] double own() const { return load.value + compute.value; }
  };
  struct Total {
    uint64_t steps = 0;
    uint64_t last = 0;
    MemberTimes sum;
  };

  void account(std::span<const MemberTimes> times);
  void average(std::span<const MemberTimes> times);
  void judge_member(size_t rank, uint64_t step, double now, std::vector<StragglerEvent>& events);
  void judge_network(uint64_t step, double now, std::vector<StragglerEvent>& events);
  void turn(Watch& watch, Episode episode, const std::string& how, double now, std::vector<StragglerEvent>& events);
  void prolong(const Watch& watch, double factor, double now);
  template <class Value>
  [[nodiscard]] double median_of_others(size_t rank, const Value& value);

  std::vector<std::string> names_;
  std::vector<Total> totals_;  ///< by member number
  std::vector<Episode> episodes_;

  // Of this group.
  std::vector<int> members_;
  std::vector<Pace> paces_;  ///< by rank
  Average step_;
  Average exchange_;
  double usual_exchange_ = 0;
  Watch network_;
  uint64_t steps_ = 0;
  std::vector<double> sorted_;
};

}  // namespace lockstep::allreduce
