// The server's side of a stream. Its handler has a thread of its own, which waits for each operation; or a hand waits
// for the operations of many streams (hand.h), and nothing here waits, except finish(). Internal.
//
// Threads of a stream with a hand: the acceptor's until the first frame is there, then the hand's, and the acceptor's
// again once it is idle. Any thread may write, cancel and wake.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "transport/attend.h"
#include "transport/call_stream.h"
#include "transport/hand.h"

namespace lockstep::transport {

class ServerStream final : public CallStream {
 public:
  /// Time for a slow peer to read the last frames.
  static constexpr std::chrono::seconds kLastWord{5};

  /// Called by a hand for a stream that has its first frame: an operation has ended.
  class Driver {
   public:
    virtual ~Driver() = default;
    virtual void on_event(Tag tag) = 0;
  };

  /// `tls`: the peer has shown a certificate. Without a queue, its hand waits for the operations.
  ServerStream(core::CallPtr call, core::QueuePtr queue, HandShare hand, base::FileHandle socket, bool tls,
               const Options& options);
  ~ServerStream() override { finish("the server closed the stream"); }

  /// Tells the client that it is accepted, without waiting. `read`: also asks for its first frame.
  void begin(bool read);
  /// True if the first frame has arrived or never will. Does not wait.
  bool first_frame_ended() { return read_ended(); }
  /// The same for a later frame, which it asks for: then read() does not wait.
  bool next_frame_ended() {
    if (!read_asked()) start_read();
    return read_ended();
  }
  [[nodiscard]] bool has_first_frame() const { return has_message(); }
  /// Sends the final status to the peer, once. Nothing is in flight afterwards. An empty text means success.
  void finish(const std::string& failure);
  /// Waits with a thread, and sends without one: see Attendance.
  base::Status write(const Header& header, std::span<const std::span<const std::byte>> pieces,
                     std::shared_ptr<const void> hold) override;
  using Stream::write;

  // Streams with a hand.
  /// The same as finish(), without waiting: then idle() follows.
  bool start_finish(const std::string& failure);
  /// True if it is finished and nothing is in flight: it may be destroyed.
  [[nodiscard]] bool idle() const;
  /// True if all that was written is on its way.
  [[nodiscard]] bool drained() const;
  [[nodiscard]] bool is_cancelled() { return !cancelled().empty(); }
  void drive_by(Driver* driver) { driver_ = driver; }
  /// An operation has ended; called by the hand. Returns true if the acceptor should look: a stranger has said
  /// something, or the stream is idle and may be gone.
  bool completed(Tag tag, bool success);
  /// Makes the hand call the driver. Any thread.
  void wake();
  using CallStream::cut;

  std::string why_ended(bool reading) override;
  [[nodiscard]] std::string why_not(const std::string& role) const override;
  void admit() override;
  void on_admit(std::function<void()> call) { on_admit_ = std::move(call); }
  void attend(Attendance attendance);
  /// Set once its handler has asked for it.
  [[nodiscard]] const std::optional<Attendance>& attendance() const { return attendance_; }
  void close_writes() override {}

 private:
  bool start(std::span<const grpc_op> ops, Tag tag) override;
  bool wait(Tag tag, gpr_timespec deadline, bool& success) override;
  [[nodiscard]] bool has_hand() const { return hand_.hand() != nullptr; }
  void wrote(bool success);
  void wait_until_idle();

  bool under_way_ = false;  ///< true between begin() and finish()
  int closed_early_ = 0;
  grpc_metadata accepted_{};
  bool tls_;
  std::string certificate_;  ///< the peer's certificate, PEM
  std::function<void()> on_admit_;
  std::optional<Attendance> attendance_;

  HandShare hand_;  ///< without a hand, its thread waits for each operation
  std::atomic<Driver*> driver_ = nullptr;
  std::atomic<bool> waking_ = false;

  mutable base::Mutex flight_mutex_;
  base::Condition landed_;
  int in_flight_ LOCKSTEP_GUARDED_BY(flight_mutex_) = 0;  ///< operations, until the hand has handled their ends
  bool read_arrived_ LOCKSTEP_GUARDED_BY(flight_mutex_) = false;
  bool read_success_ LOCKSTEP_GUARDED_BY(flight_mutex_) = false;
  bool finishing_ LOCKSTEP_GUARDED_BY(flight_mutex_) = false;

  mutable base::Mutex outbox_mutex_;                               ///< taken before flight_mutex_
  std::deque<Message> outbox_ LOCKSTEP_GUARDED_BY(outbox_mutex_);  ///< the first one is being sent
  bool closed_ LOCKSTEP_GUARDED_BY(outbox_mutex_) = false;         ///< no more is sent
};

}  // namespace lockstep::transport
