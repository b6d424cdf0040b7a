// One side of a stream over one gRPC call: what the client's and the server's side have in common. Internal.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/file.h"
#include "base/mutex.h"
#include "transport/core.h"
#include "transport/stream.h"

namespace lockstep::transport {

class CallStream : public Stream {
 public:
  struct Options {
    size_t largest_payload = 0;
    std::chrono::microseconds spin{0};
    base::TrafficMeter* meter = nullptr;
  };

  CallStream(core::CallPtr call, core::QueuePtr queue, const Options& options);
  ~CallStream() override { grpc_byte_buffer_destroy(reading_.received); }
  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  base::Result<Frame> read() final;
  base::Status write(const Header& header, std::span<const std::span<const std::byte>> pieces,
                     std::shared_ptr<const void> hold) final;
  using Stream::write;
  void cancel(const std::string& why) final;
  [[nodiscard]] std::string peer() const final { return peer_; }
  [[nodiscard]] Traffic traffic() const final;

 protected:
  /// Operations under way, by which thread waits for them. Their addresses are the tags.
  enum class Tag : char { kStart, kRead, kWrite, kEnd };

  bool start(std::span<const grpc_op> ops, Tag tag);
  /// Asks for the next frame without waiting for it; read() then gives that one. The reader's thread.
  bool start_read();
  /// Whether the frame that start_read() asked for has come, or never will.
  bool read_ended();
  /// After it has ended: whether there is a message.
  [[nodiscard]] bool has_message() const { return reading_.success && reading_.received != nullptr; }
  /// Whether the operation has ended before the deadline; `success` says how.
  bool wait(Tag tag, gpr_timespec deadline, bool& success);
  /// Waits for as long as it takes.
  bool wait(Tag tag);

  /// The connection's socket, so that it can be broken while gRPC still waits for the peer to read.
  void set_socket(base::FileHandle socket) { socket_ = std::move(socket); }
  /// Breaks the connection. Any thread.
  void cut();

  /// Why there is nothing more to read or write, after one of them has failed.
  virtual std::string why_ended(bool reading) = 0;
  /// The reason that cancel() was given; empty: it was not called.
  [[nodiscard]] std::string cancelled();

  [[nodiscard]] grpc_call* call() { return call_.get(); }
  std::string peer_;

 private:
  void* address_of(Tag tag) { return &tags_[static_cast<size_t>(tag)]; }
  base::Failure ended(bool reading);

  const Options options_;
  core::QueuePtr queue_;
  core::CallPtr call_;
  base::FileHandle socket_;
  char tags_[4] = {};
  /// A read that was started; the reader's.
  struct {
    bool started = false;
    bool ended = false;
    bool success = false;
    grpc_byte_buffer* received = nullptr;
  } reading_;
  std::atomic<bool> writing_{false};
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};

  base::Mutex mutex_;
  std::string cancelled_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::transport
