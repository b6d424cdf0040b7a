#include "transport/server_stream.h"

#include <grpc/support/alloc.h>

#include "transport/certificate.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::seconds kLastWord{5};  // time for a slow peer to read the last frames

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

ServerStream::ServerStream(core::CallPtr call, core::QueuePtr queue, base::FileHandle socket, bool tls,
                           const Options& options)
    : CallStream(std::move(call), std::move(queue), options), tls_(tls) {
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

void ServerStream::finish(const std::string& failure) {
  if (!under_way_) return;
  under_way_ = false;
  if (!read_ended()) cancel(failure);
  grpc_slice details = grpc_slice_from_copied_string(failure.c_str());
  grpc_op op{};
  op.op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  op.data.send_status_from_server.status = failure.empty() ? GRPC_STATUS_OK : GRPC_STATUS_ABORTED;
  op.data.send_status_from_server.status_details = failure.empty() ? nullptr : &details;
  bool success = false;
  if (start({&op, 1}, Tag::kWrite) && !wait(Tag::kWrite, core::deadline_in(kLastWord), success)) {
    cut();  // the peer does not read
    wait(Tag::kWrite);
  }
  grpc_slice_unref(details);
  wait(Tag::kStart);
  if (!read_ended()) static_cast<void>(read());
  wait(Tag::kEnd);
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

}  // namespace lockstep::transport
