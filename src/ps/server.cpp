#include "ps/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/limits.h"
#include "lockstep/error.h"

namespace lockstep::ps {

using transport::Next;

namespace {

constexpr size_t kMostPayload = size_t{16} << 20;  ///< a slice of elements and a message

/// Hands of the listener: a few even on a small machine, so that few workers have one each.
int hands() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 4U, 16U)); }

constexpr auto kMostReasons = static_cast<uint64_t>(train::StopReason::error);

JobOptions job_options(const ServerOptions& options) {
  JobOptions job;
  job.index = options.index;
  const auto add = [&](std::vector<std::string>& names, const cluster::Task& task) {
    const std::string& address = options.spec.address(task);
    names.push_back(task.str() + (address.empty() ? "" : " at " + address));
  };
  for (const cluster::Task& member : options.spec.members()) add(job.members, member);
  for (int i = 0; i < static_cast<int>(options.spec.ps.size()); ++i) add(job.servers, {cluster::Role::ps, i});
  job.evaluator = !options.spec.evaluator.empty();
  job.patience = options.patience;
  job.record = options.contributions;
  return job;
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      incarnation_(wire::new_incarnation()),
      trace_(options_.tracer, options_.index),
      applier_(options_.at_update),
      job_(job_options(options_), now()) {
  base::make_directories(options_.folder);
  take_over_state();
  transport::ServerOptions listen;
  listen.address = cluster::listen_address(options_.spec.address({cluster::Role::ps, options_.index}));
  listen.security = options_.security;
  listen.spin = options_.spin;
  listen.meter = options_.meter;
  listen.largest_payload = kMostPayload;
  listen.hands = hands();
  listen.on_refused = [this](const std::string& line) { log("warning", line); };
  listen.on_failure = [this](const std::string& line) {
    const base::MutexLock lock(mutex_);
    end(fmt::format("ps:{}: {}", options_.index, line));
  };
  maker_ = std::thread([this] { make_versions(); });
  try {
    listener_ = std::make_unique<transport::Server>(listen, [this](transport::Stream& stream) { handle(stream); });
  } catch (...) {
    stop_maker();
    throw;
  }
}

void Server::stop_maker() {
  {
    const base::MutexLock lock(mutex_);
    end({});
  }
  if (maker_.joinable()) maker_.join();
}

Server::~Server() {
  {
    const base::MutexLock lock(mutex_);
    end({});
    if (followed_ != nullptr) followed_->cancel("this server ends");
  }
  if (listener_) listener_->shutdown();
  if (monitor_.joinable()) monitor_.join();
  stop_maker();
  if (follow_thread_.joinable()) follow_thread_.join();
}

double Server::now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

void Server::log(std::string_view level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
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
    trained = job_.finishing();
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
  wake_waiting();
  to_make_.notify_all();
}

void Server::end_with_error() {
  const base::MutexLock lock(mutex_);
  if (!ended_) error_ = std::current_exception();
  end({});
}

Server::Progress Server::progress() const {
  const base::MutexLock lock(mutex_);
  Progress progress;
  progress.initialised = job_.initialised();
  progress.pushes = job_.pushes();
  if (!job_.initialised()) {
    progress.state = "waiting for the chief";
    return progress;
  }
  progress.bytes_copied = bytes_staged_ + shard_->bytes_copied();
  progress.version = job_.version();
  progress.active = job_.active();
  progress.state = job_.finishing() ? "done" : "serving";
  return progress;
}

// Streams.

void Server::handle(transport::Stream& stream) {
  const base::Result<transport::Frame> first = stream.read();
  if (!first) return;
  std::shared_ptr<Session> session;
  try {
    const bool control = (first.value().header.flags & kControl) != 0;
    session = std::make_shared<Session>(stream, check_hello(stream, first.value()), control);
    stream.admit();
    const base::MutexLock lock(mutex_);
    claim_role(*session, now());
  } catch (const std::exception& error) {
    return refuse(stream, error);
  }
  const auto guarded = [this, session](const auto& what) -> Next {
    try {
      return what();
    } catch (const std::exception& error) {
      refuse(session->stream, error);
      return Next::end;
    }
  };
  transport::Attendance attendance;
  attendance.light = session->control;
  attendance.ready = [this, session, guarded] { return guarded([&] { return proceed(*session); }); };
  attendance.on_frame = [this, session, guarded](const transport::Frame& frame) {
    return guarded([&] {
      session->control ? on_control(*session, frame) : answer(*session, frame);
      return session->then ? Next::wait : Next::read;
    });
  };
  attendance.on_end = [this, session] { on_end_of(*session); };
  transport::attend(stream, std::move(attendance));
}

bool Server::ends_server(const std::exception& error) {
  return dynamic_cast<const IoError*>(&error) != nullptr || base::is_limit(error);
}

void Server::refuse(transport::Stream& stream, const std::exception& error) {
  if (ends_server(error)) end_with_error();
  wire::RefusalReason refusal = wire::refusal_for(error);
  {
    const base::MutexLock lock(mutex_);
    if (ended_) refusal.kind = RefusalKind::failed;
  }
  static_cast<void>(wire::send_refusal(stream, header(Kind::refuse), refusal));
}

wire::Welcome Server::welcome() const {
  wire::Welcome welcome;
  welcome.set_run(options_.run);
  welcome.set_incarnation(incarnation_);
  job_.welcome(welcome);
  return welcome;
}

/// Makes no versions, so that no commit falls between the ones a server missed and the ones sent to it as a peer.
void Server::open_control(Session& session) {
  const wire::Hello& hello = session.hello;
  transport::Stream& stream = session.stream;
  const std::vector<Decision> missed = job_.arrived(hello, now());
  carry_out(job_.orders());
  static_cast<void>(send(stream, header(Kind::welcome), welcome()));
  for (const Decision& decision : missed) {
    wire::Commit commit;
    to_wire(decision, commit);
    commit.set_generation(job_.generation());
    static_cast<void>(send(stream, header(Kind::commit), commit));
  }
  session.entry.emplace(
      control_streams_,
      Peer{hello.role(), hello.member(), hello.incarnation(), stream.peer(), false, process_of(hello, stream.peer())},
      stream);
}

void Server::on_control(Session& session, const transport::Frame& frame) {
  session.entry->heard();
  if (claims_ > 0) {
    const base::MutexLock lock(mutex_);
    wake_waiting();
  }
  if (kind_of(frame) == Kind::notice) {
    session.entry->knows_end();
    const base::MutexLock lock(mutex_);
    job_.knows_end(session.hello.member());
  }
  if (kind_of(frame) == Kind::received && session.hello.role().starts_with("ps:")) {
    const auto received = parse<wire::Received>(frame);
    const base::MutexLock lock(mutex_);
    job_.received(cluster::parse_task(session.hello.role()).index, received);
    let_others_make();
  }
}

void Server::on_control_end(Session& session) {
  const std::string why = session.entry->why();
  session.entry.reset();
  departed(session.hello, why.empty() ? "its connection closed" : why);
}

void Server::departed(const wire::Hello& hello, const std::string& why) {
  const base::MutexLock lock(mutex_);
  wake_waiting();
  if (ended_) return;
  job_.departed(hello, why, control_streams_.peers(), now());
  let_others_make();  // a version may need one less
}

void Server::open(Session& session) {
  if (session.control) return open_control(session);
  session.id = job_.open(session.hello, now());
  sessions_[session.id] = &session;
  settle();
  const wire::Welcome greeting = welcome();
  job_.greeted(session.id);
  static_cast<void>(send(session.stream, header(Kind::welcome), greeting));
}

void Server::on_end_of(Session& session) try {
  {
    const base::MutexLock lock(mutex_);
    waiting_.erase(&session);
    if (std::exchange(session.claims, false)) --claims_;
  }
  session.outgoing.clear();
  if (session.entry) on_control_end(session);
  trace_.give_back(session.hello.role(), session.trace);
  if (session.id != 0) dismiss(session);
} catch (const std::exception&) {
  end_with_error();
}

void Server::answer(Session& session, const transport::Frame& frame) {
  const bool trains = session.hello.member() >= 0;
  const bool evaluates = session.hello.role().starts_with("evaluator:");
  const auto only = [&](bool allowed) {
    if (!allowed)
      throw DataError(fmt::format("frame of kind {} is not allowed from {}", frame.header.kind, session.hello.role()));
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
      only(session.hello.member() == 0);
      return on_init(session, frame);
    case Kind::leave:
      only(trains && coordinates());
      return on_leave(session, frame);
    case Kind::wait_end:
      only(trains && coordinates());
      return on_wait_end(session);
    case Kind::hold:
      only(session.hello.member() == 0 && coordinates());
      return on_hold(session);
    case Kind::snapshot:
      only(session.hello.member() == 0);
      return on_snapshot(session, frame);
    case Kind::release: {
      const base::MutexLock lock(mutex_);
      if (job_.release(session.id)) settle();
      return;
    }
    case Kind::stop:
      only(evaluates && coordinates() && frame.header.extra <= kMostReasons);
      return on_stop(session, static_cast<train::StopReason>(frame.header.extra));
    case Kind::follow:
      only(evaluates);
      return on_follow(session, frame);
    case Kind::end:
      only(session.hello.member() == 0);
      return on_end(session);
    default:
      only(false);
  }
}

void Server::dismiss(Session& session) {
  const base::MutexLock lock(mutex_);
  sessions_.erase(session.id);  // before an update, which may fail
  const std::optional<Booked> booked = job_.take_booked(session.id);
  if (job_.close(session.id)) job_.stream_ended(session.hello, control_streams_.peers(), now());
  if (booked) {
    const double began = now();
    apply(*booked);
    times_.add(Stage::apply, now() - began);
  }
  settle();
}

}  // namespace lockstep::ps
