// A simulated world for whole clusters of decision code: machines with disks and clocks, processes that are killed,
// stopped and restarted, and a network with delays, cuts and half-open connections. Time is virtual. All that happens
// follows from a seed and a list of faults, so a history can be played again exactly.
//
// The World owns its processes' Actors, which are destroyed when their process dies. An event of a process (a message,
// a timer) runs only while that process lives, and waits while it is stopped. Packets of a connection arrive in order;
// those of several connections overtake each other. One thread; nothing here waits.
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "simulation/disk.h"
#include "simulation/faults.h"
#include "simulation/random.h"

namespace lockstep::simulation {

using Process = int;  ///< number of a process, the same in each of its lives
using Machine = int;
using Link = int;  ///< number of a connection, the same at both ends

/// What runs in a process. Its members are called by the World, one at a time.
class Actor {
 public:
  virtual ~Actor() = default;
  /// The process has started.
  virtual void start() = 0;
  /// Another process has connected to this one.
  virtual void accepted(Link /*link*/, Process /*from*/) {}
  /// The connection that this process asked for is made.
  virtual void connected(Link /*link*/) {}
  virtual void received(Link /*link*/, const std::any& /*message*/) {}
  /// The connection ended, or could not be made. Not called for an end that closed it itself.
  virtual void closed(Link /*link*/, const std::string& /*why*/) {}
  /// A user has sent SIGINT.
  virtual void interrupt() {}
};

struct NetworkOptions {
  double least_delay = 0.0001;
  double most_delay = 0.002;
  double slow_share = 0.01;  ///< share of packets that take up to `slow_delay`
  double slow_delay = 0.2;
  double connect_patience = 1;  ///< seconds until a connection to a machine out of reach fails
};

class World {
 public:
  using MakeActor = std::function<std::unique_ptr<Actor>(World&, Process)>;

  /// `record`: keep the notes, for printing.
  explicit World(uint64_t seed, bool record = false, NetworkOptions network = {});
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Making it.
  Machine add_machine(std::string name);
  /// Adds a process, started at time 0.
  Process add_process(std::string name, Machine machine, MakeActor make);
  void schedule(const std::vector<Fault>& faults);
  /// Runs after every event; for invariants.
  void check_always(std::function<void()> check) { check_ = std::move(check); }

  // Running it.
  /// Plays until `done`, a failure, or `limit` seconds. Returns true if it is done.
  bool run(const std::function<bool()>& done, double limit);
  /// Ends the history with a failure. Only the first one counts.
  void fail(const std::string& what);
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// A number that differs if anything happened differently.
  [[nodiscard]] uint64_t digest() const { return digest_; }
  [[nodiscard]] uint64_t events() const { return events_; }
  [[nodiscard]] double now() const { return now_; }
  /// When the last fault has healed.
  [[nodiscard]] double healed_at() const { return healed_at_; }
  Random& random() { return random_; }

  // For actors.
  /// The machine's own clock, which a process must use: it begins anywhere and is a little fast or slow.
  [[nodiscard]] double clock(Process process) const;
  [[nodiscard]] Disk& disk(Process process) { return machines_[at(process).machine].disk; }
  [[nodiscard]] const std::string& name(Process process) const { return at(process).name; }
  [[nodiscard]] bool alive(Process process) const { return at(process).actor != nullptr; }
  [[nodiscard]] bool stopped(Process process) const { return at(process).stopped; }
  /// Number of times that its machine got power: what a real one calls its boot id.
  [[nodiscard]] uint64_t boot(Process process) const { return machines_[at(process).machine].boots; }
  /// Number of times that it was started; differs between two lives.
  [[nodiscard]] uint64_t life(Process process) const { return at(process).life; }
  [[nodiscard]] Actor* actor(Process process) const { return at(process).actor.get(); }
  /// Runs `what` in this life of the process, `seconds` from now.
  void after(Process process, double seconds, std::function<void()> what);
  /// Asks for a connection. `connected` or `closed` follows.
  Link connect(Process from, Process to);
  /// Sends a message; a closed connection swallows it. `text` returns its name for the history.
  template <class Text>
  void send(Process from, Link link, std::any message, const Text& text) {
    send_packet(from, link, std::move(message), record_ ? std::string(text()) : std::string());
  }
  void close(Process from, Link link);
  /// What the machine's TCP knows: the seconds since the other machine last answered, if it has been asked since then;
  /// infinite: the connection has ended.
  [[nodiscard]] std::optional<double> unanswered(Process process, Link link) const;
  /// The process ends by itself, as exit does. It is not started again.
  void exit(Process process);
  /// The process ends by itself with an error, and is started again after that many seconds.
  void crash(Process process, double seconds);

  // For faults, and for tests of single steps.
  void kill(Process process);
  void restart(Process process);
  void stop(Process process);
  void go_on(Process process);
  void power_cut(Machine machine);
  void power_back(Machine machine);
  void cut(Machine from, Machine to, bool on);
  void reject(Machine a, Machine b, bool on);
  void apply(const Fault& fault);

  // The history.
  [[nodiscard]] bool recording() const { return record_; }
  /// Records a line; `text` is a function that returns it, called only if the history is recorded.
  template <class Text>
  void note(Process process, const Text& text) {
    if (record_) add_line(at(process).name, text());
  }
  /// Records a line about the whole world, which a report begins with.
  template <class Text>
  void introduce(const Text& text) {
    if (record_) history_.push_back("WORLD: " + text());
  }
  [[nodiscard]] const std::vector<std::string>& history() const { return history_; }

 private:
  struct MachineState {
    std::string name;
    Disk disk;
    double clock_offset = 0;
    double clock_speed = 1;
    bool powered = true;
    uint64_t boots = 1;
  };
  struct ProcessState {
    std::string name;
    size_t machine = 0;
    MakeActor make;
    std::unique_ptr<Actor> actor;
    uint64_t life = 0;
    bool stopped = false;
    bool exited = false;
    uint64_t stops = 0;                         ///< faults that stop it now
    std::deque<std::function<void()>> backlog;  ///< events that wait until it goes on
  };
  struct Packet {
    std::any message;
    std::string text;
    bool last = false;  ///< the sender closed the connection
  };
  struct End {
    Process process = 0;
    uint64_t life = 0;
    bool open = false;
    double latest_arrival = 0;  ///< of what was sent to this end
    std::deque<Packet> held;    ///< packets to this end that a cut holds back
    bool flushing = false;
    double heard = 0;    ///< when something last arrived here
    bool asked = false;  ///< something sent from here was swallowed
  };
  struct LinkState {
    std::array<End, 2> ends;
    bool made = false;
    bool half_open = false;
  };
  struct Event {
    double at = 0;
    uint64_t number = 0;
    std::function<void()> what;
    bool operator<(const Event& other) const { return at > other.at || (at == other.at && number > other.number); }
  };

  [[nodiscard]] ProcessState& at(Process process) { return processes_[static_cast<size_t>(process)]; }
  [[nodiscard]] const ProcessState& at(Process process) const { return processes_[static_cast<size_t>(process)]; }
  [[nodiscard]] bool lives(const End& end) const { return at(end.process).life == end.life && alive(end.process); }
  void schedule_at(double at, std::function<void()> what);
  /// Runs `what` in a life of a process: at once, or when it goes on.
  void run_in(Process process, uint64_t life, const std::function<void()>& what);
  void send_packet(Process from, Link link, std::any message, std::string text);
  void transmit(Link link, size_t to, Packet packet);
  void arrive(Link link, size_t to, const Packet& packet);
  void flush_held();
  [[nodiscard]] bool is_cut(const LinkState& link, size_t to) const;
  void lose_end(Link link, size_t which, const std::string& why);
  void end_process(Process process, bool silently);
  /// True if the connection is open at one of its ends at least, and between these two.
  [[nodiscard]] static bool joins(const LinkState& link, Process a, Process b);
  void break_link(size_t link, bool silently);
  void break_links(Process a, Process b, bool silently);
  void break_one(Process a, Process b, bool silently);
  double delay();
  [[nodiscard]] size_t side(Process process, Link link) const;
  void add_line(const std::string& name, const std::string& text);

  Random random_;
  NetworkOptions network_;
  bool record_;
  double now_ = 0;
  double healed_at_ = 0;
  uint64_t numbers_ = 0;
  uint64_t events_ = 0;
  uint64_t digest_ = 0;
  std::priority_queue<Event> queue_;
  std::vector<MachineState> machines_;
  std::deque<ProcessState> processes_;
  std::deque<LinkState> links_;
  std::vector<std::vector<int>> cuts_;        ///< by machines from and to: number of faults that cut them
  std::vector<std::vector<int>> rejects_;     ///< likewise: number of firewalls between them
  std::vector<std::unique_ptr<Actor>> dead_;  ///< destroyed after the event in which they died
  std::function<void()> check_;
  std::string failure_;
  std::vector<std::string> history_;
};

}  // namespace lockstep::simulation
