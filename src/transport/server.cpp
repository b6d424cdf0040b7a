#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "base/mutex.h"
#include "transport/lobby.h"
#include "transport/sockets.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::milliseconds kNoFiles{100};  // between attempts to accept while the system has no room
constexpr size_t kMostStrangers = 64;               // most connections that have not identified themselves
constexpr int kAcceptedAtOnce = 64;
/// Between looks at attended streams that no socket announces: a writer may have read their bytes, or they are
/// cancelled.
constexpr std::chrono::milliseconds kLookAtAttended{250};
constexpr std::chrono::milliseconds kLastHangUps{100};  // time for the peers of attended streams to hang up at the end
constexpr int kFramesAtOnce = 64;
constexpr const char* kStopping = "the server is shutting down";

base::FileHandle make_bell() {
  base::FileHandle bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.open()) base::throw_io_error("make", "an eventfd", errno);
  return bell;
}

/// Returns why the system has no room for another connection.
std::string why_no_room(int error) {
  const std::string limit = base::limit_text(error);
  return limit.empty() ? std::generic_category().message(error) : limit;
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler);
  ~Impl() { shutdown(); }

  void shutdown();
  [[nodiscard]] int port() const { return listener_.port(); }

 private:
  /// A stream with its handler's thread.
  struct Session {
    std::thread thread;
    ServerHost* host = nullptr;      ///< owned by the session's thread
    ServerStream* stream = nullptr;  ///< set while its handler runs
    bool admitted = false;
    bool lingers = false;  ///< true while the peer may still read the last frames of the ended stream
    bool done = false;
  };
  /// A stream that the acceptor reads (attend.h).
  struct Attended {
    Session* session = nullptr;
    Lobby::Ready ready;
  };

  // The acceptor's thread.
  void run();
  /// Waits once and handles the events. Returns false to end.
  bool wait_and_handle();
  void accept_some();
  [[nodiscard]] bool has_room();
  void begin(Lobby::Ready ready);
  void join_finished();
  /// Handles a system limit: closes strangers first, because they must not end the server.
  void no_room(const std::string& why);
  void fail(const std::string& why);
  void take_over_attended();
  /// Reads what has arrived; `polled`: their sockets.
  void read_attended(std::span<const pollfd> polled);
  /// Reads one of them. Returns false if it has ended; `failure` says why, if its peer is to know.
  bool read_some(const Attended& one, std::string& failure);
  void end_attended(Attended one, const std::string& failure);
  void end_all_attended();

  // A session's thread.
  void serve(Session& session, Lobby::Ready ready);
  /// Ends a stream in order, and waits until its peer hangs up.
  void finish(Session& session, Lobby::Ready ready, const std::string& failure, std::chrono::milliseconds linger);
  void admit(Session& session);

  void ring();
  /// Returns why there is no place for another stream. A peer that has not hung up makes room.
  [[nodiscard]] std::string why_full() LOCKSTEP_REQUIRES(mutex_);
  void end_lingering(Session& session) LOCKSTEP_REQUIRES(mutex_);

  const ServerOptions options_;
  const Handler handler_;
  const base::FileHandle bell_;  ///< wakes the acceptor: a session has ended, or the server should

  base::Mutex mutex_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int streams_ LOCKSTEP_GUARDED_BY(mutex_) = 0;        ///< admitted streams
  int lingering_ LOCKSTEP_GUARDED_BY(mutex_) = 0;      ///< ended streams whose connection is still open
  size_t unadmitted_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< sessions of strangers
  std::list<Session> sessions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<Attended> handed_over_ LOCKSTEP_GUARDED_BY(mutex_);  ///< by their handlers, to the acceptor

  // Used only by the acceptor's thread.
  Lobby lobby_;
  Listener listener_;
  std::chrono::steady_clock::time_point accepts_from_;
  bool failed_ = false;
  std::list<Attended> attended_;
  std::chrono::steady_clock::time_point look_at_attended_;
  bool more_from_attended_ = false;
  std::thread acceptor_;
};

Server::Impl::Impl(const ServerOptions& options, Handler handler)
    : options_(options),
      handler_(std::move(handler)),
      bell_((core::start_library(), make_bell())),
      lobby_(options_,
             [this] {
               const base::MutexLock lock(mutex_);
               return why_full();
             }),
      listener_(options.address),
      acceptor_([this] { run(); }) {}

std::string Server::Impl::why_full() {
  if (stopping_) return kStopping;
  if (streams_ >= options_.most_streams) {
    return fmt::format("the server has {} streams, which is its limit", streams_);
  }
  if (streams_ + lingering_ < options_.most_streams) return "";
  const auto oldest = std::find_if(sessions_.begin(), sessions_.end(), [](const Session& one) { return one.lingers; });
  if (oldest->host != nullptr) oldest->host->cut();
  end_lingering(*oldest);
  return "";
}

void Server::Impl::end_lingering(Session& session) {
  if (std::exchange(session.lingers, false)) --lingering_;
}

void Server::Impl::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof(one));
}

// The acceptor's thread.

void Server::Impl::run() {
  while (wait_and_handle()) {
  }
  lobby_.clear();
  end_all_attended();
}

bool Server::Impl::wait_and_handle() {
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(accepts_from_ - std::chrono::steady_clock::now());
  const bool accepts = pause.count() <= 0;
  std::vector<pollfd> polled{{accepts ? listener_.socket() : -1, POLLIN, 0}, {bell_.get(), POLLIN, 0}};
  int timeout = accepts ? -1 : static_cast<int>(pause.count());
  lobby_.add_to(polled, timeout);
  const size_t attended_from = polled.size();
  for (const Attended& one : attended_) polled.push_back({one.ready.host->watched(), POLLIN | POLLRDHUP, 0});
  if (!attended_.empty()) {
    const auto most = static_cast<int>(more_from_attended_ ? 0 : kLookAtAttended.count());
    timeout = timeout < 0 ? most : std::min(timeout, most);
  }
  if (poll(polled.data(), polled.size(), timeout) < 0) {
    for (pollfd& fd : polled) fd.revents = 0;
    if (errno != EINTR) fail(why_no_room(errno));
  }
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof(rings));
  {
    const base::MutexLock lock(mutex_);
    if (stopping_) return false;
  }
  join_finished();
  read_attended(std::span(polled).subspan(attended_from));
  take_over_attended();
  for (Lobby::Ready& ready : lobby_.advance_all(std::span(polled).subspan(2))) begin(std::move(ready));
  if (const std::string why = lobby_.take_limit(); !why.empty()) no_room(why);
  if (polled[0].revents != 0) accept_some();
  return true;
}

void Server::Impl::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    int error = 0;
    base::FileHandle socket = listener_.accept(error);
    if (socket.open()) {
      if (has_room()) lobby_.take(std::move(socket));
      continue;
    }
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) no_room(why_no_room(error));
    return;
  }
}

void Server::Impl::no_room(const std::string& why) {
  accepts_from_ = std::chrono::steady_clock::now() + kNoFiles;
  if (lobby_.size() == 0) return fail(why);
  lobby_.clear();
}

bool Server::Impl::has_room() {
  size_t strangers = lobby_.size();
  {
    const base::MutexLock lock(mutex_);
    strangers += unadmitted_;
  }
  return strangers < kMostStrangers || lobby_.make_room();
}

void Server::Impl::fail(const std::string& why) {
  accepts_from_ = std::chrono::steady_clock::now() + kNoFiles;
  if (std::exchange(failed_, true) || !options_.on_failure) return;
  options_.on_failure(fmt::format("cannot accept connections at {}: {}", options_.address, why));
}

void Server::Impl::begin(Lobby::Ready ready) {
  Session* session = nullptr;
  {
    const base::MutexLock lock(mutex_);
    session = &sessions_.emplace_back();
    session->host = ready.host.get();
    session->stream = ready.stream.get();
    session->admitted = !options_.hello_first;
    session->admitted ? static_cast<void>(++streams_) : static_cast<void>(++unadmitted_);
  }
  ready.stream->on_admit([this, session] { admit(*session); });
  try {
    session->thread =
        std::thread([this, session, taken = std::move(ready)]() mutable { serve(*session, std::move(taken)); });
  } catch (const std::system_error& error) {
    fail(base::error_text(error));
    const base::MutexLock lock(mutex_);
    session->admitted ? static_cast<void>(--streams_) : static_cast<void>(--unadmitted_);
    sessions_.pop_back();
  }
}

void Server::Impl::join_finished() {
  std::list<Session> finished;
  {
    const base::MutexLock lock(mutex_);
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const auto next = std::next(at);
      if (at->done) finished.splice(finished.end(), sessions_, at);
      at = next;
    }
  }
  for (Session& session : finished) {
    if (session.thread.joinable()) session.thread.join();  // an attended one may have none
  }
}

void Server::Impl::take_over_attended() {
  std::vector<Attended> came;
  {
    const base::MutexLock lock(mutex_);
    came.swap(handed_over_);
  }
  for (Attended& one : came) {
    one.session->thread.join();  // it has nothing left to do
    attended_.push_back(std::move(one));
    more_from_attended_ = true;
  }
}

void Server::Impl::read_attended(std::span<const pollfd> polled) {
  const auto now = std::chrono::steady_clock::now();
  const bool all = std::exchange(more_from_attended_, false) || now >= look_at_attended_;
  if (all) look_at_attended_ = now + kLookAtAttended;
  auto polled_of = polled.begin();
  for (auto at = attended_.begin(); at != attended_.end() && polled_of != polled.end();) {
    const auto one = at++;
    const bool look = (polled_of++)->revents != 0 || all;
    std::string failure;
    if (!look || read_some(*one, failure)) continue;
    Attended ended = std::move(*one);
    attended_.erase(one);
    end_attended(std::move(ended), failure);
  }
}

bool Server::Impl::read_some(const Attended& one, std::string& failure) {
  try {
    for (int i = 0; i < kFramesAtOnce; ++i) {
      if (!one.ready.stream->next_frame_ended()) return true;
      const base::Result<Frame> frame = one.ready.stream->read();
      if (!frame) return false;
      one.ready.stream->attendance()->on_frame(frame.value());
    }
  } catch (const std::exception& error) {
    failure = error.what();
    return false;
  }
  more_from_attended_ = true;
  return true;
}

void Server::Impl::end_attended(Attended one, const std::string& failure) {
  one.ready.stream->attendance()->on_end();
  Session& session = *one.session;
  try {
    session.thread = std::thread([this, &session, ready = std::move(one.ready), failure]() mutable {
      finish(session, std::move(ready), failure, options_.linger);
    });
  } catch (const std::system_error& error) {  // the stream is closed by now
    fail(base::error_text(error));
    const base::MutexLock lock(mutex_);
    session.host = nullptr;
    session.stream = nullptr;
    --streams_;
    session.done = true;
  }
}

/// They are cancelled together, so that their peers hang up at the same time.
void Server::Impl::end_all_attended() {
  take_over_attended();
  for (const Attended& one : attended_) {
    one.ready.stream->attendance()->on_end();
    one.ready.stream->cancel(kStopping);
  }
  const auto until = std::chrono::steady_clock::now() + kLastHangUps;
  for (Attended& one : attended_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    finish(*one.session, std::move(one.ready), kStopping, std::max(left, std::chrono::milliseconds(0)));
  }
  attended_.clear();
}

// A session's thread.

void Server::Impl::admit(Session& session) {
  const base::MutexLock lock(mutex_);
  if (session.admitted) return;
  if (const std::string why = why_full(); !why.empty()) throw Error(why);
  session.admitted = true;
  --unadmitted_;
  ++streams_;
}

void Server::Impl::serve(Session& session, Lobby::Ready ready) {
  std::string failure;
  try {
    handler_(*ready.stream);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (ready.stream->attendance()) {
    const base::MutexLock lock(mutex_);
    if (failure.empty() && !stopping_) {
      handed_over_.push_back({&session, std::move(ready)});
      return ring();
    }
  }
  if (ready.stream->attendance()) ready.stream->attendance()->on_end();
  finish(session, std::move(ready), failure, options_.linger);
}

void Server::Impl::finish(Session& session, Lobby::Ready ready, const std::string& failure,
                          std::chrono::milliseconds linger) {
  {
    const base::MutexLock lock(mutex_);
    session.stream = nullptr;
    if (session.admitted) {
      --streams_;
      session.lingers = true;
      ++lingering_;
    }
  }
  ready.stream->finish(failure);
  ready.stream.reset();
  ready.host->wait_for_hang_up(linger);
  {
    const base::MutexLock lock(mutex_);
    session.host = nullptr;
  }
  ready.host.reset();
  {
    const base::MutexLock lock(mutex_);
    if (!session.admitted) --unadmitted_;
    end_lingering(session);
    session.done = true;
  }
  ring();
}

void Server::Impl::shutdown() {
  if (!acceptor_.joinable()) return;
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  ring();
  acceptor_.join();
  std::list<Session> rest;
  {
    const base::MutexLock lock(mutex_);
    for (Session& session : sessions_) {
      if (session.host != nullptr) session.host->hurry();
      if (session.stream != nullptr) session.stream->cancel(kStopping);
    }
    rest.swap(sessions_);
  }
  for (Session& session : rest) {
    if (session.thread.joinable()) session.thread.join();
  }
}

Server::Server(const ServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
Server::~Server() = default;
int Server::port() const { return impl_->port(); }
void Server::shutdown() { impl_->shutdown(); }

}  // namespace lockstep::transport
