// Frames over gRPC: the one way in which processes of a cluster talk. A frame is a fixed header and a payload of bytes.
// A Stream is one side of a bidirectional gRPC stream of frames; payloads are sent from where they lie, without a copy,
// and kept alive by `hold` until the transport has let go of them.
//
// Threads: one thread may read and one may write at the same time; `cancel` may be called from any. A Server has one
// thread for listening and for connections that are no streams yet, and runs each stream's handler on its own. What a
// peer sends is checked before anyone sees it: a frame with an unknown magic number or a payload larger than the limit
// ends the stream with a reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/traffic_meter.h"

namespace lockstep::transport {

/// What every frame starts with, little-endian, 64 bytes on the wire (with magic number and format version before these
/// fields). What the fields mean is the kind's (ps/messages.h); the transport only checks that sizes fit.
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

/// A received frame. The payload may lie in several pieces, as it came from the network; it lives as long as the frame.
class Frame {
 public:
  Header header;

  [[nodiscard]] size_t payload_size() const;
  /// The pieces in order.
  [[nodiscard]] std::span<const std::span<const std::byte>> pieces() const;
  /// Copies all of it; `to` is exactly as long.
  void copy_to(std::span<std::byte> to) const;
  [[nodiscard]] std::string text() const;

 private:
  friend class FrameAccess;
  std::vector<std::span<const std::byte>> pieces_;
  std::shared_ptr<const void> owner_;
};

/// Bytes of payload that a stream has sent and received, for reports. Any thread.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;

  /// Blocks until a frame has come. A failure says why there will be none: the peer ended, the connection broke,
  /// cancel().
  virtual base::Result<Frame> read() = 0;
  /// Sends a frame whose payload is the bytes of `pieces`; returns when the transport has taken it, which may wait for
  /// the peer to read. The memory must not change until `hold` (may be null: then until the peer is known to have read
  /// it) has been released by the transport.
  virtual base::Status write(const Header& header, std::span<const std::span<const std::byte>> pieces,
                             std::shared_ptr<const void> hold) = 0;
  base::Status write(const Header& header, std::span<const std::byte> payload = {},
                     std::shared_ptr<const void> hold = nullptr);
  /// Ends the stream at once: reads and writes under way fail. Any thread.
  virtual void cancel(const std::string& why) = 0;
  /// Says that this side writes no more: after what is under way the peer's read() fails with "the peer ended the
  /// stream". On the server's side only the end of the handler does that.
  virtual void close_writes() = 0;
  /// "127.0.0.1:4000"
  [[nodiscard]] virtual std::string peer() const = 0;
  /// Why the peer may not act as `role` ("worker:1"), by its certificate; empty: it may, or there is no TLS. For
  /// handlers of a server: a client names the role in ConnectOptions.
  [[nodiscard]] virtual std::string why_not(const std::string& /*role*/) const { return ""; }
  /// For handlers of a server whose peers say hello first: the peer is one of ours and no stranger any more. Throws
  /// Error where the server has no place left.
  virtual void admit() {}
  [[nodiscard]] virtual Traffic traffic() const = 0;
};

struct Security {
  std::string keys;       ///< folder with ca.pem, node.pem and node.key (`lockstep keys new`); empty: no TLS
  std::string role = {};  ///< "worker:1": the role of this process, which its certificate must name; empty: any
};
/// A line where the certificate expires within 14 days, else nothing. Throws UsageError for keys that cannot be used.
std::string expiry_warning(const Security& security);

struct ConnectOptions {
  Security security;
  std::string role = {};  ///< with TLS: the role that the server's certificate must name, "ps:0"; empty: any
  std::chrono::milliseconds patience{1000};  ///< to get a connection; waits are by events, not by sleeping
  size_t largest_payload = size_t{64} << 20;
  std::chrono::microseconds spin{0};    ///< how long a wait polls before it sleeps
  base::TrafficMeter* meter = nullptr;  ///< counts whole frames, both ways; borrowed
};

/// A new connection (never shared with another stream) to "host:port", accepted by a Server there. The failure names
/// the address and the reason; it is one of usage where the peer's certificate is not accepted. `give_up` is looked at
/// some ten times a second; null: never. Throws UsageError for keys that cannot be used. Destroying the stream cancels
/// it: frames that the peer has not read yet may be lost.
base::Result<std::unique_ptr<Stream>> connect(const std::string& address, const ConnectOptions& options,
                                              const std::function<bool()>& give_up = {});

/// Whether the host of "host:port" answers that nobody listens there: then no process of that address lives. Takes a
/// fraction of a second.
bool refuses(const std::string& address);

struct ServerOptions {
  std::string address;  ///< "127.0.0.1:4000"; port 0: any free one
  Security security;
  size_t largest_payload = size_t{64} << 20;
  int most_streams = 1024;  ///< more are refused; a peer that reads its last frames leaves its place to the next
  /// The peer speaks first: the handler runs when the first frame has come, and calls Stream::admit once it knows the
  /// peer. Until then it is a stranger: at most 64, without a thread before that frame.
  bool hello_first = false;
  std::chrono::milliseconds stranger_wait{
      10'000};                              ///< until a connection has become a stream, the first frame included
  std::chrono::milliseconds linger{5'000};  ///< after a stream, for its peer to read the last frames and to hang up
  /// A peer with a certificate that is not accepted, or this server's own that has expired, a line each. From the
  /// server's thread; may be absent.
  std::function<void(const std::string& line)> on_refused = {};
  /// The server can accept no more connections: a limit of the system, once. From the server's thread; may be absent.
  std::function<void(const std::string& line)> on_failure = {};
  std::chrono::microseconds spin{0};    ///< how long a wait polls before it sleeps
  base::TrafficMeter* meter = nullptr;  ///< counts whole frames of all streams, both ways; borrowed
};

class Server {
 public:
  /// The stream ends when it returns, in order: the peer gets all that was written. What it throws the peer gets as
  /// the reason.
  using Handler = std::function<void(Stream&)>;

  /// Listens at once; throws IoError naming the address if it cannot, UsageError for keys that are missing or damaged.
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
