#include "transport/core.h"

#include <fmt/format.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "transport/frame.h"

namespace lockstep::transport::core {
namespace {

constexpr int kKeptFree = 256 << 20;
constexpr int kMappedAlone = 8 << 20;

using Arguments = std::vector<std::pair<const char*, int>>;

/// Arguments of both sides of a connection.
Arguments common_arguments(size_t largest_payload) {
  const size_t largest = std::min<size_t>(largest_payload + kHeaderBytes, std::numeric_limits<int>::max());
  return {
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(largest)},
      {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
      // Set one by one: GRPC_ARG_MINIMAL_STACK would also drop the limit on message size above.
      {GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0},
      {GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0},
      {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},  // the decompressed size of small messages cannot be limited
      {GRPC_ARG_ENABLE_CENSUS, 0},
      {GRPC_ARG_ENABLE_CHANNELZ, 0},
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1},
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20},
      {GRPC_ARG_HTTP2_BDP_PROBE, 1},  // otherwise a connection's window stays at 64 KiB
  };
}

grpc_arg as_core(const std::pair<const char*, int>& given) {
  grpc_arg arg{};
  arg.type = GRPC_ARG_INTEGER;
  arg.key = const_cast<char*>(given.first);
  arg.value.integer = given.second;
  return arg;
}

/// Verifies with a PeerCheck.
class Verifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit Verifier(PeerCheckPtr check) : check_(std::move(check)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* sync_status) override {
    const grpc::string_ref pem = request->peer_cert();
    const std::string why = check_->judge(std::string(pem.data(), pem.size()));
    *sync_status = why.empty() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, why);
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const PeerCheckPtr check_;
};

ChannelCredentialsPtr channel_credentials(const Keys& keys, const PeerCheckPtr& check) {
  grpc_tls_identity_pairs* pairs = grpc_tls_identity_pairs_create();
  grpc_tls_identity_pairs_add_pair(pairs, keys.node_key.c_str(), keys.node_certificate.c_str());
  grpc_tls_certificate_provider* provider =
      grpc_tls_certificate_provider_static_data_create(keys.authority.c_str(), pairs);
  const auto verifier = grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(check);
  grpc_tls_credentials_options* options = grpc_tls_credentials_options_create();
  grpc_tls_credentials_options_set_certificate_provider(options, provider);
  grpc_tls_credentials_options_watch_root_certs(options);
  grpc_tls_credentials_options_watch_identity_key_cert_pairs(options);
  grpc_tls_credentials_options_set_verify_server_cert(options, 0);  // the verifier does that, and gives the reason
  grpc_tls_credentials_options_set_check_call_host(options, 0);
  grpc_tls_credentials_options_set_certificate_verifier(options, verifier->c_verifier());
  ChannelCredentialsPtr credentials(grpc_tls_credentials_create(options));
  grpc_tls_certificate_provider_release(provider);
  return credentials;
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
  // Never shut down: its last steps would run on one of gRPC's threads while the process ends.
  static std::once_flag once;
  std::call_once(once, [] {
    // gRPC receives into small pieces and frees them at once. Without this, every large exchange would return its
    // memory to the system and fault it in again.
    mallopt(M_TRIM_THRESHOLD, kKeptFree);
    mallopt(M_MMAP_THRESHOLD, kMappedAlone);
    gpr_set_log_function([](gpr_log_func_args*) {});
    // Every waiting thread polls its own sockets. By default one thread would poll for all and wake the others.
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

std::string PeerCheck::judge(const std::string& pem) {
  std::string why = why_refused(pem, authority_, purpose_, role_);
  const base::MutexLock lock(mutex_);
  if (!why.empty()) refusal_ = why;
  return why;
}

std::string PeerCheck::refusal() const {
  const base::MutexLock lock(mutex_);
  return refusal_;
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Keys& keys, const PeerCheckPtr& check) {
  const auto provider = std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      keys.authority, std::vector<grpc::experimental::IdentityKeyCertPair>{{keys.node_key, keys.node_certificate}});
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // OpenSSL checks that the peer has the certificate's key. The verifier checks the rest, because it can give the
  // reason.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(check));
  return grpc::experimental::TlsServerCredentials(options);
}

ChannelPtr make_channel(const std::string& address, const Keys* keys, const PeerCheckPtr& check,
                        size_t largest_payload) {
  const ChannelCredentialsPtr credentials =
      keys == nullptr ? ChannelCredentialsPtr(grpc_insecure_credentials_create()) : channel_credentials(*keys, check);
  Arguments args = common_arguments(largest_payload);
  args.insert(args.end(), {{GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
                           {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20},
                           {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000},  // also the time limit of one attempt
                           {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100},
                           {GRPC_ARG_ENABLE_RETRIES, 0},  // retries would keep sent slices
                           {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
                           {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1}});
  std::vector<grpc_arg> given;
  std::transform(args.begin(), args.end(), std::back_inserter(given), as_core);
  grpc_arg& name = given.emplace_back();
  name.type = GRPC_ARG_STRING;
  name.key = const_cast<char*>(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG);
  name.value.string = const_cast<char*>("lockstep");  // the check knows which name is right
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
