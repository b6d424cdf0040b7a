#include "transport/lobby.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "transport/sockets.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::seconds kFarewell{5};  // time for a refused peer to read the reason and hang up
/// Time since its last bytes in which a stranger is not closed to make room.
constexpr std::chrono::milliseconds kJustNow{100};
constexpr std::chrono::milliseconds kLookAtHosts{20};  // gRPC may have work that no socket announces
constexpr size_t kMostReports = 100;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kRecordHeader = 5;  // bytes of a TLS record's header
constexpr int kLargestRecord = 1 << 14;

/// True if these bytes begin a first TLS record. `needed`: bytes to wait for before the next check.
bool begins_handshake(std::string_view bytes, size_t& needed) {
  constexpr std::string_view kHandshakeOfVersion3 = "\x16\x03";
  const size_t known = std::min(bytes.size(), kHandshakeOfVersion3.size());
  needed = kRecordHeader;
  if (bytes.substr(0, known) != kHandshakeOfVersion3.substr(0, known)) return false;
  if (bytes.size() < kRecordHeader) return true;
  const int length = static_cast<uint8_t>(bytes[3]) << 8 | static_cast<uint8_t>(bytes[4]);
  needed += static_cast<size_t>(length);
  return length > 0 && length <= kLargestRecord;
}

bool begins_http2(std::string_view bytes, size_t& needed) {
  needed = kPreface.size();
  return bytes == kPreface.substr(0, bytes.size());
}

/// Sets the number of bytes that wake the poll.
void wake_at(int socket, size_t bytes) {
  const int count = static_cast<int>(bytes);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof(count));
}

/// Sends an HTTP/2 frame, which tells a peer that wants TLS that this server has none.
void answer_without_tls(int socket) {
  constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
  std::array<char, kLargestRecord> unread{};
  (void)!::recv(socket, unread.data(), unread.size(), MSG_DONTWAIT);  // unread bytes would turn the close into a reset
  (void)!::send(socket, kSettings.data(), kSettings.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

enum class Opening : uint8_t { wrong, partial, whole };

/// Returns how much of a peer's first bytes has arrived: its first TLS record or HTTP/2's preface. gRPC gets them
/// whole, so a peer that starts and stops costs only a socket.
Opening opening_of(int socket, bool tls) {
  std::array<char, kPreface.size()> first{};
  const ssize_t count = ::recv(socket, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (count <= 0) return count < 0 && errno == EAGAIN ? Opening::partial : Opening::wrong;
  size_t needed = 0;
  const std::string_view bytes(first.data(), static_cast<size_t>(count));
  if (!(tls ? begins_handshake(bytes, needed) : begins_http2(bytes, needed))) return Opening::wrong;
  int waiting = 0;
  const bool whole = ::ioctl(socket, FIONREAD, &waiting) == 0 && static_cast<size_t>(waiting) >= needed;
  wake_at(socket, whole ? 1 : needed);
  return whole ? Opening::whole : Opening::partial;
}

}  // namespace

Lobby::Lobby(const ServerOptions& options, const Hands& hands, std::function<std::string()> why_full)
    : options_(options), hands_(hands), why_full_(std::move(why_full)) {
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
    // The bytes of a refused peer are not read.
    const short events = stranger.ending ? POLLRDHUP : POLLIN | POLLRDHUP;
    polled.push_back({stranger.host ? stranger.host->watched() : stranger.socket.get(), events, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(stranger.until - Clock::now());
    const auto most = std::clamp(left, std::chrono::milliseconds(0), options_.stranger_wait);
    const auto wait = static_cast<int>(stranger.host ? std::min(most, kLookAtHosts).count() : most.count());
    timeout_ms = timeout_ms < 0 ? wait : std::min(timeout_ms, wait);
  }
}

std::vector<Lobby::Ready> Lobby::advance_all(std::span<const pollfd> polled) {
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
  if (!stranger.host) return !readable || open(stranger);
  if (stranger.stream) {
    if (stranger.ending || !stranger.stream->first_frame_ended()) return !stranger.host->hung_up();
    return !options_.hello_first || stranger.stream->has_first_frame();
  }
  ServerHost::Call call = stranger.host->look_for_call();
  if (call.call) begin(stranger, std::move(call));
  return !stranger.host->hung_up();
}

bool Lobby::open(Stranger& stranger) {
  const Opening opening = opening_of(stranger.socket.get(), keys_.has_value());
  if (opening == Opening::whole) return host(stranger);
  if (opening == Opening::wrong && !keys_) answer_without_tls(stranger.socket.get());
  pollfd watched{.fd = stranger.socket.get(), .events = POLLRDHUP, .revents = 0};
  return opening == Opening::partial && poll(&watched, 1, 0) == 0;
}

/// Hands the connection to gRPC.
bool Lobby::host(Stranger& stranger) try {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (keys_) {
    try {
      keys_ = read_keys(options_.security);
    } catch (const UsageError&) {  // NOLINT(bugprone-empty-catch): half replaced, or expired; the old ones still work
    }
    report_own_expiry();
    stranger.check = std::make_shared<core::PeerCheck>(keys_->authority, Purpose::client, "");
    credentials = core::server_credentials(*keys_, stranger.check);
  }
  stranger.hand = HandShare(least_busy(hands_));
  stranger.host =
      std::make_unique<ServerHost>(std::move(stranger.socket), credentials, options_.largest_payload,
                                   stranger.hand.hand() == nullptr ? nullptr : stranger.hand.hand()->queue());
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
      std::move(call.call), std::move(call.queue), std::move(stranger.hand), stranger.host->socket(), keys_.has_value(),
      CallStream::Options{.largest_payload = options_.largest_payload, .spin = options_.spin, .meter = options_.meter});
  if (!known) return decline("this server has no such method");
  if (const std::string why = why_full_(); !why.empty()) return decline(why);
  stranger.stream->begin(options_.hello_first);
}

bool Lobby::ready(Stranger& stranger) const {
  return stranger.stream && !stranger.ending && (!options_.hello_first || stranger.stream->first_frame_ended());
}

void Lobby::report(const Stranger& stranger) {
  const std::string why = stranger.check ? stranger.check->refusal() : "";
  if (why.empty()) return;
  const std::string host = stranger.peer.substr(0, stranger.peer.rfind(':'));
  report(host + why, fmt::format("{} was refused: {}", stranger.peer, why));
}

/// Reports expired keys: a job may outlive them.
void Lobby::report_own_expiry() {
  const CertificateFacts own = read_certificate(keys_->node_certificate);
  if (!own.expired) return;
  const std::string line = fmt::format(
      "this server's certificate ({}) expired on {}, and peers refuse it: replace node.pem and node.key in {}",
      own.str(), own.not_after, options_.security.keys);
  report(line, line);
}

void Lobby::report(const std::string& key, const std::string& line) {
  if (!options_.on_refused || reported_.size() >= kMostReports) return;
  if (reported_.insert(key).second) options_.on_refused(line);
}

}  // namespace lockstep::transport
