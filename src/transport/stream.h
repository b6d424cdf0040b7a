// Frames over gRPC: the only way in which processes of a cluster exchange data. A frame is a fixed header and a payload
// of bytes. A Stream is one side of a bidirectional gRPC stream of frames. Payloads are sent from where they lie,
// without a copy; `hold` keeps them alive until the transport has released them.
//
// Threads: one thread may read and one may write at the same time; any thread may call `cancel`. A Server has one
// thread for listening and for connections that are not streams yet. It runs each stream's handler on a thread of its
// own, or serves all streams with a fixed number of threads (`hands`).
// Every frame is checked before use: an unknown magic number or a payload larger than the limit ends the stream with a
// reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/traffic_meter.h"

namespace lockstep::transport {

/// The start of every frame: little-endian, 64 bytes on the wire, with magic number and format version before these
/// fields. Each kind of frame gives the fields their meaning (ps/messages.h); the transport only checks that sizes fit.
struct Header {
  uint16_t kind = 0;
  uint16_t flags = 0;
  uint32_t element = 0;  ///< type of the payload's elements
  uint64_t sequence = 0;
  uint64_t version = 0;
  uint64_t offset = 0;
  uint64_t count = 0;
  uint64_t extra = 0;
};
constexpr size_t kHeaderBytes = 64;

/// A received frame. The payload may lie in several pieces, as received from the network; it lives as long as the
/// frame.
class Frame {
 public:
  Header header;

  [[nodiscard]] size_t payload_size() const;
  /// Pieces of the payload, in order.
  [[nodiscard]] std::span<const std::span<const std::byte>> pieces() const;
  /// Copies the whole payload; `to` has exactly its size.
  void copy_to(std::span<std::byte> to) const;
  [[nodiscard]] std::string text() const;

 private:
  friend class FrameAccess;
  std::vector<std::span<const std::byte>> pieces_;
  std::shared_ptr<const void> owner_;
};

/// Payload bytes that a stream has sent and received, for reports. Any thread.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;

  /// Waits for a frame. Fails with the reason why there will be none: the peer ended the stream, the connection broke,
  /// or cancel().
  virtual base::Result<Frame> read() = 0;
  /// Sends a frame whose payload is the bytes of `pieces`. Returns when the transport has taken it, which may take
  /// until the peer reads. The memory must not change until the transport has released `hold` (null: until the peer is
  /// known to have read it).
  virtual base::Status write(const Header& header, std::span<const std::span<const std::byte>> pieces,
                             std::shared_ptr<const void> hold) = 0;
  base::Status write(const Header& header, std::span<const std::byte> payload = {},
                     std::shared_ptr<const void> hold = nullptr);
  /// Ends the stream at once: reads and writes in flight fail. Any thread.
  virtual void cancel(const std::string& why) = 0;
  /// Announces that this side writes no more. After the frames in flight the peer's read() fails with "the peer ended
  /// the stream". On the server's side only the end of the handler does that.
  virtual void close_writes() = 0;
  /// "127.0.0.1:4000"
  [[nodiscard]] virtual std::string peer() const = 0;
  /// Returns why the peer's certificate does not allow it to act as `role` ("worker:1"); empty: it does, or there is no
  /// TLS. For handlers of a server: a client names the role in ConnectOptions.
  [[nodiscard]] virtual std::string why_not(const std::string& /*role*/) const { return ""; }
  /// Accepts the peer as a member of this cluster: it is not a stranger any more. For handlers of a server whose peers
  /// say hello first. Throws Error if the server has no place left.
  virtual void admit() {}
  [[nodiscard]] virtual Traffic traffic() const = 0;
  /// Seconds since the peer's machine last answered, if it has been asked since then; infinite: the connection has
  /// ended. A peer that computes, is stopped or does not read answers, too. Any thread.
  [[nodiscard]] virtual std::optional<double> unanswered() const { return std::nullopt; }
};

struct Security {
  std::string keys;       ///< folder with ca.pem, node.pem and node.key (`lockstep keys new`); empty: no TLS
  std::string role = {};  ///< role of this process, which its certificate must name: "worker:1"; empty: any
};
/// Returns a warning if the certificate expires within 14 days, else nothing. Throws UsageError for unusable keys.
std::string expiry_warning(const Security& security);

struct ConnectOptions {
  Security security;
  std::string role = {};  ///< with TLS: role that the server's certificate must name, "ps:0"; empty: any
  std::chrono::milliseconds patience{1000};  ///< longest time to connect
  size_t largest_payload = size_t{64} << 20;
  std::chrono::microseconds spin{0};    ///< time that a wait polls before it sleeps
  base::TrafficMeter* meter = nullptr;  ///< counts whole frames, both ways; borrowed
};

/// Makes a new connection (never shared with another stream) to a Server at "host:port". A failure names the address
/// and the reason; its kind is usage if the peer's certificate is not accepted. `give_up` is asked about ten times a
/// second; null: never. Throws UsageError for unusable keys. Destroying the stream cancels it: frames that the peer has
/// not read yet may be lost.
base::Result<std::unique_ptr<Stream>> connect(const std::string& address, const ConnectOptions& options,
                                              const std::function<bool()>& give_up = {});

/// True if the host of "host:port" answers that no process listens there, so no process of that address is alive. Takes
/// a fraction of a second.
bool refuses(const std::string& address);

struct ServerOptions {
  std::string address;  ///< "127.0.0.1:4000"; port 0: any free one
  Security security;
  size_t largest_payload = size_t{64} << 20;
  int most_streams = 1024;  ///< most streams at a time; more are refused. A stream that only waits for its peer to read
                            ///< the last frames makes room
  /// The peer speaks first: the handler runs when the first frame has arrived, and calls Stream::admit once it knows
  /// the peer. Until then the peer is a stranger; there are at most 64, and none has a thread before its first frame.
  bool hello_first = false;
  /// Number of threads that serve all streams together; the peers speak first. A handler then reads the first frame,
  /// calls attend() (attend.h) and returns; otherwise its stream ends. 0: each stream's handler has a thread of its
  /// own, and may wait.
  int hands = 0;
  /// Longest time from a connection to a stream, first frame included.
  std::chrono::milliseconds stranger_wait{10'000};
  /// After a stream: time for its peer to read the last frames and to hang up.
  std::chrono::milliseconds linger{5'000};
  /// Receives one line for each peer whose certificate is not accepted, and one if this server's own has expired.
  /// Called on the server's thread; may be absent.
  std::function<void(const std::string& line)> on_refused = {};
  /// Receives one line when a system limit keeps the server from accepting connections. Called on the server's thread;
  /// may be absent.
  std::function<void(const std::string& line)> on_failure = {};
  std::chrono::microseconds spin{0};    ///< time that a wait polls before it sleeps
  base::TrafficMeter* meter = nullptr;  ///< counts whole frames of all streams, both ways; borrowed
};

class Server {
 public:
  /// Runs one stream. When it returns, the stream ends in order: the peer receives everything written. If it throws,
  /// the peer receives the error's text.
  using Handler = std::function<void(Stream&)>;

  /// Listens at once. Throws IoError naming the address if it cannot, UsageError for missing or damaged keys.
  Server(const ServerOptions& options, Handler handler);
  /// Cancels all streams and waits for their handlers.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] int port() const;
  void shutdown();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::transport
