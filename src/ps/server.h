// A parameter server: holds its shard of the parameters, applies pushes of workers, and answers with new parameters.
// ps:0 is also the coordinator of the job; the other servers follow its commits. A server gets its parameters from the
// chief, or from its own folder after a restart. It ends when the chief says that training has ended.
//
// Its Job (job.h) decides, its Applier (applier.h) makes the versions; the server listens, reads and writes frames, and
// waits. Owned by one thread, which calls run(). Each data stream has a handler thread; the listener's thread reads the
// control streams of workers. One mutex guards the job. A handler that waits for others sleeps until
// its wait is over; it polls only while there is no room for another copy of the parameters. A handler makes the
// versions that it finds; other threads make short ones, and leave long ones to the maker thread.
//
//    server.cpp              life of a server, streams
//    server_admission.cpp    admission of streams and members
//    server_pushes.cpp       handling of a push
//    server_requests.cpp     joining, leaving, snapshots
//    server_updates.cpp      making versions
//    server_parameters.cpp   first parameters, taking over state after a restart
//    server_watch.cpp        heartbeats and deadlines, following ps:0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "cluster/spec.h"
#include "ps/applier.h"
#include "ps/contributions.h"
#include "ps/control_streams.h"
#include "ps/job.h"
#include "ps/messages.h"
#include "ps/parameter_shard.h"
#include "ps/server_link.h"
#include "ps/server_times.h"
#include "ps/server_trace.h"
#include "transport/stream.h"

namespace lockstep::ps {

struct ServerOptions {
  int index = 0;  ///< index i of ps:i
  cluster::Spec spec;
  transport::Security security;
  std::string folder;  ///< folder of this role, for its state
  Durability durability = Durability::process;
  std::string job;  ///< digest of the settings that all roles must agree on
  std::string run;  ///< the run's name; the others learn it from ps:0
  int threads = 1;
  std::chrono::microseconds spin{0};  ///< time that waits for a frame poll before they sleep
  double patience = 600;
  bool resumed = false;        ///< drop a state of other settings: training resumes from a checkpoint
  bool contributions = false;  ///< ps:0 records the parts of each version (contributions.h)
  Log log;
  const std::atomic<bool>* interrupt = nullptr;
  base::TrafficMeter* meter = nullptr;   ///< counts the traffic of all its connections; borrowed
  base::Tracer* tracer = nullptr;        ///< records the pushes that workers trace; may be absent
  std::function<void()> at_update = {};  ///< for tests: called before each update is applied, with no lock held
};

class Server {
 public:
  /// Listens at once, and takes over the state in its folder, if any. Throws IoError, UsageError or DataError.
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Serves until training has ended. Throws Error if it gave up.
  void run();
  [[nodiscard]] int port() const { return listener_->port(); }
  /// Figures for a status line.
  struct Progress {
    bool initialised = false;
    uint64_t version = 0;
    uint64_t pushes = 0;
    uint64_t bytes_copied = 0;  ///< bytes of gradients copied, besides the optimizer's own reads and writes
    int active = 0;
    std::string state;
  };
  [[nodiscard]] Progress progress() const;
  /// Time that its pushes spent in each stage so far. Any thread.
  [[nodiscard]] std::vector<base::DurationRecord> times() const { return times_.records(); }

 private:
  [[nodiscard]] static double now();
  /// One data stream.
  struct Session {
    explicit Session(transport::Stream& s) : stream(s) {}
    transport::Stream& stream;
    wire::Hello hello;
    SessionId id = 0;
    std::shared_ptr<std::vector<float>> staging;  ///< gradient being received; null before the first
    size_t staged = 0;                            ///< elements of it received so far
    Element element = Element::kFloat32;          ///< of the parameters that are sent next
    uint64_t coming = 0;                          ///< sequence number of the push being received
    double coming_since = 0;
    double received = 0;                ///< when it was complete
    double updates = 0;                 ///< seconds of its wait in which versions were made (the server's mutex)
    base::TraceTrack* trace = nullptr;  ///< from its first traced push on; used by its handler
    bool traced = false;                ///< trace the complete push (the server's mutex)
    base::Condition woken;              ///< its wait is over
    bool asleep = false;                ///< its handler waits on `woken` (the server's mutex)
  };

  [[nodiscard]] bool coordinates() const { return options_.index == 0; }
  void log(std::string_view level, const std::string& text) const;

  // Streams.
  [[nodiscard]] wire::Hello check_hello(const transport::Stream& stream, const transport::Frame& frame);
  /// Throws DataError if the peer's certificate is not for the role it claims.
  void check_identity(const transport::Stream& stream, const std::string& role);
  /// Waits until no other process has the role. Throws DataError if another one has it and shows that it lives.
  void claim_role(const transport::Stream& stream, const wire::Hello& hello) LOCKSTEP_REQUIRES(mutex_);
  void handle(transport::Stream& stream);
  void serve_control(transport::Stream& stream, const wire::Hello& hello);
  /// A control stream that is served.
  struct Control {
    wire::Hello hello;
    std::optional<ControlStreams::Entry> entry;
  };
  void on_control(Control& control, const transport::Frame& frame);
  void on_control_end(Control& control);
  void serve_data(transport::Stream& stream, const wire::Hello& hello);
  void answer(Session& session, const transport::Frame& frame);
  [[nodiscard]] wire::Welcome welcome() const LOCKSTEP_REQUIRES(mutex_);
  void dismiss(Session& session);
  /// Handles the end of a stream of this process.
  void departed(const wire::Hello& hello, const std::string& why);

  // The connection to ps:0; for the other servers.
  void follow_coordinator();
  void follow_until_the_end();
  void serve_coordinator(transport::Stream& stream);
  void listen_to_coordinator(transport::Stream& stream);

  // Updates. Those that make versions release the mutex meanwhile.
  /// Makes all versions that can be made, and carries out the job's orders. Not for threads that read or
  /// send heartbeats.
  void settle() LOCKSTEP_REQUIRES(mutex_);
  /// Carries out the job's orders, makes versions that take little time, and leaves others to the maker thread.
  void let_others_make() LOCKSTEP_REQUIRES(mutex_);
  /// Whether making it takes no longer than waking another thread.
  [[nodiscard]] bool is_short(const Update& update) const;
  /// The maker thread.
  void make_versions();
  /// Makes the next version. Returns false if there is none, none can be made now, or another thread makes one.
  bool make_next() LOCKSTEP_REQUIRES(mutex_);
  void make(const Update& update) LOCKSTEP_REQUIRES(mutex_);
  void carry_out(const Orders& orders) LOCKSTEP_REQUIRES(mutex_);
  /// Wakes the streams whose waits are over or that look for room, and all who wait on `changed_`.
  void wake() LOCKSTEP_REQUIRES(mutex_);
  /// Lock-free: applies a counted gradient.
  void apply(const Booked& booked) LOCKSTEP_REQUIRES(mutex_);
  /// Lock-free: applies the session's counted gradient, if it has one. Returns the seconds it took.
  double apply_booked(Session& session) LOCKSTEP_REQUIRES(mutex_);
  /// Calls it with the mutex released, for an update of the shard. If it fails, the server ends.
  void with_shard(const std::function<void(const Applier::Work&)>& what) LOCKSTEP_REQUIRES(mutex_);
  void trace_update(const Decision& decision, double began, double stored) LOCKSTEP_REQUIRES(mutex_);

  // Requests.
  void on_push(Session& session, const transport::Frame& frame);
  void on_push_complete(Session& session, const transport::Frame& frame);
  [[nodiscard]] wire::Reply take_push(Session& session, const Push& push, const wire::PushEnd& end, View& view);
  void on_join(Session& session, const transport::Frame& frame);
  void on_pull(Session& session, const transport::Frame& frame);
  void on_init(Session& session, const transport::Frame& frame);
  void begin_init(const Session& session, const wire::JobConfig& config);
  void end_init(Session& session, const transport::Frame& frame);
  void on_leave(Session& session, const transport::Frame& frame);
  void on_wait_end(Session& session);
  void on_stop(Session& session, train::StopReason reason);
  void on_hold(Session& session);
  void on_snapshot(Session& session, const transport::Frame& frame);
  void on_follow(Session& session, const transport::Frame& frame);
  void on_end(Session& session);
  void send_state(Session& session, const View& view, const wire::Snapshot& end);
  /// Holds the current version for the session, to be sent without the mutex: end_init may wait for that with it.
  [[nodiscard]] View take_view(Session& session) const LOCKSTEP_REQUIRES(mutex_);
  void send_parameters(Session& session, const View& view, wire::Reply reply, uint64_t sequence);
  /// Sleeps until the session's wait is over; throws if the session or the server ends first.
  void wait(Session& session) LOCKSTEP_REQUIRES(mutex_);
  void wait_for(Session& session, const Waiting& what) LOCKSTEP_REQUIRES(mutex_);
  /// Waits for the first parameters. Throws DataError if the chief would wait.
  void wait_for_parameters(Session& session, const char* what) LOCKSTEP_REQUIRES(mutex_);
  /// Puts into the reply how long a push has waited for others since `since`, without the time that versions took.
  void tell_wait(const Session& session, wire::Reply& reply, double since) LOCKSTEP_REQUIRES(mutex_);

  // Parameters.
  void adopt(const wire::JobConfig& config) LOCKSTEP_REQUIRES(mutex_);
  void take_over_state();
  void drop_state(const std::string& why);
  [[nodiscard]] std::string state_file() const { return options_.folder + "/state"; }
  [[nodiscard]] std::string job_file() const { return options_.folder + "/job"; }

  void monitor();
  void watch_until_the_end();
  [[nodiscard]] bool alone_after_the_end();
  [[nodiscard]] bool is_interrupted() const { return options_.interrupt != nullptr && options_.interrupt->load(); }
  void end(const std::string& error) LOCKSTEP_REQUIRES(mutex_);
  /// Ends with the current exception; `run` throws it.
  void end_with_error();

  ServerOptions options_;
  uint64_t incarnation_;
  std::atomic<uint64_t> bytes_staged_ = 0;
  ControlStreams control_streams_{&Server::now};
  ServerTimes times_;
  ServerTrace trace_;

  std::atomic<int> claims_ = 0;  ///< processes that wait for a role
  Applier applier_;

  mutable base::Mutex mutex_;
  base::Condition changed_;
  base::Condition to_make_;  ///< wakes the maker thread
  base::Condition ending_;   ///< signals the end of this server or the job to threads that should sleep through updates
  Job job_ LOCKSTEP_GUARDED_BY(mutex_);
  std::shared_ptr<ParameterShard> shard_ LOCKSTEP_GUARDED_BY(mutex_);
  std::optional<ContributionsFile> contributions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<SessionId, Session*> sessions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::set<std::string> impostors_ LOCKSTEP_GUARDED_BY(mutex_);                  ///< refusals already logged
  transport::Stream* coordinator_stream_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;  ///< once it is welcomed
  transport::Stream* followed_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;            ///< the same, before it is as well
  bool asked_to_make_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ LOCKSTEP_GUARDED_BY(mutex_);
  /// First parameters being received.
  std::optional<wire::JobConfig> coming_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<std::vector<float>> coming_values_ LOCKSTEP_GUARDED_BY(mutex_);

  std::unique_ptr<transport::Server> listener_;
  std::thread monitor_;
  std::thread maker_;
  std::thread follow_thread_;
};

/// Returns true if the folder seems to hold a server's state, without opening it.
bool has_state(const std::string& folder);

}  // namespace lockstep::ps
