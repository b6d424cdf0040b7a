// What a parameter server decides: who takes part, which update comes next, what each data stream waits for, when a
// snapshot is of one version, whom a line blames, and when the server ends. ps:0's Job has the coordinator of the whole
// job, another server's a follower. Pure logic: no threads, network, disk or clock. The caller passes the seconds and
// locks; it carries out the Orders, makes the updates (`next`, `begin`, `finish`), and answers the streams whose waits
// are over.
//
//    job.cpp            data streams, waits, members that leave
//    job_parameters.cpp first parameters, resuming, the ledger
//    job_updates.cpp    pushes and versions
//    job_snapshots.cpp  snapshots for checkpoints and the evaluator
//    job_watch.cpp      deadlines, lines about stragglers, the end
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/coordinator.h"
#include "ps/follower.h"
#include "ps/job_types.h"
#include "ps/messages.h"
#include "ps/peers.h"
#include "ps/silence.h"

namespace lockstep::ps {

class Job {
 public:
  Job(JobOptions options, double now);

  [[nodiscard]] bool coordinates() const { return options_.index == 0; }
  [[nodiscard]] bool initialised() const { return initialised_; }
  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] uint64_t version() const { return coordinator_ ? coordinator_->version() : follower_->version(); }
  /// The version that a restart would find.
  [[nodiscard]] uint64_t stored() const { return version() - static_cast<uint64_t>(updating()); }
  [[nodiscard]] const wire::JobConfig& config() const { return config_; }
  [[nodiscard]] const Rules& rules() const { return rules_; }
  [[nodiscard]] const Coordinator* coordinator() const { return coordinator_.get(); }
  [[nodiscard]] const Follower* follower() const { return follower_ ? &*follower_ : nullptr; }
  [[nodiscard]] uint64_t pushes() const { return pushes_; }
  [[nodiscard]] int active() const;
  /// Returns what is to be done since the last call.
  [[nodiscard]] Orders orders() { return std::exchange(orders_, {}); }

  // The parameters.
  void adopt(const wire::JobConfig& config);
  /// Resumes after a restart, with the ledger of `version`.
  void resume(wire::Ledger ledger, uint64_t version, double now);
  /// ps:0: the coordinator of first parameters. Throws DataError for impossible data.
  [[nodiscard]] std::unique_ptr<Coordinator> coordinator_for(const wire::JobConfig& config, uint64_t version,
                                                             const wire::Ledger& ledger, double now) const;
  /// The chief sets the parameters, for the first time or again: from here until `parameters_set` there are none.
  void set_parameters(SessionId by, const wire::JobConfig& config, uint64_t version,
                      std::unique_ptr<Coordinator> coordinator);
  void parameters_set(double now);
  /// Returns the ledger to commit with the version. Throws IoError if it is too large.
  [[nodiscard]] std::string ledger(double now) const;
  void welcome(wire::Welcome& welcome) const;

  // Data streams. A worker or the evaluator has one: a newer one replaces an older one.
  SessionId open(const wire::Hello& hello, double now);
  /// The stream has been told the generation of the parameters.
  void greeted(SessionId id);
  /// Returns true if it was its member's latest one; then `stream_ended` follows.
  bool close(SessionId id);
  /// The stream must end: it was replaced or given up.
  [[nodiscard]] bool gone(SessionId id) const;
  /// The stream waits from now on; `over` says for how long.
  void wait(SessionId id, const Waiting& what);
  /// The same, for the first parameters. Throws DataError if the chief would wait, because only the chief can set them.
  void wait_for_parameters(SessionId id, const char* what);
  [[nodiscard]] bool over(SessionId id) const;
  /// The stream waits for a moment without an update. `next` returns none while such a wait is over: answered first,
  /// nobody is kept waiting by updates that follow each other without a gap.
  [[nodiscard]] bool waits_between(SessionId id) const { return between_.count(id) > 0; }
  /// Names what the stream waits for, and who is at fault; empty: it does not wait.
  [[nodiscard]] std::string reason(SessionId id) const;

  // Control streams.
  /// Returns what another server missed while it was away. Throws RefusedError if its state does not fit.
  [[nodiscard]] std::vector<Decision> arrived(const wire::Hello& hello, double now);
  void received(int server, const wire::Received& received);
  void knows_end(int member) { know_end_.insert(member); }
  /// A stream of this process has ended. Removes the process if `peers` has no control stream of it.
  void departed(const wire::Hello& hello, const std::string& why, const Peers& peers, double now);

  /// The latest data stream of a process has ended. If it has no control stream, it is removed unless it comes back
  /// within the limit for silence.
  void stream_ended(const wire::Hello& hello, const Peers& peers, double now);

  // Pushes and versions.
  /// The next push of the stream begins to overwrite its memory.
  void overwrite(SessionId id);
  /// A whole push is here.
  Verdict push(SessionId id, const Push& push, std::shared_ptr<std::vector<float>> values, float scale);
  void spent(int member, double waiting, double busy);
  [[nodiscard]] wire::Reply reply(SessionId id);
  /// Returns the update to make next. The caller says whether there is room for it.
  [[nodiscard]] std::optional<Update> next(double now) const;
  /// Updates wait while Views hold all buffers. Returns `there`; throws IoError after kRoomWait.
  bool room(bool there, const std::string& folder, double now);
  [[nodiscard]] bool waits_for_room() const { return no_room_since_ != 0; }
  /// Counts the update, whose ledger is stored next. Nobody hears of it before `finish`.
  void begin(const Update& update, double now);
  void finish(const Update& update, double now);
  /// An update is between `begin` and `finish`.
  [[nodiscard]] bool updating() const { return making_.has_value(); }
  void set_gradient_norm(float norm) { gradient_norm_ = norm; }
  /// Lock-free: the counted update is stored, and applied next: by its stream (then nothing is returned) or, if that
  /// has ended or has another push by now, by the caller; `applied` follows.
  [[nodiscard]] std::optional<Booked> book(const Update& update, const optim::Update& how);
  /// Lock-free: takes the counted update that the stream is to apply; `applied` follows.
  [[nodiscard]] std::optional<Booked> take_booked(SessionId id);
  void applied() { --applying_; }

  // Requests. Their streams have waited for the parameters.
  void join(SessionId id, uint64_t version, uint64_t generation);
  [[nodiscard]] wire::Reply join_reply(SessionId id);
  void leave(SessionId id, const wire::Leave& leave, double now);
  /// Returns true if the member must join again.
  bool end_of(SessionId id, wire::Snapshot& end, double now);
  void stop(train::StopReason reason);
  /// The chief has all it needs, or ps:0 says so.
  void finish_training(double now);
  [[nodiscard]] bool finishing() const { return finishing_; }

  // Snapshots.
  void hold(SessionId id);
  /// Returns true if the stream held.
  bool release(SessionId id);
  void snapshot(wire::Snapshot& end, double now) const;
  /// Returns true if the evaluator will want the snapshot that is made now.
  [[nodiscard]] bool wanted(uint64_t snapshot) const;
  void keep(uint64_t snapshot, std::shared_ptr<const std::vector<float>> parameters);
  /// The evaluator has everything up to `snapshot`; with `exact` it wants that one again.
  void follow(uint64_t snapshot, bool exact);
  /// Returns the evaluator's next snapshot; nothing: training has ended.
  [[nodiscard]] std::optional<Kept> next_snapshot();

  // Following ps:0.
  void introduce_to_ps0(wire::Hello& hello) const;
  void ps0_connected(double now);
  void ps0_welcomed();
  void heard_of_ps0(double now);
  void ps0_lost(double now);
  void ps0_unreachable(const std::string& why, double now);
  void announced(const wire::Commit& commit, double now);

  // Time. To be called about every second.
  /// Removes members that did not come in time.
  void expire(double now);
  /// Gives up silent streams and ps:0's, and writes lines about waits.
  void watch(const Peers& peers, bool interrupted, double now);
  /// By member: what each that delays the next version should send.
  [[nodiscard]] std::map<int, std::string> awaited() const;
  /// After the end: returns true if everyone has left who should leave before this server.
  [[nodiscard]] bool may_leave(const Peers& peers, double now) const;

 private:
  struct Session {
    int member = -1;
    uint64_t incarnation = 0;
    std::string role;
    bool evaluates = false;
    bool given_up = false;
    bool holds = false;            ///< keeps all state unchanged for a snapshot
    uint64_t told_generation = 0;  ///< generation of its parameters; 0: it waits for the first ones
    double heard = 0;              ///< when its process last had a control stream here
    Waiting waiting;
    Push push;  ///< the latest whole one
    Verdict verdict = Verdict::rejoin;
  };
  struct Gradient {
    PushName push;
    SessionId session = 0;  ///< whose memory it is
    std::shared_ptr<std::vector<float>> values;
    float scale = 1;
    std::optional<optim::Update> booked;  ///< lock-free: the update is counted, and its stream applies it next
  };

  [[nodiscard]] Session& at(SessionId id) { return sessions_.at(id); }
  [[nodiscard]] const Session& at(SessionId id) const { return sessions_.at(id); }
  [[nodiscard]] bool is_current(SessionId id) const;
  /// Whether the stream that sent the gradient is still its member's.
  [[nodiscard]] bool has_stream(int member, const Gradient& gradient) const;
  [[nodiscard]] bool is_applied(const Push& push) const;
  [[nodiscard]] bool is_decided(const Session& session) const;
  /// Whether its answer could tell of the update under way, which is not stored yet.
  [[nodiscard]] bool concerns_update(const Session& session) const;
  void note_stored();
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] bool answers_first() const;
  [[nodiscard]] std::string names_of(const std::vector<int>& members, const std::vector<int>& servers) const;
  [[nodiscard]] std::string pushes_awaited() const;
  void give_up(SessionId id, const std::string& why);
  void say(const char* level, std::string text) { orders_.lines.push_back({level, std::move(text)}); }
  void put_common(wire::Reply& reply, int member, uint64_t known_plan);
  void count_lost(uint64_t version, uint64_t generation);
  void warn_of_stragglers(double now);
  void give_up_silent(const Peers& peers, double now);
  void remove_vanished(const Peers& peers, double now);
  void watch_ps0(double now);
  [[nodiscard]] bool may_come(double now) const;
  void tell_received(int member, const PushName& push);
  void tell_version();
  [[nodiscard]] bool evaluator_is_behind() const;

  JobOptions options_;
  Orders orders_;
  wire::JobConfig config_;
  Rules rules_;
  bool initialised_ = false;
  uint64_t generation_ = 0;
  uint64_t began_at_ = 0;                     ///< version this generation began at
  uint64_t lost_ = 0;                         ///< known steps after it that were made before and are lost
  std::unique_ptr<Coordinator> coordinator_;  ///< only ps:0
  std::optional<Follower> follower_;          ///< other servers
  std::map<SessionId, Session> sessions_;
  std::map<int, SessionId> current_;  ///< by member
  std::set<SessionId> between_;       ///< wait for a moment without an update
  struct Vanished {
    wire::Hello hello;
    double since = 0;
  };
  std::map<uint64_t, Vanished> vanished_;  ///< by incarnation: processes without a stream, which may come back
  SessionId evaluator_ = 0;
  SessionId latest_session_ = 0;
  std::map<int, Gradient> gradients_;  ///< by member
  int held_ = 0;                       ///< snapshots in progress, during which nothing may change
  std::optional<Decision> making_;     ///< the update between `begin` and `finish`
  int applying_ = 0;                   ///< lock-free updates under way
  Told told_;
  float gradient_norm_ = std::numeric_limits<float>::quiet_NaN();
  uint64_t pushes_ = 0;
  double alone_since_ = 0;
  double version_since_ = 0;
  double servers_since_ = 0;  ///< when no other server was last waited for
  bool warned_ = false;
  double no_room_since_ = 0;  ///< 0: there is room for the next version
  bool welcomed_ = false;     ///< by ps:0
  bool following_ = false;    ///< connected to ps:0, welcomed or not
  double away_since_ = 0;     ///< when ps:0 was last reached
  Silence ps0_silence_;
  bool told_silence_ = false;
  std::deque<Kept> snapshots_;  ///< that the evaluator has not had yet
  bool evaluator_came_ = false;
  bool evaluator_knows_end_ = false;
  double evaluator_heard_ = 0;     ///< when a process of it last said hello, or this server began
  uint64_t snapshot_taken_ = 0;    ///< newest snapshot that the evaluator has
  std::map<int, double> lost_at_;  ///< when unfinished members were lost
  std::set<int> know_end_;         ///< members that have heard of the end
  std::set<int> without_state_;    ///< servers that have lost their parameters
  bool finishing_ = false;
  double finishing_since_ = 0;
};

}  // namespace lockstep::ps
