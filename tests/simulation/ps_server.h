// A parameter server in the simulated world: the real Job, Coordinator, Follower and Peers, with a simulated network,
// state file and applier. An update has three events: it is begun, stored, and told.
//
//    ps_server.cpp           its events, and the state file
//    ps_server_updates.cpp   updates
//    ps_server_streams.cpp   streams of other processes
//    ps_server_requests.cpp  what they ask for
//    ps_server_watch.cpp     ps:0, deadlines and the end
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "ps/job.h"
#include "ps/peers.h"
#include "simulation/ps_cluster.h"

namespace lockstep::simulation {

/// The state file: these numbers, then the job and the ledger.
struct Stored {
  uint64_t generation = 0;
  uint64_t version = 0;
  uint64_t digest = 0;
  uint64_t boot = 0;  ///< of its machine
};

/// A process with a Job. Owned by the World.
class ServerActor final : public Actor {
 public:
  ServerActor(PsCluster& cluster, Process me, int index)
      : cluster_(cluster),
        world_(cluster.world),
        me_(me),
        index_(index),
        job_(job_options(cluster.options, index), world_.clock(me)),
        peers_(world_.clock(me)),
        incarnation_(cluster.born(me)) {}

  void start() override;
  void accepted(Link link, Process /*from*/) override { conns_[link]; }
  void connected(Link link) override;
  void received(Link link, const std::any& message) override;
  void closed(Link link, const std::string& why) override;

 private:
  struct Conn {
    enum What : uint8_t { fresh, claims, control, data };
    What what = fresh;
    wire::Hello hello;
    double came = 0;
    ps::Peers::Id peer = 0;
    ps::SessionId session = 0;
    std::deque<FramePtr> frames;  ///< that its handler has not read
    bool busy = false;            ///< its handler is at a frame
    std::function<void()> then;   ///< once the job says that its wait is over
    uint64_t coming = 0;
    std::shared_ptr<std::vector<float>> staging;
  };

  static ps::JobOptions job_options(const PsOptions& options, int index);
  [[nodiscard]] double now() const { return world_.clock(me_); }
  [[nodiscard]] bool has(OldFault fault) const { return cluster_.options.fault == fault; }
  [[nodiscard]] uint64_t version() const { return job_.initialised() ? job_.version() : 0; }
  /// Runs an event to its end: what it makes possible happens, too.
  template <class What>
  void guarded(const What& what) {
    if (over_) return;
    try {
      what();
      settle();
      move_on();
    } catch (const IoError& error) {
      end(error.what());
    } catch (const DataError& error) {
      end(error.what());
    }
  }
  void end(const std::string& why);
  void later(double seconds, std::function<void()> what);
  template <class Message>
  void say(Link link, Frame frame, Message message) {
    frame.message = std::make_shared<const Message>(std::move(message));
    say(link, std::move(frame));
  }
  void say(Link link, Frame frame);
  void refuse(Link link, ps::RefusalKind kind, const std::string& why);

  // The state.
  void store(const std::string& ledger);
  void resume();

  // Updates.
  [[nodiscard]] bool has_room();
  void settle();
  void unlock();
  void begin(ps::Update update);
  /// As it was once: applies a lock-free update with the lock released, and counts it after that.
  void apply_first(ps::Update update);
  void carry_out();
  void announce(const ps::Decision& decision);
  void tell_received(int member, const ps::PushName& push);

  // Streams.
  [[nodiscard]] Link link_of(ps::SessionId id) const;
  void drop(Link link, const std::string& why);
  /// The stream has ended.
  void forget(Link link, const std::string& why);
  void greeted(Link link, const Frame& frame);
  void claim(Link link);
  void welcome(Link link);
  void from_peer(Link link, const Frame& frame);
  /// Goes on with the streams whose waits are over, and with processes that wait for a role.
  void move_on();
  /// Runs a part of a handler; a peer that asks for what cannot be is refused.
  template <class What>
  void run(Link link, const What& what) {
    try {
      what();
    } catch (const IoError&) {
      throw;
    } catch (const DataError& error) {
      refuse(link, ps::RefusalKind::message, error.what());
    }
  }
  void wait(Link link, const ps::Waiting& what, std::function<void()> then);
  void wait_for_parameters(Link link, const char* what, std::function<void()> then);
  /// The handler reads its next frame.
  void work(Link link);
  void done(Link link);
  void answer(Link link, const FramePtr& frame);
  void take_push(Link link, const Frame& frame);
  /// As it was once: what comes is applied, whatever ps:0 says.
  void apply_at_once(const ps::Push& push);
  /// The View is taken with the lock, and sent after that; the transport needs it until the worker has read it.
  void send_parameters(Link link, wire::Reply reply, uint64_t sequence);
  void set_parameters(Link link, const Frame& frame);
  void send_snapshot(Link link, const Frame& asked);
  void send_news(Link link);
  void finish_training();

  // ps:0.
  void follow() { ps0_ = world_.connect(me_, cluster_.server(0)); }
  void lost_ps0(const std::string& why);
  void from_ps0(const Frame& frame);

  // Time.
  void tick();
  void heartbeats(bool finishing);
  void check_waits();
  void leave();

  PsCluster& cluster_;
  World& world_;
  Process me_;
  int index_;
  ps::Job job_;
  ps::Peers peers_;
  uint64_t incarnation_;
  std::map<Link, Conn> conns_;
  std::map<Link, uint64_t> views_;  ///< versions that are being sent
  size_t buffers_ = 3;              ///< of the parameters, reserved at the start
  Stored files_;
  std::string config_;  ///< the job, as it is stored
  wire::JobConfig coming_;
  Link ps0_ = -1;
  bool welcomed_by_ps0_ = false;
  bool over_ = false;
  bool ticks_fast_ = false;
  double next_heartbeat_ = 0;

  // Faults that were put back.
  bool locked_ = false;  ///< waits for room with its lock
  bool booking_ = false;
  uint64_t announced_ = 0;
  std::deque<std::function<void()>> blocked_;
};

}  // namespace lockstep::simulation
