#include <fmt/format.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/keep_alive.h"
#include "base/limits.h"
#include "transport/call_stream.h"
#include "transport/keys.h"
#include "transport/sockets.h"

namespace lockstep::transport {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};  // between checks of give_up and of the reason so far

/// End of a call, as the client sees it.
class EndOfCall {
 public:
  EndOfCall() { grpc_metadata_array_init(&trailing_); }
  ~EndOfCall() {
    grpc_metadata_array_destroy(&trailing_);
    grpc_slice_unref(details_);
  }
  EndOfCall(const EndOfCall&) = delete;
  EndOfCall& operator=(const EndOfCall&) = delete;

  grpc_op op() {
    grpc_op op{};
    op.op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    op.data.recv_status_on_client.trailing_metadata = &trailing_;
    op.data.recv_status_on_client.status = &status_;
    op.data.recv_status_on_client.status_details = &details_;
    return op;
  }
  [[nodiscard]] grpc_status_code status() const { return status_; }
  [[nodiscard]] std::string text() const {
    const std::unique_ptr<char, core::Release<gpr_free>> copy(grpc_slice_to_c_string(details_));
    return copy.get();
  }

 private:
  grpc_metadata_array trailing_{};
  grpc_status_code status_ = GRPC_STATUS_UNKNOWN;
  grpc_slice details_ = grpc_empty_slice();
};

struct Reason {
  std::string text;
  bool lasting = false;  ///< true if another attempt would fail, too
};

/// Turns gRPC's text for a failed connection into plain words. `keys`: this side's; null without TLS.
Reason plain_reason(const std::string& text, const Keys* keys) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (has(std::strerror(EMFILE))) return {base::limit_text(EMFILE), true};  // NOLINT(concurrency-mt-unsafe)
  if (has("wrong version number") || has("WRONG_VERSION")) {
    return {"the peer does not use TLS, but this side does", true};
  }
  if (keys != nullptr) {
    return {fmt::format(
        "the peer closed the connection at once: it does not accept our key ({}, valid {} to {}), or is not a Lockstep "
        "process",
        keys->facts.str(), keys->facts.not_before, keys->facts.not_after)};
  }
  return {"the peer closed the connection at once: it requires TLS, or is not a Lockstep process"};
}

/// Returns why the channel has no connection; empty while the first attempt is in flight.
Reason look_for_reason(grpc_channel* channel, const Keys* keys) {
  if (grpc_channel_check_connectivity_state(channel, 0) != GRPC_CHANNEL_TRANSIENT_FAILURE) return {};
  EndOfCall end;
  const core::QueuePtr queue = core::make_pluck_queue();
  const core::CallPtr call(grpc_channel_create_call(channel, nullptr, GRPC_PROPAGATE_DEFAULTS, queue.get(),
                                                    grpc_slice_from_static_string(core::kProbeMethod), nullptr,
                                                    gpr_inf_future(GPR_CLOCK_REALTIME), nullptr));
  std::array<grpc_op, 2> ops{};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1] = end.op();
  grpc_call_start_batch(call.get(), ops.data(), ops.size(), &end, nullptr);
  if (grpc_completion_queue_pluck(queue.get(), &end, core::deadline_in(kLook), nullptr).type != GRPC_OP_COMPLETE) {
    grpc_call_cancel(call.get(), nullptr);
    grpc_completion_queue_pluck(queue.get(), &end, gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
  }
  if (end.status() != GRPC_STATUS_UNAVAILABLE) return {};
  return plain_reason(end.text(), keys);
}

class ClientStream final : public CallStream {
 public:
  ClientStream(core::ChannelPtr channel, core::CallPtr call, core::QueuePtr queue, const std::string& address,
               const Options& options)
      : CallStream(std::move(call), std::move(queue), options), channel_(std::move(channel)) {
    peer_ = address;
    grpc_metadata_array_init(&initial_);
  }
  ~ClientStream() override;

  /// Starts the call; it is sent when there is a connection.
  void begin();
  /// Waits at most `at_most`; true if a server has accepted or refused the call.
  bool wait_for_answer(milliseconds at_most);
  /// True if the call was accepted; then the stream is ready.
  bool accepted();

  grpc_channel* channel() { return channel_.get(); }
  std::string why_ended(bool reading) override;
  void close_writes() override;

 private:
  void wait_for_end() LOCKSTEP_REQUIRES(end_mutex_);

  core::ChannelPtr channel_;
  grpc_metadata_array initial_{};
  bool started_ = false;

  base::Mutex end_mutex_;
  bool has_ended_ LOCKSTEP_GUARDED_BY(end_mutex_) = false;
  EndOfCall end_;
};

ClientStream::~ClientStream() {
  cancel("the stream was closed");
  cut();
  if (!started_) wait(Tag::kStart);
  {
    const base::MutexLock lock(end_mutex_);
    wait_for_end();
  }
  grpc_metadata_array_destroy(&initial_);
}

void ClientStream::begin() {
  std::array<grpc_op, 2> ops{};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY;
  ops[1].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[1].data.recv_initial_metadata.recv_initial_metadata = &initial_;
  start(ops, Tag::kStart);
  const grpc_op end = end_.op();
  start({&end, 1}, Tag::kEnd);
}

bool ClientStream::wait_for_answer(milliseconds at_most) {
  bool success = false;
  started_ = wait(Tag::kStart, core::deadline_in(at_most), success);
  return started_;
}

bool ClientStream::accepted() {
  for (size_t i = 0; i < initial_.count; ++i) {
    if (grpc_slice_str_cmp(initial_.metadata[i].key, core::kAcceptedKey) != 0) continue;
    const grpc_slice& seen = initial_.metadata[i].value;
    const std::unique_ptr<char, core::Release<gpr_free>> remote(grpc_call_get_peer(call()));
    base::FileHandle socket =
        find_connection({reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(seen)), GRPC_SLICE_LENGTH(seen)},
                        core::plain_address(remote.get()));
    base::keep_alive(socket.get(), 5, 11);
    set_socket(std::move(socket));
    return true;
  }
  return false;
}

void ClientStream::wait_for_end() {
  if (has_ended_) return;
  bool success = false;
  // If the server has announced its last message, the status is already on its way. Otherwise the call is cut off.
  if (!wait(Tag::kEnd, core::deadline_in(std::chrono::seconds(2)), success)) {
    cancel("the peer did not end the stream in order");
    wait(Tag::kEnd, gpr_inf_future(GPR_CLOCK_MONOTONIC), success);
  }
  has_ended_ = true;
}

std::string ClientStream::why_ended(bool reading) {
  const base::MutexLock lock(end_mutex_);
  if (!reading && !has_ended_) {
    // The status comes after the last messages, which the reader may still take.
    bool success = false;
    has_ended_ = wait(Tag::kEnd, gpr_inf_past(GPR_CLOCK_MONOTONIC), success);
    if (!has_ended_) return "the peer accepts no more frames";
  }
  wait_for_end();
  const std::string local = cancelled();
  if (!local.empty()) return local;
  switch (end_.status()) {
    case GRPC_STATUS_OK:
      return "the peer ended the stream";
    case GRPC_STATUS_UNAVAILABLE:
      return "connection lost";
    default:
      return end_.text().empty() ? "the peer cancelled the stream" : end_.text();
  }
}

void ClientStream::close_writes() {
  grpc_op op{};
  op.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
  if (start({&op, 1}, Tag::kWrite)) wait(Tag::kWrite);
}

}  // namespace

base::Result<std::unique_ptr<Stream>> connect(const std::string& address, const ConnectOptions& options,
                                              const std::function<bool()>& give_up) {
  core::start_library();
  std::optional<Keys> keys;
  core::PeerCheckPtr check;
  if (!options.security.keys.empty()) {
    keys = read_keys(options.security);
    check = std::make_shared<core::PeerCheck>(keys->authority, Purpose::server, options.role);
  }
  const Keys* ours = keys ? &*keys : nullptr;
  core::ChannelPtr channel = core::make_channel(address, ours, check, options.largest_payload);
  core::QueuePtr queue = core::make_pluck_queue();
  core::CallPtr call(grpc_channel_create_call(channel.get(), nullptr, GRPC_PROPAGATE_DEFAULTS, queue.get(),
                                              grpc_slice_from_static_string(core::kMethod), nullptr,
                                              gpr_inf_future(GPR_CLOCK_REALTIME), nullptr));
  auto stream = std::make_unique<ClientStream>(
      std::move(channel), std::move(call), std::move(queue), address,
      CallStream::Options{.largest_payload = options.largest_payload, .spin = options.spin, .meter = options.meter});
  stream->begin();

  const auto until = std::chrono::steady_clock::now() + options.patience;
  Reason reason;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    if (stream->wait_for_answer(std::clamp(left, milliseconds(0), kLook))) break;
    if (Reason seen = look_for_reason(stream->channel(), ours); !seen.text.empty()) reason = seen;
    if (check && !check->refusal().empty()) reason = {check->refusal(), true};
    if (reason.lasting) break;
    if (give_up && give_up())
      return base::Failure{base::FailureKind::interrupted, fmt::format("stopped connecting to {}", address)};
    if (std::chrono::steady_clock::now() >= until) {
      const std::string unreachable = why_unreachable(address);
      if (!unreachable.empty()) reason.text = unreachable;
      if (reason.text.empty()) reason.text = "no answer";
      return base::Failure{base::FailureKind::unreachable,
                           fmt::format("cannot connect to {} within {:.1f} s: {}", address,
                                       static_cast<double>(options.patience.count()) / 1000, reason.text)};
    }
  }
  if (reason.lasting) {
    return base::Failure{base::FailureKind::usage, fmt::format("cannot connect to {}: {}", address, reason.text)};
  }
  if (!stream->accepted()) {
    return base::Failure{base::FailureKind::unreachable,
                         fmt::format("cannot connect to {}: {}", address, stream->why_ended(true))};
  }
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace lockstep::transport
