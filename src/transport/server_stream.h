// The server's side of a stream. Internal.
#pragma once

#include <functional>
#include <string>

#include "transport/call_stream.h"

namespace lockstep::transport {

class ServerStream final : public CallStream {
 public:
  /// `tls`: the peer has shown a certificate.
  ServerStream(core::CallPtr call, core::QueuePtr queue, base::FileHandle socket, bool tls, const Options& options);
  ~ServerStream() override { finish("the server closed the stream"); }

  /// Tells the client that it is accepted; does not wait. `read`: also asks for its first frame.
  void begin(bool read);
  /// Whether the first frame has come, or never will. Does not wait.
  bool first_frame_ended() { return read_ended(); }
  [[nodiscard]] bool has_first_frame() const { return has_message(); }
  /// The last word to the peer, once; after it nothing is under way. Empty: all went well.
  void finish(const std::string& failure);

  std::string why_ended(bool reading) override;
  [[nodiscard]] std::string why_not(const std::string& role) const override;
  void admit() override;
  void on_admit(std::function<void()> call) { on_admit_ = std::move(call); }
  void close_writes() override {}

 private:
  bool under_way_ = false;  ///< begun, not finished
  int closed_early_ = 0;
  grpc_metadata accepted_{};
  bool tls_;
  std::string certificate_;  ///< the peer's, PEM
  std::function<void()> on_admit_;
};

}  // namespace lockstep::transport
