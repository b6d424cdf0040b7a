#include "ps/server.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/limits.h"
#include "lockstep/error.h"

namespace lockstep::ps {
namespace {

constexpr size_t kMostPayload = size_t{16} << 20;  ///< a slice of elements and a message

constexpr auto kMostReasons = static_cast<uint64_t>(train::StopReason::error);

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      incarnation_(wire::new_incarnation()),
      trace_(options_.tracer, options_.index),
      alone_since_(now()),
      evaluator_heard_(now()) {
  base::make_directories(options_.folder);
  take_over_state();
  transport::ServerOptions listen;
  listen.address = cluster::listen_address(options_.spec.address({cluster::Role::ps, options_.index}));
  listen.security = options_.security;
  listen.spin = options_.spin;
  listen.meter = options_.meter;
  listen.largest_payload = kMostPayload;
  listen.hello_first = true;
  listen.on_refused = [this](const std::string& line) { log("warning", line); };
  listen.on_failure = [this](const std::string& line) {
    const base::MutexLock lock(mutex_);
    end(fmt::format("ps:{}: {}", options_.index, line));
  };
  listener_ = std::make_unique<transport::Server>(listen, [this](transport::Stream& stream) { handle(stream); });
}

Server::~Server() {
  {
    const base::MutexLock lock(mutex_);
    end({});
    if (followed_ != nullptr) followed_->cancel("this server ends");
  }
  if (listener_) listener_->shutdown();
  if (monitor_.joinable()) monitor_.join();
  if (follow_thread_.joinable()) follow_thread_.join();
}

double Server::now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

void Server::log(std::string_view level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

std::string Server::member_name(int member) const {
  const std::vector<cluster::Task> members = options_.spec.members();
  if (member < 0 || static_cast<size_t>(member) >= members.size()) return "?";
  const std::string& address = options_.spec.address(members[static_cast<size_t>(member)]);
  return members[static_cast<size_t>(member)].str() + (address.empty() ? "" : " at " + address);
}

void Server::run() {
  monitor_ = std::thread([this] { monitor(); });
  if (!coordinates()) follow_thread_ = std::thread([this] { follow_coordinator(); });
  std::exception_ptr error;
  bool trained = false;
  {
    const base::MutexLock lock(mutex_);
    while (!ended_) ending_.wait(mutex_);
    error = error_;
    trained = finishing_;
  }
  if (error) std::rethrow_exception(error);
  // The chief has all state in its last checkpoint.
  std::error_code ignored;
  for (const std::string& file : {state_file(), state_file() + ".lock", job_file()}) {
    if (trained) std::filesystem::remove(file, ignored);
  }
}

void Server::end(const std::string& error) {
  if (!ended_ && !error.empty()) error_ = std::make_exception_ptr(Error(error));
  ended_ = true;
  ending_.notify_all();
  changed_.notify_all();
}

void Server::end_with_error() {
  const base::MutexLock lock(mutex_);
  if (!ended_) error_ = std::current_exception();
  end({});
}

Server::Progress Server::progress() const {
  const base::MutexLock lock(mutex_);
  Progress progress;
  progress.initialised = initialised_;
  progress.pushes = pushes_;
  if (!initialised_) {
    progress.state = "waiting for the chief";
    return progress;
  }
  progress.bytes_copied = bytes_staged_ + shard_->bytes_copied();
  progress.version = coordinator_ ? coordinator_->version() : follower_->version();
  progress.active = coordinator_ ? coordinator_->active() : static_cast<int>(sessions_.size());
  progress.state = finishing_ ? "done" : "serving";
  return progress;
}

// Streams.

void Server::handle(transport::Stream& stream) {
  const base::Result<transport::Frame> first = stream.read();
  if (!first) return;
  try {
    const wire::Hello hello = check_hello(stream, first.value());
    stream.admit();
    if ((first.value().header.flags & kControl) != 0) {
      serve_control(stream, hello);
    } else {
      serve_data(stream, hello);
    }
  } catch (const std::exception& error) {
    // The disk is full or failed, or a limit is reached. Acknowledged pushes are safe, but this server cannot go on.
    if (dynamic_cast<const IoError*>(&error) != nullptr || base::is_limit(error)) end_with_error();
    static_cast<void>(wire::send_refusal(stream, header(Kind::refuse), wire::refusal_for(error)));
  }
}

wire::Welcome Server::welcome() const {
  wire::Welcome welcome;
  welcome.set_run(options_.run);
  welcome.set_generation(generation_);
  welcome.set_incarnation(incarnation_);
  welcome.set_initialised(initialised_);
  if (initialised_) welcome.set_version(coordinator_ ? coordinator_->version() : follower_->version());
  for (const program::ParameterRange& range : ranges_) {
    wire::Range& added = *welcome.add_ranges();
    added.set_offset(range.offset);
    added.set_count(range.count);
  }
  return welcome;
}

void Server::serve_control(transport::Stream& stream, const wire::Hello& hello) {
  const bool server = hello.role().starts_with("ps:");
  std::optional<ControlStreams::Entry> entry;
  {
    // Under the lock, so that no commit falls between the ones it missed and the ones sent to it as a peer.
    const base::MutexLock lock(mutex_);
    claim_role(stream, hello);
    const std::vector<Decision> missed = server && coordinator_ ? missed_by(hello) : std::vector<Decision>();
    if (!send(stream, header(Kind::welcome), welcome())) return;
    for (const Decision& decision : missed) {
      wire::Commit commit;
      to_wire(decision, commit);
      commit.set_generation(generation_);
      if (!send(stream, header(Kind::commit), commit)) return;
    }
    if (hello.role().starts_with("evaluator:")) evaluator_heard_ = now();
    entry.emplace(
        control_streams_,
        Peer{hello.role(), hello.member(), hello.incarnation(), stream.peer(), false, process_of(hello, stream.peer())},
        stream);
  }
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (!frame) break;
    entry->heard();
    if (claims_ > 0) {
      const base::MutexLock lock(mutex_);
      changed_.notify_all();
    }
    if (kind_of(frame.value()) == Kind::notice) {
      entry->knows_end();
      const base::MutexLock lock(mutex_);
      know_end_.insert(hello.member());
    }
    if (kind_of(frame.value()) == Kind::received && server) on_received(hello, parse<wire::Received>(frame.value()));
  }
  const std::string why = entry->why();
  entry.reset();
  departed(hello, why.empty() ? "its connection closed" : why);
}

void Server::on_received(const wire::Hello& hello, const wire::Received& received) {
  const base::MutexLock lock(mutex_);
  const bool fits = coordinator_ && received.generation() == generation_ && received.member() >= 0 &&
                    received.member() < coordinator_->options().members;
  if (!fits) return;
  const int server = cluster::parse_task(hello.role()).index;
  coordinator_->reached(server, received.version());
  coordinator_->received(server, received.member(), received.incarnation(), received.sequence());
  commit_if_ready();
}

std::vector<Decision> Server::missed_by(const wire::Hello& hello) {
  coordinator_->forget(cluster::parse_task(hello.role()).index);
  if (!hello.initialised()) {
    server_lost_state_ = initialised_;
    changed_.notify_all();
  }
  if (!hello.initialised() || hello.generation() != generation_) return {};
  std::optional<std::vector<Decision>> missed = coordinator_->missed(hello.version());
  if (missed) return std::move(*missed);
  throw RefusedError(
      RefusalKind::state,
      fmt::format("its state is of step {}, which does not fit ps:0's of step {}; resume from a checkpoint",
                  hello.version(), coordinator_->version()));
}

void Server::departed(const wire::Hello& hello, const std::string& why) {
  const base::MutexLock lock(mutex_);
  changed_.notify_all();
  if (ended_ || finishing_) return;
  // The process has another control stream already: it was cut off for a while, and is back.
  const auto itself = [&](const Peer& peer) {
    return peer.role == hello.role() && peer.incarnation == hello.incarnation();
  };
  if (control_streams_.any(itself)) return;
  // A worker that only asked for the run's name is not a member.
  bool counted = hello.role().starts_with("ps:") || hello.role().starts_with("evaluator:");
  if (hello.member() >= 0 && coordinator_) {
    const bool finished = coordinator_->finished(hello.member());
    counted = coordinator_->depart(hello.member(), hello.incarnation()) && !finished;
    if (counted) lost_at_[hello.member()] = now();
    commit_if_ready();
  }
  const auto session = sessions_.find(hello.member());
  if (session != sessions_.end() && session->second->hello.incarnation() == hello.incarnation()) {
    session->second->given_up = true;
    session->second->stream.cancel(why);
  }
  changed_.notify_all();
  const std::string name = hello.member() >= 0 ? member_name(hello.member()) : hello.role();
  if (counted && coordinates()) log("warning", fmt::format("{}: {}; training goes on", name, why));
}

void Server::serve_data(transport::Stream& stream, const wire::Hello& hello) {
  const auto session = std::make_shared<Session>(stream);
  session->hello = hello;
  {
    const base::MutexLock lock(mutex_);
    claim_role(stream, hello);
  }
  admit(session);
  struct Dismissal {
    Server& server;
    const SessionPtr& session;
    ~Dismissal() {
      try {
        server.trace_.give_back(session->hello.role(), session->trace);
        server.dismiss(session);
      } catch (const std::exception&) {
        server.end_with_error();
      }
    }
  } dismissal{*this, session};
  wire::Welcome greeting;
  {
    const base::MutexLock lock(mutex_);
    greeting = welcome();
    session->told_generation = generation_;
  }
  if (!send(stream, header(Kind::welcome), greeting)) return;
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (!frame) return;
    answer(session, frame.value());
  }
}

void Server::answer(const SessionPtr& session, const transport::Frame& frame) {
  const bool trains = session->hello.member() >= 0;
  const bool evaluates = session->hello.role().starts_with("evaluator:");
  const auto only = [&](bool allowed) {
    if (!allowed)
      throw DataError(fmt::format("frame of kind {} is not allowed from {}", frame.header.kind, session->hello.role()));
  };
  switch (kind_of(frame)) {
    case Kind::push:
      only(trains);
      return on_push(session, frame);
    case Kind::join:
      only(trains && coordinates());
      return on_join(session, frame);
    case Kind::pull:
      only(trains);
      return on_pull(session, frame);
    case Kind::init_begin:
    case Kind::init:
    case Kind::init_end:
      only(session->hello.member() == 0);
      return on_init(session, frame);
    case Kind::leave:
      only(trains && coordinates());
      return on_leave(session, frame);
    case Kind::wait_end:
      only(trains && coordinates());
      return on_wait_end(session);
    case Kind::hold:
      only(session->hello.member() == 0 && coordinates());
      return on_hold(session);
    case Kind::snapshot:
      only(session->hello.member() == 0);
      return on_snapshot(session, frame);
    case Kind::release: {
      const base::MutexLock lock(mutex_);
      return release(session);
    }
    case Kind::stop:
      only(evaluates && coordinates() && frame.header.extra <= kMostReasons);
      return on_stop(session, static_cast<train::StopReason>(frame.header.extra));
    case Kind::follow:
      only(evaluates);
      return on_follow(session, frame);
    case Kind::end: {
      only(session->hello.member() == 0);
      static_cast<void>(session->stream.write(header(Kind::ok)));
      const base::MutexLock lock(mutex_);
      finishing_ = true;
      finishing_since_ = now();
      ending_.notify_all();
      changed_.notify_all();
      return;
    }
    default:
      only(false);
  }
}

/// Registers a stream. A worker or the evaluator has one data stream: a newer one replaces an older one.
void Server::admit(const SessionPtr& session) {
  const bool evaluates = session->hello.role().starts_with("evaluator:");
  if (session->hello.member() < 0 && !evaluates) return;
  const base::MutexLock lock(mutex_);
  SessionPtr& place = evaluates ? evaluator_ : sessions_[session->hello.member()];
  if (place) place->given_up = true;
  if (place) place->stream.cancel("a newer connection of " + session->hello.role());
  place = session;
}

void Server::dismiss(const SessionPtr& session) {
  bool depart = false;
  {
    const base::MutexLock lock(mutex_);
    release(session);
    apply_booked(session);
    const auto found = sessions_.find(session->hello.member());
    if (found != sessions_.end() && found->second == session) {
      sessions_.erase(found);
      depart = true;
    }
    if (evaluator_ == session) evaluator_.reset();
    changed_.notify_all();
  }
  // Its control stream reports its death; without one, this is the only sign.
  if (depart) departed(session->hello, "its connection closed");
}

}  // namespace lockstep::ps
