#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <list>
#include <thread>

#include "base/file.h"
#include "transport/call_stream.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::seconds kLinger{5};  // for the last frames of a stream whose peer is slow to read

class ServerStream final : public CallStream {
 public:
  ServerStream(core::CallPtr call, core::QueuePtr queue, const Options& options)
      : CallStream(std::move(call), std::move(queue), options) {
    char* peer = grpc_call_get_peer(this->call());
    peer_ = core::plain_address(peer);
    gpr_free(peer);
  }

  /// Tells the client that it is accepted.
  void begin();
  /// After the handler: the last word to the peer. Empty: all went well.
  void finish(const std::string& failure);

  std::string why_ended(bool reading) override;
  void close_writes() override {}

 private:
  int closed_early_ = 0;
};

void ServerStream::begin() {
  grpc_op close{};
  close.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  close.data.recv_close_on_server.cancelled = &closed_early_;
  start({&close, 1}, Tag::kEnd);
  grpc_metadata accepted{};
  accepted.key = grpc_slice_from_static_string(core::kAcceptedKey);
  accepted.value = grpc_slice_from_static_string("1");
  grpc_op op{};
  op.op = GRPC_OP_SEND_INITIAL_METADATA;
  op.data.send_initial_metadata.count = 1;
  op.data.send_initial_metadata.metadata = &accepted;
  if (start({&op, 1}, Tag::kStart)) wait(Tag::kStart);
}

void ServerStream::finish(const std::string& failure) {
  grpc_slice details = grpc_slice_from_copied_string(failure.c_str());
  grpc_op op{};
  op.op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  op.data.send_status_from_server.status = failure.empty() ? GRPC_STATUS_OK : GRPC_STATUS_ABORTED;
  op.data.send_status_from_server.status_details = failure.empty() ? nullptr : &details;
  bool success = false;
  if (start({&op, 1}, Tag::kWrite) && !wait(Tag::kWrite, core::deadline_in(kLinger), success)) {
    cancel("the peer does not read");
    wait(Tag::kWrite);
  }
  grpc_slice_unref(details);
  wait(Tag::kEnd);
}

std::string ServerStream::why_ended(bool reading) {
  if (reading && grpc_call_failed_before_recv_message(call()) == 0) return "the peer ended the stream";
  return "connection lost or closed by the peer";
}

/// The system's reason why nobody can listen at an address; gRPC does not tell.
std::string why_not_listening(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "not host:port";
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) return gai_strerror(error);
  const std::unique_ptr<addrinfo, core::Release<freeaddrinfo>> owner(found);
  const base::FileHandle socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(socket.get(), 1) != 0) {
    return std::strerror(errno);
  }
  return "the system refused";
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler);
  ~Impl() { shutdown(); }

  void shutdown();
  [[nodiscard]] int port() const { return port_; }

 private:
  /// A stream with its thread; the thread says when it is done, the acceptor or shutdown joins it.
  struct Session {
    explicit Session(std::unique_ptr<ServerStream> made) : stream(std::move(made)) {}
    std::unique_ptr<ServerStream> stream;
    bool done = false;
    std::thread thread;
  };

  void listen();
  void request_next();
  void accept_all();
  void take(core::CallPtr call, core::QueuePtr queue);
  void serve(Session& session);
  void join_finished();

  const ServerOptions options_;
  const Handler handler_;
  core::ServerPtr server_;
  grpc_completion_queue* queue_;
  int port_ = 0;
  char shutdown_tag_ = 0;

  // What the next call will be put into; the acceptor's.
  core::QueuePtr next_queue_;
  grpc_call* next_call_ = nullptr;
  grpc_call_details next_details_{};
  grpc_metadata_array next_metadata_{};

  base::Mutex mutex_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::list<Session> sessions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

Server::Impl::Impl(const ServerOptions& options, Handler handler) : options_(options), handler_(std::move(handler)) {
  core::start_library();
  const core::ServerCredentialsPtr credentials = core::server_credentials(options.security);
  server_ = core::make_server(options.largest_payload);
  queue_ = grpc_completion_queue_create_for_next(nullptr);
  grpc_server_register_completion_queue(server_.get(), queue_, nullptr);
  port_ = grpc_server_add_http2_port(server_.get(), options.address.c_str(), credentials.get());
  grpc_call_details_init(&next_details_);
  grpc_metadata_array_init(&next_metadata_);
  grpc_server_start(server_.get());
  if (port_ != 0) request_next();
  acceptor_ = std::thread([this] { accept_all(); });
  if (port_ == 0) {
    shutdown();
    throw IoError(fmt::format("cannot listen at {}: {}", options.address, why_not_listening(options.address)));
  }
}

void Server::Impl::request_next() {
  next_queue_ = core::make_pluck_queue();
  next_call_ = nullptr;
  grpc_server_request_call(server_.get(), &next_call_, &next_details_, &next_metadata_, next_queue_.get(), queue_,
                           this);
}

void Server::Impl::accept_all() {
  while (true) {
    const grpc_event event = grpc_completion_queue_next(queue_, gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
    if (event.type == GRPC_QUEUE_SHUTDOWN) return;
    if (event.tag == &shutdown_tag_) {
      grpc_completion_queue_shutdown(queue_);
      continue;
    }
    if (event.success == 0) continue;  // the server is shutting down
    take(core::CallPtr(next_call_), std::move(next_queue_));
    grpc_call_details_destroy(&next_details_);
    grpc_call_details_init(&next_details_);
    request_next();
    join_finished();
  }
}

void Server::Impl::take(core::CallPtr call, core::QueuePtr queue) {
  if (grpc_slice_str_cmp(next_details_.method, core::kMethod) != 0) {
    grpc_call_cancel_with_status(call.get(), GRPC_STATUS_UNIMPLEMENTED, "there is no such method here", nullptr);
    return;
  }
  const base::MutexLock lock(mutex_);
  if (stopping_) return;
  const auto living = std::count_if(sessions_.begin(), sessions_.end(), [](const Session& s) { return !s.done; });
  if (living >= options_.most_streams) {
    const std::string why = fmt::format("the server has {} streams already, and allows no more", living);
    grpc_call_cancel_with_status(call.get(), GRPC_STATUS_RESOURCE_EXHAUSTED, why.c_str(), nullptr);
    return;
  }
  Session& session = sessions_.emplace_back(std::make_unique<ServerStream>(
      std::move(call), std::move(queue),
      CallStream::Options{.largest_payload = options_.largest_payload, .spin = options_.spin}));
  session.thread = std::thread([this, &session] { serve(session); });
}

void Server::Impl::serve(Session& session) {
  session.stream->begin();
  std::string failure;
  try {
    handler_(*session.stream);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  session.stream->finish(failure);
  const base::MutexLock lock(mutex_);
  session.stream.reset();
  session.done = true;
}

void Server::Impl::join_finished() {
  std::list<Session> finished;
  {
    const base::MutexLock lock(mutex_);
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const auto next = std::next(at);
      if (at->done) finished.splice(finished.end(), sessions_, at);
      at = next;
    }
  }
  for (Session& session : finished) session.thread.join();
}

void Server::Impl::shutdown() {
  if (!server_) return;
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    for (Session& session : sessions_) {
      if (session.stream) session.stream->cancel("the server is shutting down");
    }
  }
  grpc_server_shutdown_and_notify(server_.get(), queue_, &shutdown_tag_);
  grpc_server_cancel_all_calls(server_.get());
  acceptor_.join();
  std::list<Session> rest;
  {
    const base::MutexLock lock(mutex_);
    rest.swap(sessions_);
  }
  for (Session& session : rest) session.thread.join();
  next_queue_.reset();
  grpc_call_details_destroy(&next_details_);
  grpc_metadata_array_destroy(&next_metadata_);
  server_.reset();
  grpc_completion_queue_destroy(queue_);
}

Server::Server(const ServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
Server::~Server() = default;
int Server::port() const { return impl_->port(); }
void Server::shutdown() { impl_->shutdown(); }

}  // namespace lockstep::transport
