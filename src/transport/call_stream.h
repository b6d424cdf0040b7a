// One side of a stream over one gRPC call: the code that client and server share. Internal.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
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
                     std::shared_ptr<const void> hold) override;
  using Stream::write;
  void cancel(const std::string& why) final;
  [[nodiscard]] std::string peer() const final { return peer_; }
  [[nodiscard]] Traffic traffic() const final;
  [[nodiscard]] std::optional<double> unanswered() const final;

  /// Purpose of an operation in flight.
  enum class Tag : uint8_t { kStart, kRead, kWrite, kEnd, kWake };
  /// An operation in flight. Its address is gRPC's tag.
  struct Operation {
    CallStream* stream;
    Tag tag;
  };

 protected:
  virtual bool start(std::span<const grpc_op> ops, Tag tag);
  /// Asks for the next frame without waiting; read() then returns it. Called by the reader's thread.
  bool start_read();
  /// True if the frame requested by start_read() has arrived or never will.
  bool read_ended();
  [[nodiscard]] bool read_asked() const { return reading_.started; }
  /// True if the ended read has a message.
  [[nodiscard]] bool has_message() const { return reading_.success && reading_.received != nullptr; }
  /// Waits for the operation until the deadline. Returns true if it has ended; `success` says how.
  virtual bool wait(Tag tag, gpr_timespec deadline, bool& success);
  /// Waits without a deadline.
  bool wait(Tag tag);

  /// Keeps the connection's socket, so that cut() can break it while gRPC still waits for the peer to read.
  void set_socket(base::FileHandle socket) { socket_ = std::move(socket); }
  /// Breaks the connection. Any thread.
  void cut();

  struct Message {
    core::BufferPtr buffer;
    size_t payload = 0;
  };
  [[nodiscard]] base::Result<Message> message_of(const Header& header,
                                                 std::span<const std::span<const std::byte>> pieces,
                                                 const std::shared_ptr<const void>& hold) const;
  bool start_write(const Message& message);
  void count_sent(const Message& message);
  /// A write is in flight, which cancel() may have to cut short.
  void set_writing(bool writing) { writing_ = writing; }
  base::Failure ended(bool reading);

  /// Returns the reason why nothing more can be read or written, after a read or write has failed.
  virtual std::string why_ended(bool reading) = 0;
  /// Returns the reason given to cancel(); empty: not called.
  [[nodiscard]] std::string cancelled();

  [[nodiscard]] grpc_call* call() { return call_.get(); }
  std::string peer_;

 private:
  void* address_of(Tag tag) { return &operations_[static_cast<size_t>(tag)]; }

  const Options options_;
  core::QueuePtr queue_;  ///< null: a hand waits for the call's operations
  core::CallPtr call_;
  base::FileHandle socket_;
  std::array<Operation, 5> operations_{
      {{this, Tag::kStart}, {this, Tag::kRead}, {this, Tag::kWrite}, {this, Tag::kEnd}, {this, Tag::kWake}}};
  /// A read in flight; used by the reader's thread.
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
