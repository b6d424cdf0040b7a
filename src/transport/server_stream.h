// The server's side of a stream. Internal.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "transport/attend.h"
#include "transport/call_stream.h"

namespace lockstep::transport {

class ServerStream final : public CallStream {
 public:
  /// `tls`: the peer has shown a certificate
  ServerStream(core::CallPtr call, core::QueuePtr queue, base::FileHandle socket, bool tls, const Options& options);
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

  std::string why_ended(bool reading) override;
  [[nodiscard]] std::string why_not(const std::string& role) const override;
  void admit() override;
  void on_admit(std::function<void()> call) { on_admit_ = std::move(call); }
  void attend(Attendance attendance) { attendance_ = std::move(attendance); }
  /// Set once its handler has asked for it.
  [[nodiscard]] const std::optional<Attendance>& attendance() const { return attendance_; }
  void close_writes() override {}

 private:
  bool under_way_ = false;  ///< true between begin() and finish()
  int closed_early_ = 0;
  grpc_metadata accepted_{};
  bool tls_;
  std::string certificate_;  ///< the peer's certificate, PEM
  std::function<void()> on_admit_;
  std::optional<Attendance> attendance_;
};

}  // namespace lockstep::transport
