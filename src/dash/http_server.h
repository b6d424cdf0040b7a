// A web server for a page and its event streams. One thread, the caller of `run`, moves all bytes with poll(2); a few
// workers make the answers. So nobody who is slow to ask or to take an answer holds a thread, and an open stream of
// events costs a socket: a request is at most 16 kB and must be there within 10 s, an answer must be taken within 60 s,
// the connection that has been there longest goes when there are too many, and a stream that does not take its
// events ends. Connections carry one request each.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "dash/http.h"

namespace lockstep::dash {

/// Listens there; port 0 is any free one. Throws IoError with the address and the reason.
base::FileHandle listen_at(const std::string& host, int port);
int port_of(const base::FileHandle& listener);

class HttpServer {
 public:
  using Handler = std::function<Response(const Request&)>;
  static constexpr size_t kMostStreams = 64;

  /// `handler` is called by several threads at once, only for GET and HEAD; what it throws is status 500.
  HttpServer(base::FileHandle listener, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Until `stop` is readable; all connections have then ended.
  void run(int stop);

  /// To all event streams: the text of one event, with the empty line that ends it. Any thread.
  void publish(std::string_view event);
  /// How many there are. Any thread.
  [[nodiscard]] size_t streams() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::dash
