// One client of a server: its socket, how far it has come, and until when it must have come further. Moves bytes only
// as far as that goes without waiting. Belongs to the server's thread.
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
    receiving,  ///< its request
    asked,      ///< the request is whole
    waiting,    ///< for its answer
    sending,
    draining,  ///< all is sent; who still speaks would fail at an end now, and not come to read the answer
    streaming,
  };

  Connection(uint64_t number, base::FileHandle socket, const Limits& limits);

  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] Stage stage() const { return stage_; }
  /// When to call `advance` even if nothing can be read or written.
  [[nodiscard]] Clock::time_point until() const { return until_; }
  /// What poll(2) is to look for.
  [[nodiscard]] pollfd polled() const;

  /// False: it is over.
  bool advance();
  /// The text of one that has asked; it waits from then on.
  std::string take_request();
  void answer(const Response& response) { answer(response_text(response, false), false); }
  /// A response as text; where `stays`, events follow it.
  void answer(std::string text, bool stays);
  /// To a stream.
  void publish(std::string_view event) { unsent_ += event; }

 private:
  bool receive();
  bool send();
  /// Throws away what comes; false: the client is gone.
  [[nodiscard]] bool listens() const;

  uint64_t number_;
  base::FileHandle socket_;
  const Limits& limits_;
  Stage stage_ = Stage::receiving;
  Clock::time_point until_;
  std::string request_;
  std::string unsent_;
};

}  // namespace lockstep::http
