#include "transport/lobby.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "transport/sockets.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::seconds kFarewell{5};           // for one that is not wanted to read why, and to hang up
constexpr std::chrono::milliseconds kJustNow{100};     // since the last bytes of one that must not make room
constexpr std::chrono::milliseconds kLookAtHosts{20};  // gRPC may have work that no socket tells of
constexpr size_t kMostReports = 100;

/// Whether bytes wait to be read that may begin a connection; false where the peer has hung up.
bool may_begin(int socket, bool tls) {
  constexpr char kHandshakeRecord = 0x16;
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 && (!tls || byte == kHandshakeRecord);
}

}  // namespace

Lobby::Lobby(const ServerOptions& options, std::function<std::string()> why_full)
    : options_(options), why_full_(std::move(why_full)) {
  if (!options_.security.keys.empty()) keys_ = read_keys(options_.security);
}

void Lobby::take(base::FileHandle socket) {
  Stranger& stranger = strangers_.emplace_back();
  stranger.peer = peer_of(socket.get());
  stranger.socket = std::move(socket);
  stranger.heard = Clock::now();
  stranger.until = stranger.heard + options_.stranger_wait;
}

bool Lobby::make_room() {
  const auto oldest = std::min_element(strangers_.begin(), strangers_.end(),
                                       [](const Stranger& a, const Stranger& b) { return a.heard < b.heard; });
  if (oldest == strangers_.end() || Clock::now() - oldest->heard < kJustNow) return false;
  strangers_.erase(oldest);
  return true;
}

void Lobby::add_to(std::vector<pollfd>& polled, int& timeout_ms) const {
  for (const Stranger& stranger : strangers_) {
    // Nobody reads the bytes of one that is not wanted.
    const short events = stranger.ending ? POLLRDHUP : POLLIN | POLLRDHUP;
    polled.push_back({stranger.host ? stranger.host->watched() : stranger.socket.get(), events, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(stranger.until - Clock::now());
    const auto most = std::clamp(left, std::chrono::milliseconds(0), options_.stranger_wait);
    const auto wait = static_cast<int>(stranger.host ? std::min(most, kLookAtHosts).count() : most.count());
    timeout_ms = timeout_ms < 0 ? wait : std::min(timeout_ms, wait);
  }
}

std::vector<Lobby::Ready> Lobby::look(std::span<const pollfd> polled) {
  std::vector<Ready> done;
  auto polled_of = polled.begin();
  for (auto at = strangers_.begin(); at != strangers_.end();) {
    const bool readable = (polled_of++)->revents != 0;
    const auto next = std::next(at);
    if (!advance(*at, readable)) {
      report(*at);
      strangers_.erase(at);
    } else if (ready(*at)) {
      done.push_back({std::move(at->host), std::move(at->stream)});
      strangers_.erase(at);
    }
    at = next;
  }
  return done;
}

bool Lobby::advance(Stranger& stranger, bool readable) {
  if (Clock::now() >= stranger.until) return false;
  if (readable) stranger.heard = Clock::now();
  if (!stranger.host) return !readable || (may_begin(stranger.socket.get(), keys_.has_value()) && host(stranger));
  if (stranger.stream) {
    if (stranger.ending || !stranger.stream->first_frame_ended()) return !stranger.host->hung_up();
    return !options_.hello_first || stranger.stream->has_first_frame();
  }
  ServerHost::Call call = stranger.host->look_for_call();
  if (call.call) begin(stranger, std::move(call));
  return !stranger.host->hung_up();
}

/// Lets gRPC have the connection.
bool Lobby::host(Stranger& stranger) try {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (keys_) {
    try {
      keys_ = read_keys(options_.security);
    } catch (const UsageError&) {  // NOLINT(bugprone-empty-catch): half replaced, or expired; the old ones still do
    }
    stranger.check = std::make_shared<core::PeerCheck>(keys_->authority, Purpose::client, "");
    credentials = core::server_credentials(*keys_, stranger.check);
  }
  stranger.host = std::make_unique<ServerHost>(std::move(stranger.socket), credentials, options_.largest_payload);
  return true;
} catch (const LimitError& error) {
  limit_ = error.what();
  return false;
} catch (const Error&) {
  return false;
}

void Lobby::begin(Stranger& stranger, ServerHost::Call call) {
  const auto decline = [&](const std::string& why) {
    stranger.stream->cancel(why);
    stranger.ending = true;
    stranger.until = std::min(stranger.until, Clock::now() + kFarewell);
  };
  const bool known = call.method == core::kMethod;
  stranger.stream = std::make_unique<ServerStream>(
      std::move(call.call), std::move(call.queue), stranger.host->socket(), keys_.has_value(),
      CallStream::Options{.largest_payload = options_.largest_payload, .spin = options_.spin, .meter = options_.meter});
  if (!known) return decline("there is no such method here");
  if (const std::string why = why_full_(); !why.empty()) return decline(why);
  stranger.stream->begin(options_.hello_first);
}

bool Lobby::ready(Stranger& stranger) const {
  return stranger.stream && !stranger.ending && (!options_.hello_first || stranger.stream->first_frame_ended());
}

void Lobby::report(const Stranger& stranger) {
  const std::string why = stranger.check ? stranger.check->refusal() : "";
  if (why.empty() || !options_.on_refused || reported_.size() >= kMostReports) return;
  const std::string host = stranger.peer.substr(0, stranger.peer.rfind(':'));
  if (reported_.insert(host + why).second) options_.on_refused(fmt::format("{} was refused: {}", stranger.peer, why));
}

}  // namespace lockstep::transport
