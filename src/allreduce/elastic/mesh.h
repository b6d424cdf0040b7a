// Connections between all members: each listens at its address, connects to those with lower numbers and is connected
// to by those with higher ones, and tries again for as long as it lives. It knows who is there; what they say is the
// owner's. Also lets guests in: those who ask for the run's name, the evaluator.
//
// Callbacks come from threads of the mesh, for one member one after the other: arrived, took..., lost, perhaps certain.
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
  base::TrafficMeter* meter = nullptr;  ///< of all its connections; borrowed
};

class MeshOwner {
 public:
  virtual ~MeshOwner() = default;
  /// Of this member; the greeting and the heartbeat.
  virtual Message status() = 0;
  virtual void arrived(int peer, const MemberStatus& status) = 0;
  virtual void took(int peer, const Message& message) = 0;
  virtual void lost(int peer, const std::string& why) = 0;
  virtual void certain(int peer) = 0;
  virtual void absent(int peer, const std::string& why) = 0;
  /// Someone is not one of us, or says so of this member (`by_member`: the one at that member's address).
  virtual void refused(const std::string& line, bool by_member) = 0;
  /// This member can accept no more connections: it must end.
  virtual void failed(const std::string& line) = 0;
  virtual void serve_guest(transport::Stream& stream, const transport::Frame& first) = 0;
  /// Some four times a second.
  virtual void tick() = 0;
};

class Mesh {
 public:
  /// Listens at once; throws IoError or UsageError where it cannot.
  Mesh(MeshOptions options, MeshOwner& owner);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// To a member, or to all (-1) that there is a connection with. Does not wait.
  void send(int to, const Message& message);
  /// Ends all connections and threads; nothing is called after it.
  void stop();

 private:
  /// A stream that this side opened, while its peer has not said who it is.
  struct Stranger {
    Stranger(Mesh& of, transport::Stream& stream);
    ~Stranger();
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

    Mesh& mesh;
    std::list<std::pair<transport::Stream*, wire::Clock::time_point>>::iterator place;
  };

  void connect_for_good(int peer);
  /// One connection's life. The reason why it ended or none was made.
  std::string connect_once(int peer);
  void handle(transport::Stream& stream);
  void serve(transport::Stream& stream, const transport::Frame& first);
  void converse(int peer, uint64_t incarnation, transport::Stream& stream);
  std::string listen(int peer, uint64_t incarnation, transport::Stream& stream, PeerLink& link, bool& arrived);
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
  std::map<int, int> lost_ LOCKSTEP_GUARDED_BY(mutex_);  ///< members that connect to this one: probes since
  std::list<std::pair<transport::Stream*, wire::Clock::time_point>> strangers_ LOCKSTEP_GUARDED_BY(mutex_);

  std::unique_ptr<transport::Server> server_;
  std::vector<std::thread> threads_;
};

/// Who says that it is `hello`, and is welcome; a DataError says why not.
int check_hello(const wire::Hello& hello, const cluster::Spec& spec, const std::string& job, const std::string& here);

}  // namespace lockstep::allreduce::elastic
