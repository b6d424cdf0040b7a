#include "transport/server_stream.h"

#include <grpc/support/alloc.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/error.h"
#include "transport/certificate.h"

namespace lockstep::transport {
namespace {

std::string certificate_of(grpc_call* call) {
  const std::unique_ptr<grpc_auth_context, core::Release<grpc_auth_context_release>> context(
      grpc_call_auth_context(call));
  if (!context) return "";
  grpc_auth_property_iterator found =
      grpc_auth_context_find_properties_by_name(context.get(), GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const grpc_auth_property* pem = grpc_auth_property_iterator_next(&found);
  return pem == nullptr ? "" : std::string(pem->value, pem->value_length);
}

}  // namespace

ServerStream::ServerStream(core::CallPtr call, core::QueuePtr queue, HandShare hand, base::FileHandle socket, bool tls,
                           const Options& options)
    : CallStream(std::move(call), std::move(queue), options), tls_(tls), hand_(std::move(hand)) {
  set_socket(std::move(socket));
  char* peer = grpc_call_get_peer(this->call());
  peer_ = core::plain_address(peer);
  gpr_free(peer);
  if (tls_) certificate_ = certificate_of(this->call());
}

void ServerStream::begin(bool read) {
  under_way_ = true;
  grpc_op close{};
  close.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  close.data.recv_close_on_server.cancelled = &closed_early_;
  start({&close, 1}, Tag::kEnd);
  accepted_.key = grpc_slice_from_static_string(core::kAcceptedKey);
  accepted_.value = grpc_slice_from_static_string(peer_.c_str());
  grpc_op op{};
  op.op = GRPC_OP_SEND_INITIAL_METADATA;
  op.data.send_initial_metadata.count = 1;
  op.data.send_initial_metadata.metadata = &accepted_;
  start({&op, 1}, Tag::kStart);
  if (read) start_read();
}

bool ServerStream::start_finish(const std::string& failure) {
  if (!std::exchange(under_way_, false)) return false;
  {
    const base::MutexLock lock(outbox_mutex_);
    closed_ = true;
  }
  if (!read_ended()) cancel(failure);
  grpc_slice details = grpc_slice_from_copied_string(failure.c_str());
  grpc_op op{};
  op.op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  op.data.send_status_from_server.status = failure.empty() ? GRPC_STATUS_OK : GRPC_STATUS_ABORTED;
  op.data.send_status_from_server.status_details = failure.empty() ? nullptr : &details;
  {
    const base::MutexLock lock(flight_mutex_);
    finishing_ = true;
  }
  const bool started = start({&op, 1}, Tag::kWrite);
  grpc_slice_unref(details);
  return started;
}

void ServerStream::finish(const std::string& failure) {
  if (has_hand()) {
    start_finish(failure);
    return wait_until_idle();
  }
  if (!under_way_) return;
  bool success = false;
  if (start_finish(failure) && !wait(Tag::kWrite, core::deadline_in(kLastWord), success)) {
    cut();  // the peer does not read
    CallStream::wait(Tag::kWrite);
  }
  CallStream::wait(Tag::kStart);
  if (!read_ended()) static_cast<void>(read());
  CallStream::wait(Tag::kEnd);
}

// Streams that a hand serves.

bool ServerStream::start(std::span<const grpc_op> ops, Tag tag) {
  if (!has_hand()) return CallStream::start(ops, tag);
  {
    const base::MutexLock lock(flight_mutex_);
    ++in_flight_;
  }
  hand_.hand()->started.fetch_add(1, std::memory_order_release);
  if (CallStream::start(ops, tag)) return true;
  const base::MutexLock lock(flight_mutex_);
  --in_flight_;
  return false;
}

/// Frames alone are waited for by a hand, and they are here or not.
bool ServerStream::wait(Tag tag, gpr_timespec deadline, bool& success) {
  if (!has_hand()) return CallStream::wait(tag, deadline, success);
  const base::MutexLock lock(flight_mutex_);
  success = read_arrived_ && read_success_;
  return std::exchange(read_arrived_, false);
}

base::Status ServerStream::write(const Header& header, std::span<const std::span<const std::byte>> pieces,
                                 std::shared_ptr<const void> hold) {
  if (!has_hand()) return CallStream::write(header, pieces, std::move(hold));
  base::Result<Message> message = message_of(header, pieces, hold);
  if (!message) return message.failure();
  const base::MutexLock lock(outbox_mutex_);
  if (closed_ || is_cancelled()) return ended(false);
  outbox_.push_back(std::move(message.value()));
  if (outbox_.size() > 1) return {};
  set_writing(true);
  if (start_write(outbox_.front())) return {};
  closed_ = true;
  outbox_.clear();
  return ended(false);
}

void ServerStream::wrote(bool success) {
  std::deque<Message> done;  // released without the mutex
  const base::MutexLock lock(outbox_mutex_);
  if (outbox_.empty()) return;  // it was the final status
  if (success) {
    count_sent(outbox_.front());
    done.push_back(std::move(outbox_.front()));
    outbox_.pop_front();
    if (outbox_.empty()) return set_writing(false);
    if (start_write(outbox_.front())) return;
  }
  closed_ = true;
  std::move(outbox_.begin(), outbox_.end(), std::back_inserter(done));
  outbox_.clear();
}

bool ServerStream::drained() const {
  const base::MutexLock lock(outbox_mutex_);
  return outbox_.empty();
}

bool ServerStream::completed(Tag tag, bool success) {
  {
    const base::MutexLock lock(flight_mutex_);
    if (tag == Tag::kRead) {
      read_arrived_ = true;
      read_success_ = success;
    }
  }
  if (tag == Tag::kWrite) wrote(success);
  if (tag == Tag::kWake) waking_ = false;
  Driver* const driver = driver_;
  if (driver != nullptr) driver->on_event(tag);
  const base::MutexLock lock(flight_mutex_);
  --in_flight_;
  landed_.notify_all();
  return driver == nullptr || (finishing_ && in_flight_ == 0);
}

void ServerStream::wake() {
  if (!waking_.exchange(true)) start({}, Tag::kWake);
}

bool ServerStream::idle() const {
  const base::MutexLock lock(flight_mutex_);
  return finishing_ && in_flight_ == 0;
}

void ServerStream::wait_until_idle() {
  const auto until = std::chrono::steady_clock::now() + kLastWord;
  const base::MutexLock lock(flight_mutex_);
  while (in_flight_ > 0 && std::chrono::steady_clock::now() < until) landed_.wait_for(flight_mutex_, kLastWord);
  if (in_flight_ > 0) cut();  // the peer does not read
  while (in_flight_ > 0) landed_.wait(flight_mutex_);
}

void ServerStream::attend(Attendance attendance) {
  if (!has_hand()) throw UsageError("a stream with a thread cannot be attended");
  attendance_ = std::move(attendance);
  if (attendance_->light) hand_.make_light();
}

std::string ServerStream::why_ended(bool reading) {
  if (reading && grpc_call_failed_before_recv_message(call()) == 0) return "the peer ended the stream";
  return "connection lost or closed by the peer";
}

std::string ServerStream::why_not(const std::string& role) const {
  if (!tls_) return "";
  return certificate_.empty() ? "it shows no certificate" : why_no_role(read_certificate(certificate_), role);
}

void ServerStream::admit() {
  if (on_admit_) on_admit_();
}

void attend(Stream& stream, Attendance attendance) {
  dynamic_cast<ServerStream&>(stream).attend(std::move(attendance));
}

void wake(Stream& stream) { dynamic_cast<ServerStream&>(stream).wake(); }

}  // namespace lockstep::transport
