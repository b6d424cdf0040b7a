// A listening TCP socket. Internal.
#pragma once

#include <string>

#include "base/file.h"

namespace lockstep::transport {

class Listener {
 public:
  /// At "host:port", "[::1]:port"; port 0: any free one. Throws IoError naming the address and the reason.
  explicit Listener(const std::string& address);

  [[nodiscard]] int port() const { return port_; }

  /// The next connection; none after `stop`.
  base::FileHandle accept();
  /// Any thread.
  void stop();

 private:
  base::FileHandle socket_;
  base::FileHandle stop_;  ///< an eventfd that ends the wait
  int port_ = 0;
};

}  // namespace lockstep::transport
