// The least work with which two processes can exchange N bytes: over a loopback socket, and through shared memory with
// plain copies. The constructor forks the other process, so no threads may be running. The other process makes the same
// calls as this one and ends with this object. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/file.h"

namespace lockstep::bench {

/// Seconds per exchange.
struct BareTimes {
  double socket = 0;
  double copy = 0;
};

class BarePartner {
 public:
  /// `spin`: duration that a wait polls before it sleeps.
  BarePartner(size_t largest, std::chrono::microseconds spin);
  ~BarePartner();
  BarePartner(const BarePartner&) = delete;
  BarePartner& operator=(const BarePartner&) = delete;

  /// Sends `bytes` in both directions, `times` times, over the socket and through memory.
  BareTimes exchange(size_t bytes, int times);

 private:
  struct Command {
    size_t bytes = 0;
    int times = 0;
  };
  struct Shared;

  [[noreturn]] void serve();
  BareTimes measure(const Command& command);
  void socket_exchange(size_t bytes);
  void copy_exchange(size_t bytes);
  void receive(std::byte* to, size_t bytes);
  void wait_until(const std::function<bool()>& ready) const;

  const std::chrono::microseconds spin_;
  base::FileHandle socket_;
  base::FileHandle commands_;
  int side_ = 0;
  int partner_ = -1;
  Shared* shared_ = nullptr;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

}  // namespace lockstep::bench
