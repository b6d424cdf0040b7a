#include "transport/core.h"

#include <fmt/format.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "transport/frame.h"
#include "transport/keys.h"

namespace lockstep::transport::core {
namespace {

/// Arguments of a channel or server, with the strings that they point at.
class Arguments {
 public:
  void add(const char* key, int value) {
    grpc_arg arg{};
    arg.type = GRPC_ARG_INTEGER;
    arg.key = const_cast<char*>(key);
    arg.value.integer = value;
    args_.push_back(arg);
  }
  /// `value` is a literal.
  void add(const char* key, const char* value) {
    grpc_arg arg{};
    arg.type = GRPC_ARG_STRING;
    arg.key = const_cast<char*>(key);
    arg.value.string = const_cast<char*>(value);
    args_.push_back(arg);
  }
  [[nodiscard]] grpc_channel_args get() { return {args_.size(), args_.data()}; }

 private:
  std::vector<grpc_arg> args_;
};

/// What both sides of a connection are made with.
Arguments common_arguments(size_t largest_payload) {
  Arguments args;
  const size_t largest = std::min<size_t>(largest_payload + kHeaderBytes, std::numeric_limits<int>::max());
  args.add(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(largest));
  args.add(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  args.add(GRPC_ARG_MINIMAL_STACK, 1);
  args.add(GRPC_ARG_ENABLE_CHANNELZ, 0);
  args.add(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1);
  args.add(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20);
  args.add(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return args;
}

}  // namespace

void destroy_queue(grpc_completion_queue* queue) {
  grpc_completion_queue_shutdown(queue);
  while (grpc_completion_queue_pluck(queue, queue, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr).type !=
         GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(queue);
}

void start_library() {
  // Never shut down: its last steps would run on a thread of gRPC's own while the process ends.
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function([](gpr_log_func_args*) {});
    grpc_init();
  });
}

QueuePtr make_pluck_queue() { return QueuePtr(grpc_completion_queue_create_for_pluck(nullptr)); }

gpr_timespec deadline_in(std::chrono::nanoseconds wait) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait.count(), GPR_TIMESPAN));
}

std::string take_text(grpc_slice& slice) {
  std::string text(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice));
  grpc_slice_unref(slice);
  slice = grpc_empty_slice();
  return text;
}

ChannelCredentialsPtr channel_credentials(const Security& security) {
  if (security.keys.empty()) return ChannelCredentialsPtr(grpc_insecure_credentials_create());
  const Keys keys = read_keys(security.keys);
  grpc_ssl_pem_key_cert_pair pair{keys.node_key.c_str(), keys.node_certificate.c_str()};
  return ChannelCredentialsPtr(grpc_ssl_credentials_create_ex(keys.authority.c_str(), &pair, nullptr, nullptr));
}

ServerCredentialsPtr server_credentials(const Security& security) {
  if (security.keys.empty()) return ServerCredentialsPtr(grpc_insecure_server_credentials_create());
  const Keys keys = read_keys(security.keys);
  grpc_ssl_pem_key_cert_pair pair{keys.node_key.c_str(), keys.node_certificate.c_str()};
  return ServerCredentialsPtr(grpc_ssl_server_credentials_create_ex(
      keys.authority.c_str(), &pair, 1, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, nullptr));
}

ChannelPtr make_channel(const std::string& address, const Security& security, size_t largest_payload) {
  const ChannelCredentialsPtr credentials = channel_credentials(security);
  Arguments args = common_arguments(largest_payload);
  args.add(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.add(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  args.add(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // also how long one attempt may take
  args.add(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  args.add(GRPC_ARG_ENABLE_RETRIES, 0);  // they would keep sent slices
  args.add(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.add(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  if (!security.keys.empty()) args.add(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, kKeyName);
  const grpc_channel_args given = args.get();
  return ChannelPtr(grpc_channel_create(address.c_str(), credentials.get(), &given));
}

ServerPtr make_server(size_t largest_payload) {
  Arguments args = common_arguments(largest_payload);
  args.add(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers on one port are a mistake
  args.add(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  const grpc_channel_args given = args.get();
  return ServerPtr(grpc_server_create(&given, nullptr));
}

std::string plain_address(const std::string& uri) {
  std::string result;
  const size_t start = uri.find(':') + 1;
  for (size_t i = start; i < uri.size(); ++i) {
    if (uri[i] == '%' && i + 2 < uri.size()) {
      result += static_cast<char>(std::stoi(uri.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      result += uri[i];
    }
  }
  return result;
}

}  // namespace lockstep::transport::core
