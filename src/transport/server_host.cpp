#include "transport/server_host.h"

#include <fcntl.h>
#include <grpc/support/time.h>
#include <poll.h>
#include <sys/socket.h>

namespace lockstep::transport {
namespace {

constexpr std::chrono::milliseconds kLookAtPeer{20};  // between checks whether the peer has hung up

constexpr std::chrono::milliseconds kHurry{100};

}  // namespace

ServerHost::ServerHost(base::FileHandle socket, const std::shared_ptr<grpc::ServerCredentials>& credentials,
                       size_t largest_payload, grpc_completion_queue* hand_queue)
    : watch_(std::move(socket)), call_queue_(hand_queue == nullptr ? core::make_pluck_queue() : nullptr) {
  // gRPC gets its own handle, and closes it without notice.
  base::FileHandle handle(fcntl(watch_.get(), F_DUPFD_CLOEXEC, 0));
  if (!handle.open()) base::throw_io_error("duplicate", "a connection", errno);
  grpc_call_details_init(&details_);
  grpc_metadata_array_init(&metadata_);
  grpc::ServerBuilder builder;
  for (const auto& [key, value] : core::server_arguments(largest_payload)) builder.AddChannelArgument(key, value);
  queue_ = builder.AddCompletionQueue();
  builder.RegisterAsyncGenericService(&service_);
  door_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  server_ = builder.BuildAndStart();
  if (!server_) throw IoError("cannot make a gRPC server for a connection");
  grpc_server_request_call(server_->c_server(), &call_, &details_, &metadata_,
                           hand_queue == nullptr ? call_queue_.get() : hand_queue, queue_->cq(), this);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = handle.release();
  door_->HandleNewConnection(&connection);
}

ServerHost::~ServerHost() {
  cut();
  server_->Shutdown(std::chrono::system_clock::now());
  queue_->Shutdown();
  while (grpc_completion_queue_next(queue_->cq(), gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr).type !=
         GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_call_details_destroy(&details_);
  grpc_metadata_array_destroy(&metadata_);
}

bool ServerHost::run_once(std::chrono::milliseconds at_most, bool& success) {
  const grpc_event event = grpc_completion_queue_next(queue_->cq(), core::deadline_in(at_most), nullptr);
  success = event.type == GRPC_OP_COMPLETE && event.success != 0;
  return event.type == GRPC_OP_COMPLETE;
}

bool ServerHost::hung_up() const {
  pollfd watched{.fd = watch_.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&watched, 1, 0) > 0;
}

ServerHost::Call ServerHost::look_for_call() {
  bool success = false;
  if (!run_once(std::chrono::milliseconds(0), success) || !success) return {};
  return {std::move(call_queue_), core::CallPtr(call_), core::take_text(details_.method)};
}

void ServerHost::wait_for_hang_up(std::chrono::milliseconds at_most) {
  const auto start = std::chrono::steady_clock::now();
  bool ignored = false;
  while (!hung_up() && std::chrono::steady_clock::now() - start < (hurried_ ? std::min(at_most, kHurry) : at_most)) {
    run_once(kLookAtPeer, ignored);
  }
}

void ServerHost::work() {
  bool ignored = false;
  run_once(std::chrono::milliseconds(0), ignored);
}

base::FileHandle ServerHost::socket() const { return base::FileHandle(fcntl(watch_.get(), F_DUPFD_CLOEXEC, 0)); }

void ServerHost::cut() { ::shutdown(watch_.get(), SHUT_RDWR); }

}  // namespace lockstep::transport
