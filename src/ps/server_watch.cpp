// A server's heartbeats and deadlines, and the other servers' connection to ps:0.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

constexpr double kStraggler = 5;    ///< seconds of waiting for a straggler that are worth a line
constexpr double kLeaveWait = 20;   ///< seconds for the evaluator to take the last snapshot, and for others to leave
constexpr double kRejoinWait = 10;  ///< seconds for a worker lost shortly before the end to return
constexpr double kLateEvaluatorWait = 10;  ///< seconds that the evaluator may start later than this server

}  // namespace

std::map<int, std::string> Server::awaited() {
  const base::MutexLock lock(mutex_);
  std::map<int, std::string> awaited;
  if (!coordinator_) return awaited;
  for (const int member : coordinator_->awaited()) {
    awaited[member] = fmt::format("its push of step {}", coordinator_->version() + 1);
  }
  return awaited;
}

void Server::expire_and_warn() {
  if (coordinator_) {
    for (const int member : coordinator_->expire(now(), !sessions_.empty())) {
      log("warning", fmt::format("{} has not joined; training goes on without it", member_name(member)));
    }
    commit_if_ready();
    const std::vector<int> servers = coordinator_->awaited_servers();
    if (servers.empty()) servers_since_ = now();
    const bool waits = !finishing_ && now() - version_since_ > kStraggler;
    if (waits && !warned_ && coordinator_->active() > 0 && held_ == 0) {
      std::string names;
      const auto add = [&names](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
      for (const int member : coordinator_->options().sync ? coordinator_->awaited() : std::vector<int>()) {
        add(member_name(member));
      }
      for (const int server : now() - servers_since_ > kStraggler ? servers : std::vector<int>()) {
        add(fmt::format("ps:{} at {}", server, options_.spec.address({cluster::Role::ps, server})));
      }
      if (!names.empty()) {
        log("warning", fmt::format("step {} has waited {:.0f} s for {}", coordinator_->version() + 1,
                                   now() - version_since_, names));
      }
      warned_ = !names.empty();
    }
  }
  apply_announced();  // without what is lost by now
}

void Server::look_after() {
  changed_.notify_all();  // wakes waits whose deadline has passed
  expire_and_warn();
  give_up_silent();
  watch_coordinator();
  if (!sessions_.empty()) alone_since_ = now();
  const bool interrupted = options_.interrupt != nullptr && options_.interrupt->load();
  if (interrupted && coordinator_) coordinator_->stop(train::StopReason::interrupted);
  if (interrupted && sessions_.empty()) end({});
  if (now() - alone_since_ > options_.patience) {
    end(fmt::format("ps:{}: nobody has trained for {:.0f} s; giving up", options_.index, options_.patience));
  }
}

bool Server::may_come() {
  // A process that is still starting should hear of the end, not wait for a server that is gone.
  for (int member = 0; coordinator_ && member < coordinator_->options().members; ++member) {
    if (know_end_.contains(member)) continue;
    if (coordinator_->presence(member) == Coordinator::Presence::absent) return true;
    // Training may have waited for its last gradient before the end.
    const auto lost = lost_at_.find(member);
    const bool lately = lost != lost_at_.end() && finishing_since_ - lost->second < kRejoinWait + kLostGradient;
    if (lately && now() - std::max(lost->second, finishing_since_) < kRejoinWait) return true;
  }
  const bool behind = !snapshots_.empty() && snapshots_.back().id > snapshot_taken_;
  const bool evaluator = !options_.spec.evaluator.empty() && !evaluator_knows_end_ && (coordinates() || behind);
  return evaluator && now() - evaluator_heard_ < kLateEvaluatorWait;
}

bool Server::alone_after_the_end() {
  wire::Notice notice;
  notice.set_ended(true);
  {
    const base::MutexLock lock(mutex_);
    if (coordinator_) notice.set_stop(static_cast<uint32_t>(coordinator_->stopped()));
  }
  control_streams_.send(header(Kind::notice), &notice, [](const Peer&) { return true; });
  const bool evaluator = control_streams_.any([](const Peer& peer) { return peer.role.starts_with("evaluator"); });
  // A process that has not heard of the end would look for this server long after it is gone.
  const bool unaware =
      control_streams_.any([](const Peer& peer) { return !peer.role.starts_with("ps:") && !peer.knows_end; });
  const bool others = control_streams_.any([](const Peer& peer) { return !peer.role.starts_with("evaluator"); });
  const base::MutexLock lock(mutex_);
  const bool behind = !snapshots_.empty() && snapshots_.back().id > snapshot_taken_;
  const bool wait = (coordinates() && others) || may_come() || unaware || (evaluator && behind);
  return !wait || now() - finishing_since_ > kLeaveWait;
}

void Server::monitor() {
  try {
    watch_until_the_end();
  } catch (const std::exception&) {
    end_with_error();
  }
}

void Server::watch_until_the_end() {
  for (;;) {
    bool finishing = false;
    {
      const base::MutexLock lock(mutex_);
      const Clock::time_point next = Clock::now() + kHeartbeat;
      while (!ended_ && !finishing_ && Clock::now() < next) ending_.wait_for(mutex_, next - Clock::now());
      if (finishing_ && !ended_) changed_.wait_for(mutex_, kHeartbeat / 10);
      look_after();
      if (ended_) return;
      finishing = finishing_;
    }
    control_streams_.tick(awaited());
    if (!finishing || !alone_after_the_end()) continue;
    const base::MutexLock lock(mutex_);
    return end({});
  }
}

// The other servers.

void Server::follow_coordinator() {
  try {
    follow_until_the_end();
  } catch (const std::exception&) {
    end_with_error();
  }
}

void Server::follow_until_the_end() {
  const std::string& address = options_.spec.ps.front();
  double away_since = now();
  for (;;) {
    {
      const base::MutexLock lock(mutex_);
      if (ended_ || finishing_) return;
    }
    transport::ConnectOptions connect;
    connect.security = options_.security;
    connect.role = "ps:0";
    connect.meter = options_.meter;
    base::Result<std::unique_ptr<transport::Stream>> stream = transport::connect(address, connect, [this] {
      const base::MutexLock lock(mutex_);
      return ended_;
    });
    if (!stream) {
      const base::MutexLock lock(mutex_);
      if (stream.failure().kind == base::FailureKind::usage)
        end(fmt::format("ps:{}: ps:0: {}", options_.index, stream.failure().message()));
      if (now() - away_since > options_.patience) {
        end(fmt::format("ps:{}: ps:0 at {}: {} for {:.0f} s; giving up", options_.index, address,
                        stream.failure().message(), options_.patience));
      }
      continue;
    }
    {
      const base::MutexLock lock(mutex_);
      followed_ = stream.value().get();
      coordinator_silence_.heard(now());
    }
    serve_coordinator(*stream.value());
    const base::MutexLock lock(mutex_);
    followed_ = nullptr;
    if (!told_silence_) away_since = now();
  }
}

void Server::serve_coordinator(transport::Stream& stream) {
  wire::Hello hello;
  hello.set_protocol(kProtocol);
  hello.set_role("ps:" + std::to_string(options_.index));
  hello.set_member(-1);
  hello.set_incarnation(incarnation_);
  hello.set_job(options_.job);
  introduce(hello);
  {
    const base::MutexLock lock(mutex_);
    hello.set_initialised(initialised_);
    hello.set_generation(generation_);
    if (initialised_) hello.set_version(follower_->version());
  }
  transport::Header first = header(Kind::hello);
  first.flags = kControl;
  if (!send(stream, first, hello)) return;
  base::Result<transport::Frame> greeting = stream.read();
  if (!greeting) return;
  if (kind_of(greeting.value()) != Kind::welcome) {
    const RefusalReason refusal = read_refusal(greeting.value());
    if (refusal.kind == RefusalKind::failed) return;  // the next process of ps:0 may accept
    const base::MutexLock lock(mutex_);
    return end(fmt::format("ps:{}: ps:0 at {} refused: {}", options_.index, stream.peer(), refusal.text));
  }
  {
    const base::MutexLock lock(mutex_);
    coordinator_stream_ = &stream;
    if (follower_) {
      for (const auto& [member, push] : follower_->here()) tell_received(member, push);
    }
  }
  try {
    listen_to_coordinator(stream);
  } catch (const std::exception&) {
    end_with_error();
  }
  const base::MutexLock lock(mutex_);
  coordinator_stream_ = nullptr;
}

void Server::heard_of_coordinator() {
  const base::MutexLock lock(mutex_);
  coordinator_silence_.heard(now());
  if (!std::exchange(told_silence_, false)) return;
  log("info", fmt::format("ps:0 at {} is back", options_.spec.ps.front()));
}

void Server::watch_coordinator() {
  const std::optional<double> silent = coordinator_silence_.look(now());
  if (followed_ == nullptr || !silent) return;
  const std::string why = fmt::format("no heartbeat for {:.1f} s", *silent);
  if (!std::exchange(told_silence_, true)) {
    log("warning", fmt::format("ps:0 at {}: {}; ps:{} connects again", options_.spec.ps.front(), why, options_.index));
  }
  followed_->cancel(why);
}

void Server::on_commit(const wire::Commit& commit) {
  const base::MutexLock lock(mutex_);
  if (!initialised_ || commit.generation() != generation_) return;
  follower_->announced(from_wire(commit), now());
  apply_announced();
}

void Server::listen_to_coordinator(transport::Stream& stream) {
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (!frame) return;
    heard_of_coordinator();
    switch (kind_of(frame.value())) {
      case Kind::heartbeat: {
        const base::MutexLock lock(mutex_);
        if (!stream.write(header(Kind::heartbeat))) return;
        break;
      }
      case Kind::commit:
        on_commit(parse<wire::Commit>(frame.value()));
        break;
      case Kind::notice: {
        const base::MutexLock lock(mutex_);
        if (!parse<wire::Notice>(frame.value()).ended()) break;
        finishing_ = true;
        finishing_since_ = now();
        ending_.notify_all();
        changed_.notify_all();
        return;
      }
      default:
        break;
    }
  }
}

}  // namespace lockstep::ps
