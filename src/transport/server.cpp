#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/limits.h"
#include "transport/server_impl.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::milliseconds kNoFiles{100};  // between attempts to accept while the system has no room
constexpr size_t kMostStrangers = 64;               // most connections that have not identified themselves
constexpr int kAcceptedAtOnce = 64;
constexpr const char* kStopping = "the server is shutting down";

base::FileHandle make_bell() {
  base::FileHandle bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.open()) base::throw_io_error("make", "an eventfd", errno);
  return bell;
}

/// Peers of a server with hands speak first.
ServerOptions completed(ServerOptions options) {
  options.hello_first = options.hello_first || options.hands > 0;
  return options;
}

/// Returns why the system has no room for another connection.
std::string why_no_room(int error) {
  const std::string limit = base::limit_text(error);
  return limit.empty() ? std::generic_category().message(error) : limit;
}

}  // namespace

Server::Impl::Impl(const ServerOptions& options, Handler handler)
    : options_(completed(options)),
      handler_(std::move(handler)),
      bell_((core::start_library(), make_bell())),
      hands_(make_hands()),
      lobby_(options_, hands_,
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
  end_all_by_hands();
}

bool Server::Impl::wait_and_handle() {
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(accepts_from_ - std::chrono::steady_clock::now());
  const bool accepts = pause.count() <= 0;
  std::vector<pollfd> polled{{accepts ? listener_.socket() : -1, POLLIN, 0}, {bell_.get(), POLLIN, 0}};
  int timeout = accepts ? -1 : static_cast<int>(pause.count());
  lobby_.add_to(polled, timeout);
  const size_t strangers = polled.size() - 2;
  add_ending(polled, timeout);
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
  advance_ending();
  for (Lobby::Ready& ready : lobby_.advance_all(std::span(polled).subspan(2, strangers))) begin(std::move(ready));
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
  if (!hands_.empty()) return begin_by_hand(std::move(ready));
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
    if (session.thread.joinable()) session.thread.join();  // with a hand it has none
  }
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
