// A parameter server: holds its shard of the parameters, applies pushes of workers, and answers with new parameters.
// ps:0 is also the coordinator of the job; the other servers follow its commits. A server gets its parameters from the
// chief, or from its own folder after a restart. It ends when the chief says that training has ended.
//
// Its Job (job.h) decides, its Applier (applier.h) makes the versions; the server reads and writes frames, and answers
// when the job says that a wait is over. Owned by one thread, which calls run(). One mutex guards the job.
//
// Threads, however many workers there are: the listener's, its hands, which serve all streams (server_session.h), the
// monitor, the maker, and with several servers one that follows ps:0. No request holds a hand while it waits. A hand
// makes the small versions that it finds; those that take long, and those that other threads find, are left to the
// maker, which also looks for room while there is none for another copy of the parameters.
//
//    server.cpp              life of a server, streams
//    server_admission.cpp    admission of streams and members
//    server_waits.cpp        waits and answers of a stream
//    server_pushes.cpp       handling of a push
//    server_requests.cpp     joining, leaving, snapshots
//    server_updates.cpp      making versions
//    server_parameters.cpp   first parameters, taking over state after a restart
//    server_watch.cpp        heartbeats and deadlines, following ps:0
#pragma once

#include <atomic>
#include <deque>
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
#include "ps/applier.h"
#include "ps/contributions.h"
#include "ps/control_streams.h"
#include "ps/job.h"
#include "ps/messages.h"
#include "ps/parameter_shard.h"
#include "ps/server_options.h"
#include "ps/server_session.h"
#include "ps/server_times.h"
#include "ps/server_trace.h"
#include "transport/attend.h"

namespace lockstep::ps {

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
  using Session = ServerSession;

  static constexpr int kMostAtOnce = 8;  ///< versions that a thread makes before it looks at what else it has to do

  [[nodiscard]] bool coordinates() const { return options_.index == 0; }
  void log(std::string_view level, const std::string& text) const;

  // Streams.
  [[nodiscard]] wire::Hello check_hello(const transport::Stream& stream, const transport::Frame& frame);
  /// Throws DataError if the peer's certificate is not for the role it claims.
  void check_identity(const transport::Stream& stream, const std::string& role);
  /// Waits until no other process has the role, and opens the stream then; refuses it if another one has the role and
  /// shows that it lives.
  void claim_role(Session& session, double came) LOCKSTEP_REQUIRES(mutex_);
  void refuse_claim(const Session& session, const std::string& holder) LOCKSTEP_REQUIRES(mutex_);
  void handle(transport::Stream& stream);
  /// Tells the peer why its stream ends.
  void refuse(transport::Stream& stream, const std::exception& error);
  /// The disk is full or failed, or a limit is reached. Acknowledged pushes are safe, but this server cannot go on.
  [[nodiscard]] static bool ends_server(const std::exception& error);
  void open(Session& session) LOCKSTEP_REQUIRES(mutex_);
  void open_control(Session& session) LOCKSTEP_REQUIRES(mutex_);
  void on_control(Session& session, const transport::Frame& frame);
  void on_control_end(Session& session);
  void answer(Session& session, const transport::Frame& frame);
  [[nodiscard]] wire::Welcome welcome() const LOCKSTEP_REQUIRES(mutex_);
  void on_end_of(Session& session);
  void dismiss(Session& session);
  /// Handles the end of a stream of this process.
  void departed(const wire::Hello& hello, const std::string& why);

  // Waits and answers.
  /// Sends what is left of an answer, and goes on after a wait.
  transport::Next proceed(Session& session);
  /// Calls what follows the session's waits that are over; makes versions if that may end one. Throws if the session or
  /// the server ends first.
  void go_on(Session& session) LOCKSTEP_REQUIRES(mutex_);
  /// True if its wait ends, one way or another.
  [[nodiscard]] bool may_go_on(const Session& session) const LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] bool is_over(const Session& session) const;
  /// Lets the hands look at sessions whose waits are over.
  void wake_waiting() LOCKSTEP_REQUIRES(mutex_);
  void wake_to_make() LOCKSTEP_REQUIRES(mutex_);
  /// The session waits, and `then` follows; go_on() begins it.
  void wait_for(Session& session, const Waiting& what, std::function<void()> then) LOCKSTEP_REQUIRES(mutex_);
  /// The same, for the first parameters. Throws DataError if the chief would wait.
  void wait_for_parameters(Session& session, const char* what, std::function<void()> then) LOCKSTEP_REQUIRES(mutex_);
  void wait_until(Session& session, std::function<bool()> until, std::function<void()> then) LOCKSTEP_REQUIRES(mutex_);
  void send_later(Session& session, const transport::Header& header, std::span<const float> values,
                  std::shared_ptr<const void> hold, std::optional<std::string> last);
  void send_state(Session& session, const View& view, const wire::Snapshot& end);
  /// Holds the current version for the session, to be sent without the mutex.
  [[nodiscard]] View take_view(Session& session) const LOCKSTEP_REQUIRES(mutex_);
  void send_parameters(Session& session, const View& view, wire::Reply reply, uint64_t sequence);

  // The connection to ps:0; for the other servers.
  void follow_coordinator();
  void follow_until_the_end();
  void serve_coordinator(transport::Stream& stream);
  void listen_to_coordinator(transport::Stream& stream);

  // Updates. Those that make versions release the mutex meanwhile.
  /// Makes versions that can be made, leaves them to the maker thread if they take long or are many, and carries out
  /// the job's orders.
  void settle() LOCKSTEP_REQUIRES(mutex_);
  /// Carries out the job's orders, makes versions that take little time, and leaves others to the maker thread.
  void let_others_make() LOCKSTEP_REQUIRES(mutex_);
  /// Whether making it takes no longer than waking another thread.
  [[nodiscard]] bool is_short(const Update& update) const;
  /// The maker thread.
  void make_versions();
  void ask_to_make() LOCKSTEP_REQUIRES(mutex_);
  /// Makes at most `kMostAtOnce` versions, and leaves the rest to the maker thread: others wait for this one.
  void make_some() LOCKSTEP_REQUIRES(mutex_);
  /// Seconds that this server was making versions so far.
  [[nodiscard]] double seconds_of_updates() const LOCKSTEP_REQUIRES(mutex_);
  /// Makes the next version. Returns false if there is none, none can be made now, or another thread makes one.
  bool make_next() LOCKSTEP_REQUIRES(mutex_);
  void make(const Update& update) LOCKSTEP_REQUIRES(mutex_);
  void carry_out(const Orders& orders) LOCKSTEP_REQUIRES(mutex_);
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
  void begin_staging(Session& session, const transport::Frame& frame) LOCKSTEP_REQUIRES(mutex_);
  void take_push(Session& session, const Push& push, const wire::PushEnd& end) LOCKSTEP_REQUIRES(mutex_);
  void answer_push(Session& session, const Push& push, double since) LOCKSTEP_REQUIRES(mutex_);
  void on_join(Session& session, const transport::Frame& frame);
  void on_pull(Session& session, const transport::Frame& frame);
  void on_init(Session& session, const transport::Frame& frame);
  void begin_init(const Session& session, const wire::JobConfig& config);
  void end_init(Session& session, const transport::Frame& frame);
  /// First parameters that are here.
  struct Initial {
    SessionId by = 0;
    wire::JobConfig job;
    uint64_t version = 0;
    wire::Ledger ledger;
    std::vector<std::vector<float>> values;  ///< parameters, then slots, empty for zeros
  };
  /// The maker thread: sets them once nobody uses the earlier ones.
  void set_initial(const Initial& initial) LOCKSTEP_REQUIRES(mutex_);
  /// Waits without the mutex until nobody uses the state's file.
  void wait_until_released() LOCKSTEP_REQUIRES(mutex_);
  void on_leave(Session& session, const transport::Frame& frame);
  void on_wait_end(Session& session);
  void on_stop(Session& session, train::StopReason reason);
  void on_hold(Session& session);
  void on_snapshot(Session& session, const transport::Frame& frame);
  void take_snapshot(Session& session, uint64_t sequence) LOCKSTEP_REQUIRES(mutex_);
  void on_follow(Session& session, const transport::Frame& frame);
  void on_end(Session& session);
  /// Puts into the reply how long a push has waited for others since `since`, without the time that versions took.
  void tell_wait(const Session& session, wire::Reply& reply, double since) LOCKSTEP_REQUIRES(mutex_);

  // Parameters.
  void adopt(const wire::JobConfig& config) LOCKSTEP_REQUIRES(mutex_);
  void take_over_state();
  void drop_state(const std::string& why);
  [[nodiscard]] std::string state_file() const { return options_.folder + "/state"; }
  [[nodiscard]] std::string job_file() const { return options_.folder + "/job"; }

  void stop_maker();
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

  std::atomic<int> claims_ = 0;  ///< streams that wait for a role
  Applier applier_;

  mutable base::Mutex mutex_;
  base::Condition changed_;  ///< for the monitor, near the end
  base::Condition to_make_;  ///< wakes the maker thread
  base::Condition ending_;   ///< signals the end of this server or the job to threads that should sleep through updates
  Job job_ LOCKSTEP_GUARDED_BY(mutex_);
  std::shared_ptr<ParameterShard> shard_ LOCKSTEP_GUARDED_BY(mutex_);
  std::optional<ContributionsFile> contributions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<SessionId, Session*> sessions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::set<Session*> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> tasks_ LOCKSTEP_GUARDED_BY(mutex_);  ///< the maker does them first
  bool makes_at_once_ LOCKSTEP_GUARDED_BY(mutex_) = false;               ///< versions are small: hands make them
  double updates_ LOCKSTEP_GUARDED_BY(mutex_) = 0;                       ///< seconds of finished updates
  double update_since_ LOCKSTEP_GUARDED_BY(mutex_) = 0;                  ///< 0: none is under way
  std::set<std::string> impostors_ LOCKSTEP_GUARDED_BY(mutex_);          ///< refusals already logged
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
