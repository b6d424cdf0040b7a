#include "transport/call_stream.h"

#include <fmt/format.h>
#include <grpc/byte_buffer.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <sys/socket.h>

#include "base/keep_alive.h"
#include "transport/frame.h"
#include "transport/received.h"

namespace lockstep::transport {

namespace {

/// Owner of a slice's memory until gRPC releases it, on any thread.
struct Held {
  explicit Held(std::shared_ptr<const void> given) : hold(std::move(given)) {
    made.store(true, std::memory_order_release);
  }

  static void let_go(void* held) {
    auto* self = static_cast<Held*>(held);
    // gRPC orders the two anyway, but the thread sanitizer does not see it.
    if (self->made.load(std::memory_order_acquire)) delete self;
  }

  std::shared_ptr<const void> hold;
  std::atomic<bool> made{false};
};

/// Makes a slice over the caller's memory, which `hold` keeps alive.
grpc_slice borrow(std::span<const std::byte> bytes, const std::shared_ptr<const void>& hold) {
  if (!hold) return grpc_slice_from_static_buffer(bytes.data(), bytes.size());
  return grpc_slice_new_with_user_data(const_cast<std::byte*>(bytes.data()), bytes.size(), Held::let_go,
                                       new Held(hold));
}

base::Result<Frame> as_frame(core::BufferPtr buffer, size_t largest_payload) {
  const grpc_slice_buffer& received = buffer->data.raw.slice_buffer;
  std::vector<std::span<const std::byte>> slices;
  slices.reserve(received.count);
  for (const grpc_slice& slice : std::span(received.slices, received.count)) {
    slices.emplace_back(reinterpret_cast<const std::byte*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice));
  }
  return make_frame(slices, std::shared_ptr<grpc_byte_buffer>(std::move(buffer)), largest_payload);
}

core::BufferPtr make_message(const HeaderBytes& header, std::span<const std::span<const std::byte>> pieces,
                             const std::shared_ptr<const void>& hold) {
  std::vector<grpc_slice> slices;
  slices.reserve(1 + pieces.size());
  slices.push_back(grpc_slice_from_copied_buffer(reinterpret_cast<const char*>(header.data()), header.size()));
  for (const auto& piece : pieces) {
    if (!piece.empty()) slices.push_back(borrow(piece, hold));
  }
  core::BufferPtr buffer(grpc_raw_byte_buffer_create(slices.data(), slices.size()));
  for (const grpc_slice& slice : slices) grpc_slice_unref(slice);
  return buffer;
}

}  // namespace

CallStream::CallStream(core::CallPtr call, core::QueuePtr queue, const Options& options)
    : options_(options), queue_(std::move(queue)), call_(std::move(call)) {}

bool CallStream::start(std::span<const grpc_op> ops, Tag tag) {
  return grpc_call_start_batch(call_.get(), ops.data(), ops.size(), address_of(tag), nullptr) == GRPC_CALL_OK;
}

bool CallStream::wait(Tag tag, gpr_timespec deadline, bool& success) {
  const grpc_event event = grpc_completion_queue_pluck(queue_.get(), address_of(tag), deadline, nullptr);
  success = event.type == GRPC_OP_COMPLETE && event.success != 0;
  return event.type == GRPC_OP_COMPLETE;
}

bool CallStream::wait(Tag tag) {
  bool success = false;
  if (options_.spin.count() > 0) {
    const auto until = std::chrono::steady_clock::now() + options_.spin;
    do {
      if (wait(tag, gpr_inf_past(GPR_CLOCK_MONOTONIC), success)) return success;
    } while (std::chrono::steady_clock::now() < until);
  }
  wait(tag, gpr_inf_future(GPR_CLOCK_MONOTONIC), success);
  return success;
}

bool CallStream::start_read() {
  grpc_op op{};
  op.op = GRPC_OP_RECV_MESSAGE;
  op.data.recv_message.recv_message = &reading_.received;
  reading_.ended = false;
  reading_.started = start({&op, 1}, Tag::kRead);
  return reading_.started;
}

bool CallStream::read_ended() {
  if (reading_.started && !reading_.ended) {
    reading_.ended = wait(Tag::kRead, gpr_inf_past(GPR_CLOCK_MONOTONIC), reading_.success);
  }
  return !reading_.started || reading_.ended;
}

base::Result<Frame> CallStream::read() {
  if (!reading_.started && !start_read()) return ended(true);
  const bool success = reading_.ended ? reading_.success : wait(Tag::kRead);
  reading_.started = false;
  core::BufferPtr buffer(std::exchange(reading_.received, nullptr));
  if (!success || !buffer) return ended(true);
  base::Result<Frame> frame = as_frame(std::move(buffer), options_.largest_payload);
  if (!frame) {
    cancel(frame.failure().message());
    return frame;
  }
  const size_t payload = frame.value().payload_size();
  received_.fetch_add(payload, std::memory_order_relaxed);
  if (options_.meter != nullptr) options_.meter->received(kHeaderBytes + payload);
  return frame;
}

base::Result<CallStream::Message> CallStream::message_of(const Header& header,
                                                         std::span<const std::span<const std::byte>> pieces,
                                                         const std::shared_ptr<const void>& hold) const {
  size_t payload = 0;
  for (const auto& piece : pieces) payload += piece.size();
  if (payload > options_.largest_payload) {
    return base::Failure{base::FailureKind::limit,
                         fmt::format("the payload of a frame for {} has {} bytes; at most {} are allowed", peer_,
                                     payload, options_.largest_payload)};
  }
  return Message{make_message(encode_header(header, payload), pieces, hold), payload};
}

bool CallStream::start_write(const Message& message) {
  grpc_op op{};
  op.op = GRPC_OP_SEND_MESSAGE;
  op.data.send_message.send_message = message.buffer.get();
  return start({&op, 1}, Tag::kWrite);
}

void CallStream::count_sent(const Message& message) {
  sent_.fetch_add(message.payload, std::memory_order_relaxed);
  if (options_.meter != nullptr) options_.meter->sent(kHeaderBytes + message.payload);
}

base::Status CallStream::write(const Header& header, std::span<const std::span<const std::byte>> pieces,
                               std::shared_ptr<const void> hold) {
  const base::Result<Message> message = message_of(header, pieces, hold);
  if (!message) return message.failure();
  hold.reset();
  writing_ = true;
  const bool success = start_write(message.value()) && wait(Tag::kWrite);
  writing_ = false;
  if (!success) return ended(false);
  count_sent(message.value());
  return {};
}

base::Failure CallStream::ended(bool reading) {
  const std::string local = cancelled();
  return {base::FailureKind::gone, local.empty() ? why_ended(reading) : local, {}, peer_};
}

std::string CallStream::cancelled() {
  const base::MutexLock lock(mutex_);
  return cancelled_;
}

void CallStream::cancel(const std::string& why) {
  {
    const base::MutexLock lock(mutex_);
    if (!cancelled_.empty()) return;
    cancelled_ = why.empty() ? "cancelled" : why;
  }
  grpc_call_cancel_with_status(call_.get(), GRPC_STATUS_CANCELLED, why.c_str(), nullptr);
  // Bytes passed to the system cannot be taken back, so a writer would wait until the peer reads. Writes that start
  // from now on fail at once.
  if (writing_) cut();
}

std::optional<double> CallStream::unanswered() const {
  return socket_.open() ? base::unanswered(socket_.get()) : std::nullopt;
}

void CallStream::cut() {
  if (socket_.open()) ::shutdown(socket_.get(), SHUT_RDWR);
}

Traffic CallStream::traffic() const {
  return {sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed)};
}

}  // namespace lockstep::transport
