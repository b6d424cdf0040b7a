// A small web server. One thread of its own moves all bytes with poll(2), and a few workers, where it has some, make
// the answers. So nobody who is slow to ask or to take an answer holds up another, and a stream of events that is open
// costs a socket: requests, connections and the time that each may take have limits, the connection that has been there
// longest goes when there are too many, and a stream that does not take its events ends. Connections carry one request
// each.
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
  std::chrono::milliseconds request{10000};  ///< until it is whole
  std::chrono::milliseconds answer{60000};   ///< until it is made, and again until it is taken
};

struct ServerOptions {
  std::string name;    ///< of its threads
  size_t workers = 0;  ///< 0: the thread that moves the bytes makes the answers, which must be quick then
  Limits limits = {};
};

class Server {
 public:
  using Handler = std::function<Response(const Request&)>;

  /// `handler` is called by the server's thread or by several workers at once, only for GET and HEAD; what it throws is
  /// status 500. Throws IoError where the system has no threads left.
  Server(base::FileHandle listener, ServerOptions options, Handler handler);
  /// Ends all connections; waits for no client, only for answers that are being made.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// To all event streams: the text of one event, with the empty line that ends it. Any thread.
  void publish(std::string_view event);
  /// How many there are. Any thread.
  [[nodiscard]] size_t streams() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::http
