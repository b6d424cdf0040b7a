// A small web server. Its own thread moves all bytes with poll(2); worker threads, if configured, make the answers. A
// client that is slow to send or to receive therefore holds up nobody else, and an open event stream costs one socket.
// Requests, connections and the time for each have limits. If there are too many connections, the oldest is closed. A
// stream that does not read its events is closed. A connection carries one request.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "http/message.h"

namespace lockstep::http {

struct Limits {
  size_t request_bytes = 16384;
  size_t connections = 192;  ///< streams included
  size_t streams = 64;
  std::chrono::milliseconds request{10000};  ///< for receiving the whole request
  std::chrono::milliseconds answer{60000};   ///< for making the answer, and again for sending it
};

struct ServerOptions {
  std::string name;    ///< name of its threads
  size_t workers = 0;  ///< 0: the server's thread makes the answers, which must then be quick
  Limits limits = {};
};

class Server {
 public:
  using Handler = std::function<Response(const Request&)>;

  /// Calls `handler` on the server's thread or on several workers at once, for GET and HEAD only. An exception from it
  /// becomes status 500. Throws IoError if the system has no threads left.
  Server(base::FileHandle listener, ServerOptions options, Handler handler);
  /// Ends all connections. Waits for answers being made, but for no client.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Sends to all event streams: the text of one event, with the empty line that ends it. Any thread.
  void publish(std::string_view event);
  /// Returns the number of event streams. Any thread.
  [[nodiscard]] size_t streams() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::http
