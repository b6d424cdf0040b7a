// gRPC's C core behind owning types, and what every connection of ours is made with: credentials and channel arguments.
// The C core and not the C++ classes, because every wait here needs a deadline and the slices that come and go must be
// ours. Internal to this room.
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

/// Shuts the queue down and takes out what is left.
void destroy_queue(grpc_completion_queue* queue);

using QueuePtr = std::unique_ptr<grpc_completion_queue, Release<destroy_queue>>;
using CallPtr = std::unique_ptr<grpc_call, Release<grpc_call_unref>>;
using ChannelPtr = std::unique_ptr<grpc_channel, Release<grpc_channel_destroy>>;
using BufferPtr = std::unique_ptr<grpc_byte_buffer, Release<grpc_byte_buffer_destroy>>;
using ChannelCredentialsPtr = std::unique_ptr<grpc_channel_credentials, Release<grpc_channel_credentials_release>>;

constexpr const char* kMethod = "/lockstep.Cluster/Stream";
/// No server has this method: a call of it says why a channel has no connection, and never opens a stream.
constexpr const char* kProbeMethod = "/lockstep.Cluster/Probe";
/// In a server's first metadata, so that a client knows that it was accepted; the value is the client's own address.
constexpr const char* kAcceptedKey = "lockstep-accepted";

/// Makes gRPC ready and silent; before anything else of this header, any thread, any number of times.
void start_library();

/// For calls of one stream, whose threads each wait for their own operation.
QueuePtr make_pluck_queue();

gpr_timespec deadline_in(std::chrono::nanoseconds wait);

/// A slice's text, which the slice no longer owns.
std::string take_text(grpc_slice& slice);

/// Judges the peer's certificate at the end of a TLS handshake, and knows why it was refused. gRPC and OpenSSL would
/// only say that it was. Any thread.
class PeerCheck {
 public:
  PeerCheck(std::string authority, Purpose purpose, std::string role)
      : authority_(std::move(authority)), purpose_(purpose), role_(std::move(role)) {}

  /// Why the peer that shows `pem` is refused; empty: it is not.
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

/// With TLS: `check` judges the peer.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const Keys& keys, const PeerCheckPtr& check);

/// With TLS where there are keys; then `check` judges the server.
ChannelPtr make_channel(const std::string& address, const Keys* keys, const PeerCheckPtr& check,
                        size_t largest_payload);
std::vector<std::pair<const char*, int>> server_arguments(size_t largest_payload);

/// "ipv4:127.0.0.1:4000" without the kind and the escapes.
std::string plain_address(const std::string& uri);

}  // namespace lockstep::transport::core
