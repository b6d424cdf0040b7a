// Work of a hand for one stream: the handler's first look at it, then its frames, writes and wakes (attend.h), and
// its end. Used by the stream's hand; made and destroyed by the acceptor. Internal.
#pragma once

#include <functional>
#include <string>

#include "transport/server_stream.h"

namespace lockstep::transport {

class Served final : public ServerStream::Driver {
 public:
  /// `on_end`: the stream ends from now on; it is idle soon, or its peer does not read.
  Served(ServerStream& stream, const Server::Handler& handler, std::function<void()> on_end)
      : stream_(stream), handler_(handler), on_end_(std::move(on_end)) {}

  void on_event(CallStream::Tag tag) override;

 private:
  /// Returns false if the handler does not attend the stream.
  bool open();
  void advance();
  /// Does one thing. Returns false if there is nothing to do now.
  bool advance_once();
  void end(const std::string& failure);
  void close();

  ServerStream& stream_;
  const Server::Handler& handler_;
  const std::function<void()> on_end_;
  bool opened_ = false;
  bool ended_ = false;
  bool closed_ = false;
  std::string failure_;
};

}  // namespace lockstep::transport
