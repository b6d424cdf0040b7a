// One client of a server: its socket, its progress, and the deadline for its next step. Moves bytes only as far as
// possible without waiting. Belongs to the server's thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "http/message.h"
#include "http/server.h"

namespace lockstep::http {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Stage : uint8_t {
    receiving,  ///< the request
    asked,      ///< the request is complete
    waiting,    ///< for the answer
    sending,
    draining,  ///< everything is sent; closing now would make a client that still sends fail before it reads the answer
    streaming,
  };

  Connection(uint64_t number, base::FileHandle socket, const Limits& limits);

  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] Stage stage() const { return stage_; }
  /// Returns the time to call `advance` at, even if nothing can be read or written.
  [[nodiscard]] Clock::time_point deadline() const { return deadline_; }
  /// Returns the events for poll(2) to wait for.
  [[nodiscard]] pollfd poll_request() const;

  /// Moves bytes; returns false once the connection is over.
  bool advance();
  /// Returns the text of the complete request. The connection then waits for its answer.
  std::string take_request();
  void answer(const Response& response) { answer(response_text(response, false), false); }
  /// Sends a response as text; events follow it if `stays`.
  void answer(std::string text, bool stays);
  /// Sends an event to a stream.
  void publish(std::string_view event) { unsent_ += event; }

 private:
  bool receive();
  bool send();
  /// Discards incoming bytes; returns false if the client is gone.
  [[nodiscard]] bool discard_input() const;

  uint64_t number_;
  base::FileHandle socket_;
  const Limits& limits_;
  Stage stage_ = Stage::receiving;
  Clock::time_point deadline_;
  std::string request_;
  std::string unsent_;
};

}  // namespace lockstep::http
