#include "transport/core.h"

#include <fmt/format.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "transport/frame.h"
#include "transport/keys.h"

namespace lockstep::transport::core {
namespace {

constexpr int kKeptFree = 256 << 20;
constexpr int kMappedAlone = 8 << 20;

using Arguments = std::vector<std::pair<const char*, int>>;

/// What both sides of a connection are made with.
Arguments common_arguments(size_t largest_payload) {
  const size_t largest = std::min<size_t>(largest_payload + kHeaderBytes, std::numeric_limits<int>::max());
  return {
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(largest)},
      {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
      // What GRPC_ARG_MINIMAL_STACK would leave out, except the limit above.
      {GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0},
      {GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0},
      {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},  // what small messages grow into cannot be limited
      {GRPC_ARG_ENABLE_CENSUS, 0},
      {GRPC_ARG_ENABLE_CHANNELZ, 0},
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1},
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20},
      {GRPC_ARG_HTTP2_BDP_PROBE, 1},  // without it the window of a connection stays at 64 KiB
  };
}

grpc_arg as_core(const std::pair<const char*, int>& given) {
  grpc_arg arg{};
  arg.type = GRPC_ARG_INTEGER;
  arg.key = const_cast<char*>(given.first);
  arg.value.integer = given.second;
  return arg;
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
    // gRPC receives into small pieces that it frees at once; without this every large exchange gives its memory back to
    // the system and faults it in again.
    mallopt(M_TRIM_THRESHOLD, kKeptFree);
    mallopt(M_MMAP_THRESHOLD, kMappedAlone);
    gpr_set_log_function([](gpr_log_func_args*) {});
    // Every waiting thread polls its own sockets; the default lets one poll for all and wake the others.
    setenv("GRPC_POLL_STRATEGY", "poll", 0);
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

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security) {
  if (security.keys.empty()) return grpc::InsecureServerCredentials();
  const Keys keys = read_keys(security.keys);
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = keys.authority;
  options.pem_key_cert_pairs.push_back({keys.node_key, keys.node_certificate});
  return grpc::SslServerCredentials(options);
}

ChannelPtr make_channel(const std::string& address, const Security& security, size_t largest_payload) {
  const ChannelCredentialsPtr credentials = channel_credentials(security);
  Arguments args = common_arguments(largest_payload);
  args.insert(args.end(), {{GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
                           {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20},
                           {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000},  // also how long one attempt may take
                           {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100},
                           {GRPC_ARG_ENABLE_RETRIES, 0},  // they would keep sent slices
                           {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
                           {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1}});
  std::vector<grpc_arg> given;
  std::transform(args.begin(), args.end(), std::back_inserter(given), as_core);
  if (!security.keys.empty()) {
    grpc_arg& name = given.emplace_back();
    name.type = GRPC_ARG_STRING;
    name.key = const_cast<char*>(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG);
    name.value.string = const_cast<char*>(kKeyName);
  }
  const grpc_channel_args all{given.size(), given.data()};
  return ChannelPtr(grpc_channel_create(address.c_str(), credentials.get(), &all));
}

std::vector<std::pair<const char*, int>> server_arguments(size_t largest_payload) {
  Arguments args = common_arguments(largest_payload);
  args.emplace_back(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
  return args;
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
