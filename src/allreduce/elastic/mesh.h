// Connections between all members. Each member listens at its address, connects to members with lower numbers, accepts
// those with higher ones, and retries as long as it lives. The mesh knows who is connected; the owner handles the
// messages. It also accepts guests: processes that ask for the run's name, and the evaluator.
//
// Callbacks come from threads of the mesh. For one member they come one after the other: on_connected, on_message...,
// on_lost, perhaps on_confirmed_dead.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/elastic/agreement.h"
#include "allreduce/elastic/peer_link.h"
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

  /// Sends to a member, or to all connected ones (-1). Does not wait.
  void send(int to, const Message& message);
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

  void keep_connected(int peer);
  /// Makes one connection and serves it. Returns why it ended, or could not be made.
  std::string connect_once(int peer);
  void handle(transport::Stream& stream);
  void serve(transport::Stream& stream, const transport::Frame& first);
  void run_link(int peer, uint64_t incarnation, transport::Stream& stream);
  std::string read_messages(int peer, uint64_t incarnation, transport::Stream& stream, PeerLink& link, bool& arrived);
  void enter(int peer, PeerLink& link);
  void leave(int peer);
  void probe_lost();
  void watch();
  void pause(std::chrono::milliseconds at_most);
  [[nodiscard]] wire::Hello hello() const;
  [[nodiscard]] std::string name(int peer) const;

  MeshOptions options_;
  MeshOwner& owner_;
  std::vector<cluster::Task> members_;
  int me_ = 0;
  std::atomic<bool> stopping_ = false;

  base::Mutex mutex_;
  base::Condition changed_;
  std::map<int, PeerLink*> links_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<int, int> lost_
      LOCKSTEP_GUARDED_BY(mutex_);  ///< members that should connect to this one: probes since they were lost
  std::list<std::pair<transport::Stream*, wire::Clock::time_point>> strangers_ LOCKSTEP_GUARDED_BY(mutex_);

  std::unique_ptr<transport::Server> server_;
  std::vector<std::thread> threads_;
};

/// Returns the member number of a peer that may connect. Throws DataError with the reason if it may not.
int check_hello(const wire::Hello& hello, const cluster::Spec& spec, const std::string& job, const std::string& here);

}  // namespace lockstep::allreduce::elastic
