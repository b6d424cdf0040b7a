// gRPC's C core behind owning types, and the credentials and channel arguments of all our connections. The C core and
// not the C++ classes, because every wait here needs a deadline and the slices must be ours. Internal to this room.
#pragma once

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "transport/certificate.h"
#include "transport/keys.h"
#include "transport/stream.h"

namespace lockstep::transport::core {

template <auto release>
struct Release {
  template <class T>
  void operator()(T* handle) const {
    release(handle);
  }
};

/// Shuts the queue down and removes its remaining events.
void destroy_queue(grpc_completion_queue* queue);

using QueuePtr = std::unique_ptr<grpc_completion_queue, Release<destroy_queue>>;
using CallPtr = std::unique_ptr<grpc_call, Release<grpc_call_unref>>;
using ChannelPtr = std::unique_ptr<grpc_channel, Release<grpc_channel_destroy>>;
using BufferPtr = std::unique_ptr<grpc_byte_buffer, Release<grpc_byte_buffer_destroy>>;
using ChannelCredentialsPtr = std::unique_ptr<grpc_channel_credentials, Release<grpc_channel_credentials_release>>;

constexpr const char* kMethod = "/lockstep.Cluster/Stream";
/// A method that no server has. Calling it tells why a channel has no connection, and never opens a stream.
constexpr const char* kProbeMethod = "/lockstep.Cluster/Probe";
/// Key in a server's first metadata: tells a client that it was accepted. The value is the client's own address.
constexpr const char* kAcceptedKey = "lockstep-accepted";

/// Makes gRPC ready and silent. Call it before anything else of this header; any thread, any number of times.
void start_library();

/// Makes a queue for the calls of one stream, whose threads each wait for their own operation.
QueuePtr make_pluck_queue();

gpr_timespec deadline_in(std::chrono::nanoseconds wait);

/// Returns a slice's text and releases the slice.
std::string take_text(grpc_slice& slice);

/// Judges the peer's certificate at the end of a TLS handshake and keeps the reason for a refusal, which gRPC and
/// OpenSSL would not tell. Any thread.
class PeerCheck {
 public:
  PeerCheck(std::string authority, Purpose purpose, std::string role)
      : authority_(std::move(authority)), purpose_(purpose), role_(std::move(role)) {}

  /// Returns why the peer that shows `pem` is refused; empty: accepted.
  std::string judge(const std::string& pem);
  /// The latest refusal; empty: none.
  [[nodiscard]] std::string refusal() const;

 private:
  const std::string authority_;
  const Purpose purpose_;
  const std::string role_;
  mutable base::Mutex mutex_;
  std::string refusal_ LOCKSTEP_GUARDED_BY(mutex_);
};
using PeerCheckPtr = std::shared_ptr<PeerCheck>;

/// Makes credentials for TLS; `check` judges the peer.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const Keys& keys, const PeerCheckPtr& check);

/// Makes a channel, with TLS if there are keys; then `check` judges the server.
ChannelPtr make_channel(const std::string& address, const Keys* keys, const PeerCheckPtr& check,
                        size_t largest_payload);
std::vector<std::pair<const char*, int>> server_arguments(size_t largest_payload);

/// Turns "ipv4:127.0.0.1:4000" into "127.0.0.1:4000", without escapes.
std::string plain_address(const std::string& uri);

}  // namespace lockstep::transport::core
