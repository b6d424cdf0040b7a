// Connections between members. Each member listens at its address, connects to members with lower numbers, accepts
// those with higher ones, and retries as long as it lives. The mesh knows who is connected; the owner handles the
// messages. It also accepts guests: processes that ask for the run's name, and the evaluator.
//
// In a cluster of up to kMeshMembers members each is connected with all others. In a larger one each has a few
// neighbours in a tree, and members pass on each other's messages (relay.h); the owner sees no difference, but that a
// broken connection may also come from elsewhere.
//
//   mesh.cpp        greetings, all connections of a small cluster, silence
//   mesh_tree.cpp   the tree of a large cluster
//
// Callbacks come from threads of the mesh. For one member they come one after the other: on_connected, on_message...,
// on_lost, perhaps on_confirmed_dead.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/elastic/agreement.h"
#include "allreduce/elastic/peer_link.h"
#include "allreduce/elastic/relay.h"
#include "base/mutex.h"
#include "cluster/spec.h"
#include "transport/stream.h"
#include "wire/liveness.h"

namespace lockstep::wire {
class Hello;
}

namespace lockstep::allreduce::elastic {

struct MeshOptions {
  cluster::Spec spec;
  cluster::Task task;
  transport::Security security;
  std::string job;
  uint64_t incarnation = 0;
  base::TrafficMeter* meter = nullptr;  ///< counts the traffic of all connections; borrowed
};

class MeshOwner {
 public:
  virtual ~MeshOwner() = default;
  /// Returns this member's status, for the greeting and the heartbeat.
  virtual Message status() = 0;
  virtual void on_connected(int peer, const MemberStatus& status) = 0;
  virtual void on_message(int peer, const Message& message) = 0;
  virtual void on_lost(int peer, const std::string& why) = 0;
  virtual void on_confirmed_dead(int peer) = 0;
  virtual void on_unreachable(int peer, const std::string& why) = 0;
  /// A process was refused, or refused this member (`by_member`: the process at another member's address).
  virtual void on_refused(const std::string& line, bool by_member) = 0;
  /// This member cannot accept connections any more: it must end.
  virtual void on_failed(const std::string& line) = 0;
  virtual void serve_guest(transport::Stream& stream, const transport::Frame& first) = 0;
  /// Called about four times a second.
  virtual void tick() = 0;
};

class Mesh {
 public:
  /// Listens at once. Throws IoError or UsageError if it cannot.
  Mesh(MeshOptions options, MeshOwner& owner);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// True if members pass on each other's messages.
  [[nodiscard]] bool relays() const { return relays_; }
  /// Sends to some members, as far as they are connected. Does not wait.
  void send(const std::vector<int>& to, const Message& message);
  /// Sends this member's status to all others.
  void publish(const MemberStatus& status);
  /// Ends all connections and threads; no callback comes after it.
  void stop();

 private:
  /// A stream opened by this side, until its peer has identified itself.
  struct Stranger {
    Stranger(Mesh& of, transport::Stream& stream);
    ~Stranger();
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

    Mesh& mesh;
    std::list<std::pair<transport::Stream*, wire::Clock::time_point>>::iterator place;
  };

  /// Does a thread's work. If it needs another thread and the system gives none, this member ends with that reason.
  template <class Work>
  void run_thread(const Work& work);
  void keep_connected(int peer);
  /// Makes one connection and serves it. Returns why it could not be made.
  std::string connect_once(int peer);
  /// Connects with a member that greets in return. If it does not, `why` says so.
  std::unique_ptr<transport::Stream> greet(int peer, uint64_t& incarnation, std::string& why);
  void handle(transport::Stream& stream);
  void serve(transport::Stream& stream, const transport::Frame& first);
  void run_link(int peer, uint64_t incarnation, transport::Stream& stream);
  std::string read_messages(int peer, uint64_t incarnation, transport::Stream& stream, PeerLink& link, bool& arrived);
  void enter(int peer, PeerLink& link);
  void leave(int peer);
  void probe_lost();
  void confirm_dead(int peer);
  void watch();
  void check_links(bool paused);

  // mesh_tree.cpp
  void seek_parent();
  void rest();
  void try_parent(int peer);
  void change_parent(int peer, uint64_t incarnation, std::unique_ptr<transport::Stream> stream);
  /// Asks the parent to end the connection, so that no message is lost.
  void leave_parent();
  /// Makes room for a child. Returns why there is none; empty: there is.
  std::string why_full(int peer);
  void run_tree_link(int peer, uint64_t incarnation, transport::Stream& stream);
  std::string read_frames(int peer, uint64_t incarnation, transport::Stream& stream, PeerLink& link);
  void let_go(int peer, transport::Stream& stream, PeerLink& link);
  void end_tree_link(int peer, const std::string& why);
  /// Lets all neighbours take what was sent, and hang up.
  void part();
  /// Calls `action` with the relay, sends its frames, and tells the owner its news, in order.
  template <class Action>
  void with_relay(const Action& action);
  /// Lets the links send what the relay has for them.
  void send_frames() LOCKSTEP_REQUIRES(mutex_);
  /// Gives a link all that the relay has for it, before this side asks to end it.
  void hand_over(int peer) LOCKSTEP_REQUIRES(mutex_);
  void pass_on(const News& news);
  [[nodiscard]] static double now();

  void pause(std::chrono::milliseconds at_most);
  [[nodiscard]] wire::Hello hello() const;
  [[nodiscard]] std::string name(int peer) const;

  MeshOptions options_;
  MeshOwner& owner_;
  std::vector<cluster::Task> members_;
  int me_ = 0;
  bool relays_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> parting_ = false;  ///< takes no new neighbours

  base::Mutex order_;  ///< taken before the other one, and held while the owner hears news of the relay
  base::Mutex mutex_;
  base::Condition changed_;
  std::map<int, PeerLink*> links_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<int, int> lost_
      LOCKSTEP_GUARDED_BY(mutex_);  ///< members that another one must connect with: probes since they were lost
  std::list<std::pair<transport::Stream*, wire::Clock::time_point>> strangers_ LOCKSTEP_GUARDED_BY(mutex_);

  Relay relay_ LOCKSTEP_GUARDED_BY(mutex_);
  int left_ LOCKSTEP_GUARDED_BY(mutex_) = -1;          ///< parent that was asked to end the connection
  std::set<int> dropped_ LOCKSTEP_GUARDED_BY(mutex_);  ///< children that were asked to find another parent
  bool parent_ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;

  std::unique_ptr<transport::Server> server_;
  std::thread parent_thread_;  ///< reads from the parent; used by the thread that seeks parents
  std::vector<std::thread> threads_;
};

/// Returns the member number of a peer that may connect. Throws DataError with the reason if it may not.
int check_hello(const wire::Hello& hello, const cluster::Spec& spec, const std::string& job, const std::string& here);

}  // namespace lockstep::allreduce::elastic
