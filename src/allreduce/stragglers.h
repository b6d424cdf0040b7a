// Finds stragglers: the member that is slow, since when, by how much, and whether it computes or waits for data; or a
// slow network. Its input is known to all members after each step, so all come to the same result. Plain values, no
// clock and no threads.
//
// A member is slow if its own time before the exchange is well above the median of the others', and the difference
// matters for the step. The last member to arrive waits only for the transfer, so the shortest wait of a step is the
// time of the network. A slow link slows all members alike, and times alone cannot tell whose it is. Decisions use
// averages in which single slow steps (a checkpoint, an evaluation) count little, and must hold for 20 steps and 2 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::allreduce {

/// Times of one member in one step, in seconds.
struct MemberTimes {
  double load = 0;     ///< waiting for data
  double compute = 0;  ///< everything else before the exchange
  double wait = 0;     ///< in the exchange, with nothing left to compute
};

enum class Slowness : uint8_t { computing, loading, network };
constexpr int kNetwork = -1;  ///< stands for the network in place of a member

struct StragglerEvent {
  int member = kNetwork;
  Slowness why = Slowness::network;
  bool over = false;  ///< true: it is as fast as the others again
  std::string text;   ///< one line for the log
};

/// A period in which a member or the network was slow.
struct Episode {
  int member = kNetwork;
  Slowness why = Slowness::network;
  uint64_t since_step = 0;
  double since = 0;    ///< start in seconds, as passed to step()
  double seconds = 0;  ///< duration, so far if it is not over
  double factor = 1;   ///< at its worst: own time over the others', or time of the exchange over the usual one
  bool over = false;
};

struct MemberPace {
  std::string name;
  uint64_t steps = 0;
  double last_share = 0;  ///< share of its steps in which all waited for it
  MemberTimes mean;
};

struct StragglerReport {
  std::vector<MemberPace> members;  ///< members that made steps, by number
  std::vector<Episode> episodes;    ///< ordered by their start
  /// Lines for people; none if nothing was slow.
  [[nodiscard]] std::vector<std::string> lines() const;

  std::vector<std::string> names;  ///< names by member number
};

class Stragglers {
 public:
  /// `names`: by member number, "worker:2"
  explicit Stragglers(std::vector<std::string> names);

  /// Starts the averages anew, because the group has other members or communicates in another way. A slow member counts
  /// as slow again only once it shows. `members`: by rank.
  void restart(std::vector<int> members);
  /// Records a step: its number, seconds since the beginning of training, all members' times by rank. Allocates only if
  /// there is an event to report.
  std::vector<StragglerEvent> step(uint64_t step, double now, std::span<const MemberTimes> times);
  [[nodiscard]] StragglerReport report() const;

 private:
  /// An average over about 20 steps. A sample counts at most three times the average, or `least`.
  struct Average {
    double value = 0;
    uint64_t samples = 0;

    void add(double sample, double least);
  };
  /// A condition that changes only after it has held long enough.
  struct Watch {
    bool on = false;
    uint64_t held = 0;  ///< steps since which the condition differs from `on`
    uint64_t since_step = 0;
    double since = 0;
    size_t episode = 0;

    /// Returns true if it changes.
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
  [[nodiscard]] double median_pace_of_others(size_t rank) const;
  void judge_member(size_t rank, uint64_t step, double now, std::vector<StragglerEvent>& events);
  void judge_network(uint64_t step, double now, std::vector<StragglerEvent>& events);
  void turn(Watch& watch, Episode episode, const std::string& how, double now, std::vector<StragglerEvent>& events);
  void prolong(const Watch& watch, double factor, double now);
  template <class Value>
  [[nodiscard]] double median_of_others(size_t rank, const Value& value);

  std::vector<std::string> names_;
  std::vector<Total> totals_;  ///< totals by member number
  std::vector<Episode> episodes_;

  // State of this group.
  std::vector<int> members_;
  std::vector<Pace> paces_;  ///< averages by rank
  Average step_;
  Average exchange_;
  double usual_exchange_ = 0;
  Watch network_;
  uint64_t steps_ = 0;
  std::vector<double> sorted_;
  std::vector<double> paces_sorted_;  ///< the paces of this step
};

}  // namespace lockstep::allreduce
