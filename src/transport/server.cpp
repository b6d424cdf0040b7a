#include <fmt/format.h>
#include <grpc/support/alloc.h>

#include <list>
#include <thread>

#include "transport/call_stream.h"
#include "transport/server_host.h"
#include "transport/sockets.h"

namespace lockstep::transport {
namespace {

constexpr std::chrono::seconds kHandshake{10};  // until a connection has become a stream
constexpr std::chrono::seconds kLinger{5};      // for the last frames of a stream whose peer is slow to read
constexpr size_t kMostStrangers = 64;           // connections that are no stream, or no more
constexpr const char* kStopping = "the server is shutting down";

class ServerStream final : public CallStream {
 public:
  ServerStream(core::CallPtr call, core::QueuePtr queue, base::FileHandle socket, const Options& options)
      : CallStream(std::move(call), std::move(queue), options) {
    set_socket(std::move(socket));
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
  bool begun_ = false;
  int closed_early_ = 0;
};

void ServerStream::begin() {
  begun_ = true;
  grpc_op close{};
  close.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  close.data.recv_close_on_server.cancelled = &closed_early_;
  start({&close, 1}, Tag::kEnd);
  grpc_metadata accepted{};
  accepted.key = grpc_slice_from_static_string(core::kAcceptedKey);
  accepted.value = grpc_slice_from_static_string(peer_.c_str());
  grpc_op op{};
  op.op = GRPC_OP_SEND_INITIAL_METADATA;
  op.data.send_initial_metadata.count = 1;
  op.data.send_initial_metadata.metadata = &accepted;
  if (start({&op, 1}, Tag::kStart)) wait(Tag::kStart);
}

void ServerStream::finish(const std::string& failure) {
  if (!begun_) return;
  grpc_slice details = grpc_slice_from_copied_string(failure.c_str());
  grpc_op op{};
  op.op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  op.data.send_status_from_server.status = failure.empty() ? GRPC_STATUS_OK : GRPC_STATUS_ABORTED;
  op.data.send_status_from_server.status_details = failure.empty() ? nullptr : &details;
  bool success = false;
  if (start({&op, 1}, Tag::kWrite) && !wait(Tag::kWrite, core::deadline_in(kLinger), success)) {
    cut();  // the peer does not read
    wait(Tag::kWrite);
  }
  grpc_slice_unref(details);
  wait(Tag::kEnd);
}

std::string ServerStream::why_ended(bool reading) {
  if (reading && grpc_call_failed_before_recv_message(call()) == 0) return "the peer ended the stream";
  return "connection lost or closed by the peer";
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler);
  ~Impl() { shutdown(); }

  void shutdown();
  [[nodiscard]] int port() const { return listener_.port(); }

 private:
  /// A connection with its thread, which fills in what it has and says when it is done.
  struct Session {
    std::thread thread;
    ServerHost* host = nullptr;
    ServerStream* stream = nullptr;
    bool done = false;
  };

  void accept_all();
  void join_finished();
  void run(Session& session, base::FileHandle socket);
  void serve(Session& session, ServerHost& host);
  /// Whether there is room for one more stream; if so it counts from now on.
  bool admit(Session& session, ServerStream& stream);

  const ServerOptions options_;
  const Handler handler_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  Listener listener_;

  base::Mutex mutex_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int streams_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::list<Session> sessions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

Server::Impl::Impl(const ServerOptions& options, Handler handler)
    : options_(options),
      handler_(std::move(handler)),
      credentials_((core::start_library(), core::server_credentials(options.security))),
      listener_(options.address),
      acceptor_([this] { accept_all(); }) {}

void Server::Impl::accept_all() {
  while (true) {
    base::FileHandle socket = listener_.accept();
    if (!socket.open()) return;
    join_finished();
    const base::MutexLock lock(mutex_);
    const size_t most = static_cast<size_t>(options_.most_streams) + kMostStrangers;
    if (stopping_ || sessions_.size() >= most) continue;
    Session& session = sessions_.emplace_back();
    session.thread = std::thread([this, &session, held = std::make_shared<base::FileHandle>(std::move(socket))] {
      run(session, std::move(*held));
    });
  }
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

void Server::Impl::run(Session& session, base::FileHandle socket) {
  {
    ServerHost host(std::move(socket), credentials_, options_.largest_payload);
    {
      const base::MutexLock lock(mutex_);
      session.host = &host;
      if (stopping_) host.cut();
    }
    serve(session, host);
    const base::MutexLock lock(mutex_);
    session.host = nullptr;
  }
  const base::MutexLock lock(mutex_);
  session.done = true;
}

bool Server::Impl::admit(Session& session, ServerStream& stream) {
  const base::MutexLock lock(mutex_);
  if (stopping_) {
    stream.cancel(kStopping);
    return false;
  }
  if (streams_ >= options_.most_streams) {
    stream.cancel(fmt::format("the server has {} streams already, and allows no more", streams_));
    return false;
  }
  ++streams_;
  session.stream = &stream;
  return true;
}

void Server::Impl::serve(Session& session, ServerHost& host) {
  ServerHost::Call call = host.wait_for_call(kHandshake);
  if (!call.call) return;
  if (call.method != core::kMethod) {
    grpc_call_cancel_with_status(call.call.get(), GRPC_STATUS_UNIMPLEMENTED, "there is no such method here", nullptr);
  } else {
    ServerStream stream(
        std::move(call.call), std::move(call.queue), host.socket(),
        CallStream::Options{
            .largest_payload = options_.largest_payload, .spin = options_.spin, .meter = options_.meter});
    std::string failure;
    if (admit(session, stream)) {
      stream.begin();
      try {
        handler_(stream);
      } catch (const std::exception& error) {
        failure = error.what();
      }
      const base::MutexLock lock(mutex_);
      session.stream = nullptr;
      --streams_;
    }
    stream.finish(failure);
  }
  host.wait_for_hang_up(kLinger);
}

void Server::Impl::shutdown() {
  if (!acceptor_.joinable()) return;
  listener_.stop();
  acceptor_.join();
  std::list<Session> rest;
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    for (Session& session : sessions_) {
      if (session.host != nullptr) session.host->hurry();
      if (session.stream != nullptr) {
        session.stream->cancel(kStopping);
      } else if (session.host != nullptr) {
        session.host->cut();
      }
    }
    rest.swap(sessions_);
  }
  for (Session& session : rest) session.thread.join();
}

Server::Server(const ServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
Server::~Server() = default;
int Server::port() const { return impl_->port(); }
void Server::shutdown() { impl_->shutdown(); }

}  // namespace lockstep::transport
