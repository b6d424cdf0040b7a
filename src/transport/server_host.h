// A gRPC server for one accepted connection. Used by the one thread that owns the connection: the acceptor's, and with
// a handler's thread that one after it. Internal.
//
// A gRPC server of many connections would poll all of them from shared threads and pass the bytes on to the waiting
// thread. With one server per connection the waiting thread, or the stream's hand, reads the socket itself, and a
// broken or hostile peer affects no other. Only `cut` and `hurry` may be called from other threads.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/file.h"
#include "transport/core.h"

namespace lockstep::transport {

class ServerHost {
 public:
  /// `hand_queue`: the queue of the hand that waits for the call's operations; null: the call has a queue of its own.
  ServerHost(base::FileHandle socket, const std::shared_ptr<grpc::ServerCredentials>& credentials,
             size_t largest_payload, grpc_completion_queue* hand_queue);
  ~ServerHost();
  ServerHost(const ServerHost&) = delete;
  ServerHost& operator=(const ServerHost&) = delete;

  struct Call {
    core::QueuePtr queue;  ///< its own, if it has one
    core::CallPtr call;    ///< null: no call yet
    std::string method;
  };
  /// Lets gRPC work, without waiting. Returns the peer's call if it has arrived.
  Call look_for_call();
  [[nodiscard]] bool hung_up() const;
  /// The connection's socket, to poll for bytes of the peer.
  [[nodiscard]] int watched() const { return watch_.get(); }

  /// Lets the peer read its last frames and hang up.
  void wait_for_hang_up(std::chrono::milliseconds at_most);
  /// Lets gRPC work, without waiting.
  void work();

  /// Returns another handle of the connection's socket.
  [[nodiscard]] base::FileHandle socket() const;

  /// Breaks the connection at once.
  void cut();
  /// Shortens the time that the peer has to hang up.
  void hurry() { hurried_ = true; }

 private:
  /// Lets gRPC work for at most this long. Returns false if nothing happened.
  bool run_once(std::chrono::milliseconds at_most, bool& success);

  std::atomic<bool> hurried_{false};
  base::FileHandle
      watch_;  ///< another handle of the connection's socket: gRPC does not tell when it has closed its own
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door_;
  std::unique_ptr<grpc::Server> server_;

  core::QueuePtr call_queue_;
  grpc_call* call_ = nullptr;
  grpc_call_details details_{};
  grpc_metadata_array metadata_{};
};

}  // namespace lockstep::transport
