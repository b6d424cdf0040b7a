// A Server's streams that hands serve: the acceptor gives them to their hands, and takes care of their ends.
#include <algorithm>
#include <utility>

#include "transport/server_impl.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::milliseconds kLookAtEnding{20};  // between looks at ended streams
constexpr std::chrono::milliseconds kLastHangUps{100};  // time for the peers to hang up at the end
constexpr const char* kEnding = "the server is shutting down";

}  // namespace

Hands Server::Impl::make_hands() {
  Hands hands;
  for (int i = 0; i < options_.hands; ++i) {
    hands.push_back(std::make_unique<Hand>([this] { ring(); }, options_.spin));
  }
  return hands;
}

void Server::Impl::begin_by_hand(Lobby::Ready ready) {
  Session* session = nullptr;
  {
    const base::MutexLock lock(mutex_);
    session = &sessions_.emplace_back();
    session->host = ready.host.get();
    session->stream = ready.stream.get();
    ++unadmitted_;
  }
  session->ready = std::move(ready);
  ServerStream& stream = *session->ready.stream;
  session->served = std::make_unique<Served>(stream, handler_, [this, session] {
    const base::MutexLock lock(mutex_);
    came_to_an_end_.push_back(session);
    ring();
  });
  stream.on_admit([this, session] { admit(*session); });
  stream.drive_by(session->served.get());
  stream.wake();
}

void Server::Impl::add_ending(std::vector<pollfd>& polled, int& timeout_ms) const {
  if (ending_.empty()) return;
  const auto most = static_cast<int>(kLookAtEnding.count());
  timeout_ms = timeout_ms < 0 ? most : std::min(timeout_ms, most);
  for (const Session* session : ending_) {
    if (!session->ready.stream) polled.push_back({session->ready.host->watched(), POLLRDHUP, 0});
  }
}

void Server::Impl::advance_ending() {
  const auto now = std::chrono::steady_clock::now();
  {
    const base::MutexLock lock(mutex_);
    for (Session* session : std::exchange(came_to_an_end_, {})) {
      session->ended = now;
      session->stream = nullptr;
      if (session->admitted) {
        --streams_;
        session->lingers = true;
        ++lingering_;
      }
      ending_.push_back(session);
    }
  }
  std::erase_if(ending_, [this](Session* session) { return advance_ending(*session); });
}

bool Server::Impl::advance_ending(Session& session) {
  const auto now = std::chrono::steady_clock::now();
  Lobby::Ready& ready = session.ready;
  if (ready.stream) {
    if (!ready.stream->idle()) {
      if (now - session.ended > (hurried_ ? kLastHangUps : ServerStream::kLastWord)) ready.stream->cut();
      return false;
    }
    ready.stream.reset();
    session.ended = now;
  }
  ready.host->work();
  const std::chrono::milliseconds linger = hurried_ ? std::min(kLastHangUps, options_.linger) : options_.linger;
  if (!ready.host->hung_up() && now - session.ended < linger) return false;
  {
    const base::MutexLock lock(mutex_);
    session.host = nullptr;
  }
  ready.host.reset();
  const base::MutexLock lock(mutex_);
  if (!session.admitted) --unadmitted_;
  end_lingering(session);
  session.done = true;
  return true;
}

/// Cancels them together, so that their peers hang up at the same time.
void Server::Impl::end_all_by_hands() {
  if (hands_.empty()) return;
  hurried_ = true;
  {
    const base::MutexLock lock(mutex_);
    for (const Session& session : sessions_) {
      if (session.stream == nullptr) continue;
      session.stream->cancel(kEnding);
      session.stream->wake();
    }
  }
  for (;;) {
    advance_ending();
    join_finished();
    {
      const base::MutexLock lock(mutex_);
      if (sessions_.empty()) return;
    }
    std::vector<pollfd> polled{{bell_.get(), POLLIN, 0}};
    int timeout = -1;
    add_ending(polled, timeout);
    static_cast<void>(poll(polled.data(), polled.size(), timeout));
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof(rings));
  }
}

}  // namespace lockstep::transport
