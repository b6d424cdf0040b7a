// A parameter server: holds its shard of the parameters, applies pushes of workers, and answers with new parameters.
// ps:0 is also the coordinator of the job; the other servers follow its commits. A server gets its parameters from the
// chief, or from its own folder after a restart. It ends when the chief says that training has ended.
//
// Owned by one thread, which calls run(). Each stream has a handler thread; one mutex guards the job, the coordinator
// and the shard's updates. A handler that waits for others waits on `changed_`; nothing polls.
//
//    server.cpp              life of a server, streams
//    server_watch.cpp        heartbeats and deadlines, following ps:0
//    server_admission.cpp    admission of streams and members
//    server_pushes.cpp       handling of a push
//    server_updates.cpp      versions, commits, parameters
//    server_parameters.cpp   first parameters, taking over state after a restart
//    server_snapshots.cpp    snapshots for checkpoints and the evaluator
//    server_end.cpp          leaving and the end
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "cluster/spec.h"
#include "ps/control_streams.h"
#include "ps/coordinator.h"
#include "ps/follower.h"
#include "ps/messages.h"
#include "ps/parameter_shard.h"
#include "ps/server_link.h"
#include "ps/server_times.h"
#include "ps/server_trace.h"
#include "ps/silence.h"
#include "transport/stream.h"

namespace lockstep::ps {

constexpr size_t kMostLedgerBytes = size_t{1} << 20;  ///< largest ledger of a version, whose data may be in many pieces

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
  base::TrafficMeter* meter = nullptr;  ///< counts the traffic of all its connections; borrowed
  base::Tracer* tracer = nullptr;       ///< records the pushes that workers trace; may be absent
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
    std::shared_ptr<std::vector<float>> staging;  ///< gradient being received; null before the first
    size_t staged = 0;                            ///< elements of it received so far
    uint64_t coming = 0;                          ///< sequence number of the push being received
    double coming_since = 0;
    double received = 0;                ///< when it was complete
    base::TraceTrack* trace = nullptr;  ///< from its first traced push on; used by its handler
    bool traced = false;                ///< trace the complete push (the server's mutex)
    bool given_up = false;              ///< the same mutex
    bool holds = false;                 ///< keeps all state unchanged for a snapshot
    uint64_t told_generation = 0;       ///< generation of its parameters; 0: it waits for the first ones
    double heard = now();               ///< when its process last had a control stream here (the server's mutex)
  };
  using SessionPtr = std::shared_ptr<Session>;
  /// A member's latest push that is here whole. It outlives its session, because it may have been counted.
  struct Gradient {
    PushName push;
    std::shared_ptr<std::vector<float>> values;
    float scale = 1;
    std::optional<optim::Update> booked;  ///< lock-free: the update is counted, and its handler applies it next
  };

  [[nodiscard]] bool coordinates() const { return options_.index == 0; }
  void log(std::string_view level, const std::string& text) const;
  [[nodiscard]] std::string member_name(int member) const;

  // Streams.
  [[nodiscard]] wire::Hello check_hello(const transport::Stream& stream, const transport::Frame& frame);
  /// Throws DataError if the peer's certificate is not for the role it claims.
  void check_identity(const transport::Stream& stream, const std::string& role);
  /// Waits until no other process has the role. Throws DataError if another one has it and shows that it lives.
  void claim_role(const transport::Stream& stream, const wire::Hello& hello) LOCKSTEP_REQUIRES(mutex_);
  void give_up_silent() LOCKSTEP_REQUIRES(mutex_);
  void handle(transport::Stream& stream);
  void serve_control(transport::Stream& stream, const wire::Hello& hello);
  void serve_data(transport::Stream& stream, const wire::Hello& hello);
  void answer(const SessionPtr& session, const transport::Frame& frame);
  [[nodiscard]] wire::Welcome welcome() const LOCKSTEP_REQUIRES(mutex_);
  void admit(const SessionPtr& session);
  void dismiss(const SessionPtr& session);
  /// Returns what another server missed while it was away. Throws DataError if its state does not fit.
  [[nodiscard]] std::vector<Decision> missed_by(const wire::Hello& hello) LOCKSTEP_REQUIRES(mutex_);
  void on_received(const wire::Hello& hello, const wire::Received& received);
  /// Handles the end of a stream of this process. Removes the process if it has no control stream any more.
  void departed(const wire::Hello& hello, const std::string& why);
  /// Returns, by member, the push that each member delaying the next version should send.
  [[nodiscard]] std::map<int, std::string> awaited();

  // Serves the connection to ps:0; for the other servers.
  void follow_coordinator();
  void follow_until_the_end();
  void serve_coordinator(transport::Stream& stream);
  void listen_to_coordinator(transport::Stream& stream);
  void tell_received(int member, const PushName& push) LOCKSTEP_REQUIRES(mutex_);
  void on_commit(const wire::Commit& commit);
  void heard_of_coordinator();
  /// Gives up a connection to ps:0 that is silent.
  void watch_coordinator() LOCKSTEP_REQUIRES(mutex_);

  // Updates.
  void on_push(const SessionPtr& session, const transport::Frame& frame);
  void on_push_complete(const SessionPtr& session, const transport::Frame& frame);
  void on_join(const SessionPtr& session, const transport::Frame& frame);
  /// Counts the steps a joiner had seen that are lost because all went back.
  void count_lost(const transport::Header& join) LOCKSTEP_REQUIRES(mutex_);
  void on_pull(const SessionPtr& session, const transport::Frame& frame);
  [[nodiscard]] wire::Reply push_as_coordinator(const SessionPtr& session, const Push& push, const wire::PushEnd& end,
                                                View& view);
  [[nodiscard]] wire::Reply push_as_follower(const SessionPtr& session, const Push& push, const wire::PushEnd& end,
                                             View& view);
  /// Keeps the whole push in the session until the member's next one.
  void keep(const SessionPtr& session, const Push& push, float scale) LOCKSTEP_REQUIRES(mutex_);
  /// The session's memory is needed for the next push.
  void overwrite(const SessionPtr& session) LOCKSTEP_REQUIRES(mutex_);
  void commit_if_ready() LOCKSTEP_REQUIRES(mutex_);
  void announce(const Decision& decision) LOCKSTEP_REQUIRES(mutex_);
  /// Makes the version of a decision, without the gradients that are lost. Lock-free: counts it first, so that what
  /// becomes of its worker meanwhile changes nothing; apply_booked follows.
  void apply_decision(const Decision& decision) LOCKSTEP_REQUIRES(mutex_);
  void apply_announced() LOCKSTEP_REQUIRES(mutex_);
  /// Returns false if Views hold all buffers of the parameters. Updates wait then, without the lock, until a worker has
  /// read its parameters. Throws IoError after kRoomWait.
  [[nodiscard]] bool has_room() LOCKSTEP_REQUIRES(mutex_);
  void book_in_place(const Decision& decision, const optim::Update& update, bool is_here) LOCKSTEP_REQUIRES(mutex_);
  /// Lock-free: applies the session's counted gradient with the lock released. Returns the seconds it took.
  double apply_booked(const SessionPtr& session) LOCKSTEP_REQUIRES(mutex_);
  /// Returns the gradients of a decision that are here.
  [[nodiscard]] std::vector<Contribution> contributions_to(const Decision& decision) LOCKSTEP_REQUIRES(mutex_);
  /// Returns how the optimizer applies these gradients; sync: with the norm of their sum for clipping.
  [[nodiscard]] optim::Update update_of(const Decision& decision, const std::vector<Contribution>& contributions)
      LOCKSTEP_REQUIRES(mutex_);
  /// Returns true if one of the pushes is traced.
  bool trace_contributions(const Decision& decision, double began) LOCKSTEP_REQUIRES(mutex_);
  /// Whether the session's handler applies what is counted of it.
  [[nodiscard]] bool has_handler(int member, const Gradient& gradient) const LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] std::string ledger_bytes() LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] std::string checked_ledger() LOCKSTEP_REQUIRES(mutex_);
  void record_contributions() LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] wire::Reply reply_for(int member, uint64_t known_plan) LOCKSTEP_REQUIRES(mutex_);
  void send_parameters(const SessionPtr& session, const View& view, wire::Reply reply, uint64_t sequence);
  /// Waits on `changed_` until `done`; throws if the session or the server ends first.
  template <class Done>
  void wait_until(const SessionPtr& session, Done done) LOCKSTEP_REQUIRES(mutex_);
  /// Waits for the first parameters. Throws DataError if the chief would wait, because only the chief can set them.
  void wait_for_parameters(const SessionPtr& session, const char* what) LOCKSTEP_REQUIRES(mutex_);
  /// Counts a version made since `began`, with `stored` seconds for making it durable.
  void count_update(double began, double stored, bool traced) LOCKSTEP_REQUIRES(mutex_);
  /// Puts into the reply how long a push has waited for others since `since`, without the time its version took.
  void tell_wait(const Session& session, wire::Reply& reply, double since, double update) LOCKSTEP_REQUIRES(mutex_);

  // Requests.
  void on_init(const SessionPtr& session, const transport::Frame& frame);
  void begin_init(const SessionPtr& session, const wire::JobConfig& job);
  void end_init(const SessionPtr& session, const transport::Frame& frame);
  void on_leave(const SessionPtr& session, const transport::Frame& frame);
  void on_wait_end(const SessionPtr& session);
  void on_stop(const SessionPtr& session, train::StopReason reason);
  void on_hold(const SessionPtr& session);
  void on_snapshot(const SessionPtr& session, const transport::Frame& frame);
  void on_follow(const SessionPtr& session, const transport::Frame& frame);
  void send_state(const SessionPtr& session, const View& view, const wire::Snapshot& end);
  void keep_for_evaluator(uint64_t id, const View& view) LOCKSTEP_REQUIRES(mutex_);
  void release(const SessionPtr& session) LOCKSTEP_REQUIRES(mutex_);
  /// Lock-free with several servers: returns true if no counted update is still being applied.
  [[nodiscard]] bool is_quiet() const LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] CoordinatorOptions rules_of(const wire::JobConfig& job) const;
  void adopt(const wire::JobConfig& job) LOCKSTEP_REQUIRES(mutex_);
  void take_over_state();
  void drop_state(const std::string& why);
  [[nodiscard]] std::string state_file() const { return options_.folder + "/state"; }
  [[nodiscard]] std::string job_file() const { return options_.folder + "/job"; }

  void monitor();
  void watch_until_the_end();
  /// Returns true if, after the end, everyone has left who should leave before this server.
  [[nodiscard]] bool alone_after_the_end();
  /// After the end: returns true if a process may still connect to hear of it or to take the last snapshot.
  [[nodiscard]] bool may_come() LOCKSTEP_REQUIRES(mutex_);
  void look_after() LOCKSTEP_REQUIRES(mutex_);
  void expire_and_warn() LOCKSTEP_REQUIRES(mutex_);
  void end(const std::string& error) LOCKSTEP_REQUIRES(mutex_);
  /// Ends with the current exception; `run` throws it.
  void end_with_error();

  ServerOptions options_;
  uint64_t incarnation_;
  std::atomic<uint64_t> bytes_staged_ = 0;
  ControlStreams control_streams_;
  ServerTimes times_;
  ServerTrace trace_;

  std::atomic<int> claims_ = 0;  ///< processes that wait for a role

  mutable base::Mutex mutex_;
  base::Condition changed_;
  base::Condition ending_;  ///< signals the end of this server or the job to threads that should sleep through updates
  std::optional<wire::JobConfig> job_ LOCKSTEP_GUARDED_BY(mutex_);
  Rules rules_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<program::ParameterRange> ranges_ LOCKSTEP_GUARDED_BY(mutex_);
  std::shared_ptr<ParameterShard> shard_ LOCKSTEP_GUARDED_BY(mutex_);
  bool initialised_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  uint64_t generation_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  uint64_t began_at_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< version this generation began at
  uint64_t lost_ LOCKSTEP_GUARDED_BY(mutex_) = 0;      ///< known steps after it that were made before and are lost
  std::unique_ptr<Coordinator> coordinator_ LOCKSTEP_GUARDED_BY(mutex_);  ///< only ps:0
  std::optional<ContributionsFile> contributions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<int, SessionPtr> sessions_ LOCKSTEP_GUARDED_BY(mutex_);  ///< data streams by member
  SessionPtr evaluator_ LOCKSTEP_GUARDED_BY(mutex_);
  std::set<std::string> impostors_ LOCKSTEP_GUARDED_BY(mutex_);  ///< refusals already logged
  int held_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< snapshots in progress, during which nothing may change
  float gradient_norm_ LOCKSTEP_GUARDED_BY(mutex_) = std::numeric_limits<float>::quiet_NaN();
  uint64_t pushes_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  double update_seconds_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< seconds that making the latest version took
  double alone_since_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  double version_since_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  double servers_since_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< when no other server was last waited for
  bool warned_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::map<int, Gradient> gradients_ LOCKSTEP_GUARDED_BY(mutex_);  ///< by member
  int applying_ LOCKSTEP_GUARDED_BY(mutex_) = 0;                   ///< lock-free updates under way
  double no_room_since_ LOCKSTEP_GUARDED_BY(mutex_) = 0;           ///< 0: there is room for the next version
  std::optional<Follower> follower_ LOCKSTEP_GUARDED_BY(mutex_);   ///< other servers than ps:0
  transport::Stream* coordinator_stream_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;  ///< once it is welcomed
  transport::Stream* followed_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;            ///< the same, before it is as well
  Silence coordinator_silence_ LOCKSTEP_GUARDED_BY(mutex_);
  bool told_silence_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  /// Snapshots that the evaluator has not had yet.
  struct Kept {
    uint64_t id = 0;  ///< ps:0's version, the id shared by all servers' parts
    std::shared_ptr<const std::vector<float>> parameters;
  };
  std::deque<Kept> snapshots_ LOCKSTEP_GUARDED_BY(mutex_);
  bool evaluator_came_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool evaluator_knows_end_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  double evaluator_heard_ LOCKSTEP_GUARDED_BY(mutex_);  ///< when a process of it last said hello, or this server began
  std::map<int, double> lost_at_ LOCKSTEP_GUARDED_BY(mutex_);  ///< when unfinished members were lost
  std::set<int> know_end_ LOCKSTEP_GUARDED_BY(mutex_);         ///< members that have heard of the end
  uint64_t snapshot_taken_ LOCKSTEP_GUARDED_BY(mutex_) = 0;    ///< newest snapshot that the evaluator has
  bool server_lost_state_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool finishing_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  double finishing_since_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ LOCKSTEP_GUARDED_BY(mutex_);
  /// First parameters being received.
  std::optional<wire::JobConfig> coming_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<std::vector<float>> coming_values_ LOCKSTEP_GUARDED_BY(mutex_);

  std::unique_ptr<transport::Server> listener_;
  std::thread monitor_;
  std::thread follow_thread_;
};

/// Returns true if the folder seems to hold a server's state, without opening it.
bool has_state(const std::string& folder);

}  // namespace lockstep::ps
