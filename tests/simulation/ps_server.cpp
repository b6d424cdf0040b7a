// A parameter server in the simulated world: the real Job, Coordinator, Follower and Peers, with a simulated network,
// state file and applier. An update has three events: it is begun, stored, and told.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include "lockstep/error.h"
#include "ps/job.h"
#include "ps/peers.h"
#include "simulation/ps_cluster.h"
#include "wire/liveness.h"

namespace lockstep::simulation {
namespace {

constexpr double kHeartbeat = std::chrono::duration<double>(wire::kHeartbeat).count();
constexpr size_t kBuffers = 3;  ///< of the parameters, reserved at the start

/// The state file: these numbers, then the job and the ledger.
struct Stored {
  uint64_t generation = 0;
  uint64_t version = 0;
  uint64_t digest = 0;
  double boot = 0;  ///< when its machine had started
};

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

  void start() override {
    cluster_.truth.died(index_);
    if (cluster_.over) return leave();  // its launcher starts nothing any more
    guarded([this] {
      resume();
      if (index_ > 0) follow();
      tick();
    });
  }
  void accepted(Link link, Process /*from*/) override { conns_[link]; }
  void connected(Link link) override {
    if (link != ps0_) return;
    guarded([this] {
      job_.ps0_connected(now());
      wire::Hello hello;
      hello.set_role(fmt::format("ps:{}", index_));
      hello.set_member(-1);
      hello.set_incarnation(incarnation_);
      job_.introduce_to_ps0(hello);
      Frame frame{ps::Kind::hello};
      frame.control = true;
      say(ps0_, std::move(frame), std::move(hello));
    });
  }
  void received(Link link, const std::any& message) override {
    if (locked_) return blocked_.push_back([this, link, message] { received(link, message); });
    guarded([&] {
      const auto frame = std::any_cast<FramePtr>(message);
      if (link == ps0_) return from_ps0(*frame);
      const auto found = conns_.find(link);
      if (found == conns_.end()) return;
      Conn& conn = found->second;
      if (conn.what == Conn::fresh) return greeted(link, *frame);
      if (conn.what == Conn::control) return from_peer(link, *frame);
      conn.frames.push_back(frame);
      work(link);
    });
  }
  void closed(Link link, const std::string& why) override {
    if (locked_) return blocked_.push_back([this, link, why] { closed(link, why); });
    guarded([&] {
      if (link == ps0_) return lost_ps0(why);
      forget(link, "its connection closed");
    });
  }

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

  static ps::JobOptions job_options(const PsOptions& options, int index) {
    ps::JobOptions job;
    job.index = index;
    for (int i = 0; i < options.workers; ++i) job.members.push_back(fmt::format("worker:{}", i));
    for (int i = 0; i < options.servers; ++i) job.servers.push_back(fmt::format("ps:{}", i));
    job.evaluator = options.evaluator;
    job.record = true;
    return job;
  }
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
  void end(const std::string& why) {
    over_ = true;
    cluster_.crash(me_, why);
  }
  void later(double seconds, std::function<void()> what) {
    world_.after(me_, seconds, [this, what = std::move(what)] {
      if (locked_) return blocked_.push_back([this, what] { guarded(what); });
      guarded(what);
    });
  }
  template <class Message>
  void say(Link link, Frame frame, Message message) {
    frame.message = std::make_shared<const Message>(std::move(message));
    say(link, std::move(frame));
  }
  void say(Link link, Frame frame) {
    const auto shared = std::make_shared<const Frame>(std::move(frame));
    world_.send(me_, link, FramePtr(shared), [&] { return describe(*shared); });
  }
  void refuse(Link link, ps::RefusalKind kind, const std::string& why) {
    Frame frame{ps::Kind::refuse};
    frame.extra = static_cast<uint64_t>(kind);
    frame.text = why;
    say(link, std::move(frame));
    world_.close(me_, link);
    forget(link, "it was refused");
  }

  // The state.

  /// When this machine was started; it differs after a loss of power.
  [[nodiscard]] double boot() const { return world_.now() - world_.clock(me_); }
  void store(const std::string& ledger) {
    Disk& disk = world_.disk(me_);
    const bool full = std::exchange(disk.full, false);  // its room was reserved
    files_.generation = job_.generation();
    files_.boot = boot();
    const auto size = static_cast<uint32_t>(config_.size());
    std::string bytes(reinterpret_cast<const char*>(&files_), sizeof(files_));
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    disk.write("state", bytes + config_ + ledger);
    if (cluster_.options.durability == ps::Durability::machine) disk.sync("state");
    disk.full = full;
  }
  void resume() {
    if (cluster_.options.durability == ps::Durability::checkpoint) return;
    const auto bytes = world_.disk(me_).read("state");
    uint32_t size = 0;
    if (!bytes || bytes->size() < sizeof(files_) + sizeof(size)) return;
    Stored found;
    std::memcpy(&found, bytes->data(), sizeof(found));
    const bool survived = cluster_.options.durability == ps::Durability::machine;
    if (!survived && std::abs(found.boot - boot()) > 0.5) return;  // nothing tells which pages were written
    std::memcpy(&size, bytes->data() + sizeof(found), sizeof(size));
    config_ = bytes->substr(sizeof(found) + sizeof(size), size);
    wire::JobConfig config;
    wire::Ledger ledger;
    if (!config.ParseFromString(config_) ||
        !ledger.ParseFromString(bytes->substr(sizeof(found) + sizeof(size) + size))) {
      return world_.fail(fmt::format("ps:{} finds a damaged state", index_));
    }
    files_ = found;
    job_.adopt(config);
    job_.resume(ledger, files_.version, now());
    cluster_.truth.resumed(index_, {files_.generation, files_.version});
    world_.note(me_, [&] { return fmt::format("is back at version {}", files_.version); });
  }

  // Updates.

  [[nodiscard]] bool has_room() {
    std::set<uint64_t> held;
    for (const auto& [link, view] : views_) held.insert(view);
    held.insert(files_.version);
    if (held.size() < buffers_) return true;
    if (world_.disk(me_).full) return false;
    ++buffers_;
    return true;
  }
  void settle() {
    while (!over_ && !booking_) {
      std::optional<ps::Update> update = job_.next(now());
      if (!update) break;
      const bool in_place = cluster_.options.lock_free;
      if (in_place && has(OldFault::books_after_applying)) return apply_first(std::move(*update));
      const bool there = in_place || has_room();
      if (!there && has(OldFault::waits_for_room_locked)) {
        locked_ = true;
        world_.note(me_, [] { return std::string("waits for room with its lock"); });
        world_.after(me_, 0.01, [this] { unlock(); });
        break;
      }
      if (!job_.room(there, "its folder", now())) break;
      begin(std::move(*update));
    }
    carry_out();
  }
  void unlock() {
    if (!has_room()) return world_.after(me_, 0.01, [this] { unlock(); });
    locked_ = false;
    const std::deque<std::function<void()>> waiting = std::exchange(blocked_, {});
    guarded([] {});
    for (const auto& what : waiting) what();
  }
  void begin(ps::Update update) {
    job_.begin(update, now());
    std::vector<ps::Contributed> parts;
    if (job_.coordinator() != nullptr) parts = job_.coordinator()->contributions();
    const std::string ledger = job_.ledger(now());
    const double took = world_.random().between(0.0001, 0.003) + world_.disk(me_).write_delay;
    later(took, [this, update = std::move(update), parts = std::move(parts), ledger] {
      if (update.generation != job_.generation()) return;
      files_.version = update.decision.version;
      files_.digest = Truth::digest_after(files_.digest, update);
      cluster_.truth.stored(index_, update, &parts, files_.digest);
      store(ledger);
      const bool here = cluster_.options.lock_free && job_.book(update, {});
      later(0.0001, [this, update, here] {
        job_.finish(update, now());
        if (here) later(0.0001, [this] { job_.applied(); });
      });
    });
  }
  /// As it was once: applies a lock-free update with the lock released, and counts it after that.
  void apply_first(ps::Update update) {
    booking_ = true;
    const auto coming = std::make_shared<ps::Update>(std::move(update));
    later(world_.random().between(0.0001, 0.003), [this, coming] {
      booking_ = false;
      const std::optional<ps::Update> still = job_.next(now());
      const bool same =
          still && still->decision.contributors.size() == coming->decision.contributors.size() &&
          ps::name_of(still->decision.contributors.front()) == ps::name_of(coming->decision.contributors.front());
      if (!same)
        return world_.fail("an update is in the parameters that nobody counts: its worker will be asked again");
      begin(*still);
    });
  }
  void carry_out() {
    for (;;) {
      const ps::Orders orders = job_.orders();
      for (const ps::Orders::Line& line : orders.lines) world_.note(me_, [&] { return line.text; });
      for (const ps::Decision& decision : orders.announced) announce(decision);
      for (const auto& [member, push] : orders.received) tell_received(member, push);
      for (const auto& [id, why] : orders.dropped) {
        if (const Link link = link_of(id); link >= 0) drop(link, why);
      }
      if (orders.drop_ps0 && !has(OldFault::silence_unnoticed)) {
        world_.close(me_, ps0_);
        lost_ps0(*orders.drop_ps0);
      }
      if (orders.end) return orders.end->empty() ? leave() : end(*orders.end);
      if (orders.dropped.empty() && !orders.drop_ps0) return;
    }
  }
  void announce(const ps::Decision& decision) {
    wire::Commit commit;
    to_wire(decision, commit);
    commit.set_generation(job_.generation());
    for (auto& [link, conn] : conns_) {
      if (conn.what != Conn::control || !conn.hello.role().starts_with("ps:")) continue;
      Frame frame{ps::Kind::commit};
      frame.version = decision.version;
      say(link, std::move(frame), commit);
    }
  }
  void tell_received(int member, const ps::PushName& push) {
    wire::Received received;
    received.set_member(member);
    received.set_incarnation(push.incarnation);
    received.set_sequence(push.sequence);
    received.set_version(job_.stored());
    received.set_generation(job_.generation());
    Frame frame{ps::Kind::received};
    frame.sequence = push.sequence;
    if (ps0_ >= 0) say(ps0_, std::move(frame), std::move(received));
  }

  // Streams.

  [[nodiscard]] Link link_of(ps::SessionId id) const {
    for (const auto& [link, conn] : conns_) {
      if (conn.what == Conn::data && conn.session == id) return link;
    }
    return -1;
  }
  void drop(Link link, const std::string& why) {
    world_.note(me_, [&] { return fmt::format("drops {}: {}", conns_.at(link).hello.role(), why); });
    world_.close(me_, link);
    forget(link, why);
  }
  /// The stream has ended.
  void forget(Link link, const std::string& why) {
    const auto found = conns_.find(link);
    if (found == conns_.end()) return;
    const Conn conn = std::move(found->second);
    conns_.erase(found);
    views_.erase(link);
    if (conn.what == Conn::control) {
      peers_.remove(conn.peer);
      job_.departed(conn.hello, why, peers_, now());
    }
    if (conn.what != Conn::data) return;
    job_.release(conn.session);
    if (job_.take_booked(conn.session)) job_.applied();
    if (job_.close(conn.session)) job_.stream_ended(conn.hello, peers_, now());
  }
  void greeted(Link link, const Frame& frame) {
    Conn& conn = conns_.at(link);
    conn.hello = message_of<wire::Hello>(frame);
    conn.busy = frame.control;  // until it is claimed
    conn.what = Conn::claims;
    conn.came = now();
    claim(link);
  }
  void claim(Link link) {
    Conn& conn = conns_.at(link);
    const std::string role = conn.hello.role();
    const auto holder = peers_.other_holder(role, conn.hello.incarnation(), conn.came);
    if (holder && !has(OldFault::two_with_one_name)) {
      if (!holder->alive) return;
      const bool mistaken = !cluster_.options.twin && !cluster_.lives(std::stoull(holder->process));
      if (mistaken) world_.fail(role + " is refused for a process that is dead");
      return refuse(link, ps::RefusalKind::taken, fmt::format("{} is process {} already", role, holder->process));
    }
    if (holder && cluster_.lives(std::stoull(holder->process))) world_.fail("two processes take part as " + role);
    conn.what = conn.busy ? Conn::control : Conn::data;
    conn.busy = false;
    if (conn.what == Conn::data) {
      conn.session = job_.open(conn.hello, now());
      carry_out();
      welcome(link);
      job_.greeted(conns_.at(link).session);
      return work(link);
    }
    try {
      const std::vector<ps::Decision> missed = job_.arrived(conn.hello, now());
      welcome(link);
      for (const ps::Decision& decision : missed) {
        wire::Commit commit;
        to_wire(decision, commit);
        commit.set_generation(job_.generation());
        say(link, Frame{ps::Kind::commit}, std::move(commit));
      }
    } catch (const ps::RefusedError& error) {
      return refuse(link, error.kind(), error.what());
    }
    conn.peer = peers_.add(
        {role, conn.hello.member(), conn.hello.incarnation(), "", false, std::to_string(conn.hello.incarnation())},
        now());
  }
  void welcome(Link link) {
    wire::Welcome welcome;
    welcome.set_run("run");
    welcome.set_incarnation(incarnation_);
    job_.welcome(welcome);
    say(link, Frame{ps::Kind::welcome}, std::move(welcome));
  }
  void from_peer(Link link, const Frame& frame) {
    Conn& conn = conns_.at(link);
    peers_.heard(conn.peer, now());
    if (frame.kind == ps::Kind::notice) {
      peers_.knows_end(conn.peer);
      job_.knows_end(conn.hello.member());
    }
    const std::string role = conn.hello.role();
    if (frame.kind == ps::Kind::received && role.starts_with("ps:")) {
      job_.received(std::stoi(role.substr(3)), message_of<wire::Received>(frame));
    }
  }
  /// Goes on with the streams whose waits are over, and with processes that wait for a role.
  void move_on() {
    for (bool again = true; again && !over_ && !locked_;) {
      again = false;
      for (const auto& [link, conn] : conns_) {
        if (conn.what == Conn::claims) {
          const auto holder = peers_.other_holder(conn.hello.role(), conn.hello.incarnation(), conn.came);
          if (holder && !holder->alive) continue;
          claim(link);
          again = true;
          break;
        }
        if (!conn.then) continue;
        if (job_.gone(conn.session)) {
          refuse(link, ps::RefusalKind::other, "this connection was dropped");
          again = true;
          break;
        }
        if (!job_.over(conn.session)) continue;
        const auto then = std::exchange(conns_.at(link).then, nullptr);
        job_.wait(conn.session, {});
        run(link, then);
        again = true;
        break;
      }
      if (again) settle();
    }
  }
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
  void wait(Link link, const ps::Waiting& what, std::function<void()> then) {
    Conn& conn = conns_.at(link);
    job_.wait(conn.session, what);
    conn.then = std::move(then);
  }
  void wait_for_parameters(Link link, const char* what, std::function<void()> then) {
    Conn& conn = conns_.at(link);
    job_.wait_for_parameters(conn.session, what);
    conn.then = std::move(then);
  }
  /// The handler reads its next frame.
  void work(Link link) {
    const auto found = conns_.find(link);
    if (found == conns_.end() || found->second.busy || found->second.frames.empty()) return;
    Conn& conn = found->second;
    conn.busy = true;
    const FramePtr frame = std::move(conn.frames.front());
    conn.frames.pop_front();
    run(link, [&] { answer(link, frame); });
  }
  void done(Link link) {
    const auto found = conns_.find(link);
    if (found == conns_.end()) return;
    found->second.busy = false;
    work(link);
  }
  void answer(Link link, const FramePtr& frame) {
    const ps::SessionId id = conns_.at(link).session;
    switch (frame->kind) {
      case ps::Kind::push:
        return wait_for_parameters(link, "a push", [this, link, frame] { take_push(link, *frame); });
      case ps::Kind::join:
        return wait_for_parameters(link, "joining", [this, link, frame, id] {
          job_.join(id, frame->version, frame->extra);
          wait(link, {ps::Wait::joining}, [this, link, id] { send_parameters(link, job_.join_reply(id), 0); });
        });
      case ps::Kind::pull:
        return wait_for_parameters(link, "a pull", [this, link, frame] {
          wait(link, {ps::Wait::version, frame->version}, [this, link] { send_parameters(link, {}, 0); });
        });
      case ps::Kind::init_begin:
        coming_ = message_of<wire::JobConfig>(*frame);
        return done(link);
      case ps::Kind::init_end:
        return set_parameters(link, *frame);
      case ps::Kind::leave:
        return wait_for_parameters(link, "leaving", [this, link, frame, id] {
          job_.leave(id, message_of<wire::Leave>(*frame), now());
          say(link, Frame{ps::Kind::ok});
          done(link);
        });
      case ps::Kind::wait_end:
        return wait_for_parameters(link, "waiting for the end", [this, link, id] {
          wait(link, {ps::Wait::end}, [this, link, id] {
            wire::Snapshot end;
            Frame answer{ps::Kind::snapshot_end};
            answer.last = job_.end_of(id, end, now());
            say(link, std::move(answer), std::move(end));
            done(link);
          });
        });
      case ps::Kind::hold:
        return wait_for_parameters(link, "a snapshot", [this, link, id] {
          job_.hold(id);
          wait(link, {ps::Wait::version}, [this, link] {
            say(link, Frame{ps::Kind::snapshot_end}, wire::Snapshot());
            done(link);
          });
        });
      case ps::Kind::release:
        job_.release(id);
        return done(link);
      case ps::Kind::snapshot:
        return wait_for_parameters(link, "a snapshot", [this, link, frame] {
          wait(link, {ps::Wait::version, frame->version}, [this, link, frame] {
            wait(link, {ps::Wait::snapshot}, [this, link, frame] { send_snapshot(link, *frame); });
          });
        });
      case ps::Kind::follow:
        job_.follow(frame->version, frame->last);
        return wait(link, {ps::Wait::news}, [this, link] { send_news(link); });
      case ps::Kind::stop:
        return wait(link, {ps::Wait::version}, [this, link, frame] {
          job_.stop(static_cast<train::StopReason>(frame->extra));
          store(job_.ledger(now()));
          done(link);
        });
      case ps::Kind::end:
        say(link, Frame{ps::Kind::ok});
        finish_training();
        return done(link);
      case ps::Kind::ok:  // it has read its parameters
        views_.erase(link);
        return done(link);
      default:
        return world_.fail("a frame that makes no sense: " + describe(*frame));
    }
  }
  void take_push(Link link, const Frame& frame) {
    Conn& conn = conns_.at(link);
    const auto& end = message_of<wire::PushEnd>(frame);
    if (frame.sequence != conn.coming) job_.overwrite(conn.session);
    conn.coming = frame.sequence;
    ps::Push push;
    push.member = conn.hello.member();
    push.incarnation = conn.hello.incarnation();
    push.sequence = frame.sequence;
    push.base = frame.version;
    push.plan = end.plan();
    push.rounds = end.rounds();
    push.report = {end.loss_sum(), end.correct(), end.examples()};
    if (!conn.staging) conn.staging = std::make_shared<std::vector<float>>(2);
    (*conn.staging)[0] = static_cast<float>(push.incarnation);
    (*conn.staging)[1] = static_cast<float>(push.sequence);
    if (job_.release(conn.session)) settle();
    const ps::SessionId id = conn.session;
    const bool accepted = job_.push(id, push, conn.staging, 1) == ps::Verdict::accepted;
    cluster_.truth.received(index_, {push.incarnation, push.sequence});
    if (!accepted) {
      return wait(link, {ps::Wait::decision},
                  [this, link, id, push] { send_parameters(link, job_.reply(id), push.sequence); });
    }
    if (index_ > 0 && has(OldFault::followers_do_not_ask) && !job_.config().sync()) apply_at_once(push);
    wait(link, {ps::Wait::decision}, [this, link, id, push] {
      const auto answer = [this, link, id, push] {
        wait(link, {ps::Wait::slower},
             [this, link, id, push] { send_parameters(link, job_.reply(id), push.sequence); });
      };
      if (!job_.take_booked(id)) return answer();
      later(world_.random().between(0.0001, 0.003), [this, link, id, answer] {
        job_.applied();
        const auto found = conns_.find(link);
        if (found != conns_.end() && found->second.session == id) answer();
      });
    });
  }
  /// As it was once: what comes is applied, whatever ps:0 says.
  void apply_at_once(const ps::Push& push) {
    wire::Commit commit;
    ps::Decision decision{announced_ = std::max(announced_, job_.version()) + 1, {}, 1};
    decision.contributors.push_back({push.member, push.incarnation, push.sequence, 1});
    to_wire(decision, commit);
    commit.set_generation(job_.generation());
    job_.announced(commit, now());
  }
  /// The View is taken with the lock, and sent after that; the transport needs it until the worker has read it.
  void send_parameters(Link link, wire::Reply reply, uint64_t sequence) {
    Frame frame{ps::Kind::parameters};
    frame.sequence = sequence;
    frame.version = files_.version;
    frame.digest = files_.digest;
    frame.message = std::make_shared<const wire::Reply>(std::move(reply));
    views_[link] = files_.version;
    cluster_.truth.acknowledged(index_, {job_.generation(), files_.version});
    later(world_.random().between(0, std::max(cluster_.options.read_seconds, 0.001)), [this, link, frame] {
      if (!conns_.contains(link)) return;
      say(link, frame);
      done(link);
    });
  }
  void set_parameters(Link link, const Frame& frame) {
    if (world_.disk(me_).full) throw IoError("cannot reserve 4096 bytes for the state: No space left on device");
    const auto& ledger = message_of<wire::Ledger>(frame);
    auto coordinator = job_.coordinator_for(coming_, frame.version, ledger, now());
    job_.set_parameters(conns_.at(link).session, coming_, frame.version, std::move(coordinator));
    cluster_.truth.set(index_, job_.generation(), {frame.extra, frame.version});
    files_ = {job_.generation(), frame.version, frame.digest, 0};
    config_ = coming_.SerializeAsString();
    store(job_.ledger(now()));
    job_.parameters_set(now());
    carry_out();
    if (!conns_.contains(link)) return;
    say(link, Frame{ps::Kind::ok});
    done(link);
  }
  void send_snapshot(Link link, const Frame& asked) {
    wire::Snapshot end;
    job_.snapshot(end, now());
    end.set_version(files_.version);
    const uint64_t id = asked.sequence == 0 ? files_.version : asked.sequence;
    if (job_.wanted(id)) job_.keep(id, std::make_shared<const std::vector<float>>(1));
    Frame answer{ps::Kind::snapshot_end};
    answer.version = files_.version;
    answer.digest = files_.digest;
    answer.extra = job_.generation();
    say(link, std::move(answer), std::move(end));
    done(link);
  }
  void send_news(Link link) {
    const std::optional<ps::Kept> kept = job_.next_snapshot();
    Frame answer{kept ? ps::Kind::snapshot_end : ps::Kind::end};
    if (kept) answer.version = kept->id;
    say(link, std::move(answer));
    done(link);
  }
  void finish_training() {
    const bool first = !job_.finishing();
    job_.finish_training(now());
    if (first) world_.after(me_, 0, [this] { tick(); });
  }

  // ps:0.

  void follow() { ps0_ = world_.connect(me_, cluster_.server(0)); }
  void lost_ps0(const std::string& why) {
    ps0_ = -1;
    if (!welcomed_by_ps0_) job_.ps0_unreachable(why, now());
    welcomed_by_ps0_ = false;
    job_.ps0_lost(now());
    if (!job_.finishing()) later(0.2, [this] { follow(); });
  }
  void from_ps0(const Frame& frame) {
    job_.heard_of_ps0(now());
    switch (frame.kind) {
      case ps::Kind::refuse:
        return world_.fail(fmt::format("ps:0 refused ps:{}: {}", index_, frame.text));
      case ps::Kind::welcome:
        welcomed_by_ps0_ = true;
        return job_.ps0_welcomed();
      case ps::Kind::heartbeat:
        return say(ps0_, Frame{ps::Kind::heartbeat});
      case ps::Kind::commit:
        if (has(OldFault::followers_do_not_ask)) return;
        return job_.announced(message_of<wire::Commit>(frame), now());
      case ps::Kind::notice:
        return finish_training();
      default:
        return;
    }
  }

  // Time.

  void tick() {
    if (over_) return;
    const bool finishing = job_.finishing();
    if (locked_) {
      blocked_.push_back([this] { tick(); });
      return;
    }
    cluster_.looked(me_);
    guarded([this] {
      job_.expire(now());
      settle();
      job_.watch(peers_, cluster_.asks_to_end(), now());
      settle();
    });
    if (over_) return;
    check_waits();
    heartbeats(finishing);
    if (finishing && job_.may_leave(peers_, now())) return leave();
    if (!finishing || !ticks_fast_) {
      ticks_fast_ = finishing;
      world_.after(me_, finishing ? kHeartbeat / 10 : kHeartbeat, [this] { tick(); });
    } else {
      world_.after(me_, kHeartbeat / 10, [this] { tick(); });
    }
  }
  void heartbeats(bool finishing) {
    guarded([&] {
      wire::Notice notice;
      notice.set_ended(true);
      if (job_.coordinator() != nullptr) notice.set_stop(static_cast<uint32_t>(job_.coordinator()->stopped()));
      for (const auto& [link, conn] : conns_) {
        if (conn.what != Conn::control) continue;
        if (world_.now() >= next_heartbeat_) say(link, Frame{ps::Kind::heartbeat});
        if (finishing) say(link, Frame{ps::Kind::notice}, notice);
      }
      if (world_.now() >= next_heartbeat_) next_heartbeat_ = world_.now() + kHeartbeat * 0.99;
      for (const ps::Peers::Id id : peers_.give_up_silent(now(), job_.awaited())) {
        const std::string why = peers_.why(id);
        for (const auto& [link, conn] : conns_) {
          if (conn.what != Conn::control || conn.peer != id) continue;
          drop(link, why);
          break;
        }
      }
    });
  }
  void check_waits() {
    for (const auto& [link, conn] : conns_) {
      if (!conn.then || job_.gone(conn.session) || job_.over(conn.session)) continue;
      const std::string reason = job_.reason(conn.session);
      const std::string role = conn.hello.role();
      if (reason.empty()) world_.fail(role + " waits for something without a name");
      world_.note(me_, [&] { return fmt::format("{} waits for {}", role, reason); });
    }
  }
  void leave() {
    if (over_) return;
    over_ = true;
    if (job_.finishing() && job_.initialised()) cluster_.truth.ended(index_, {job_.generation(), files_.version});
    cluster_.left.insert(me_);
    world_.disk(me_).remove("state");
    world_.exit(me_);
  }

  PsCluster& cluster_;
  World& world_;
  Process me_;
  int index_;
  ps::Job job_;
  ps::Peers peers_;
  uint64_t incarnation_;
  std::map<Link, Conn> conns_;
  std::map<Link, uint64_t> views_;  ///< versions that are being sent
  size_t buffers_ = kBuffers;
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

}  // namespace

std::unique_ptr<Actor> make_server(PsCluster& cluster, Process me, int index) {
  return std::make_unique<ServerActor>(cluster, me, index);
}

}  // namespace lockstep::simulation
