// Messages between this rank and others that are on their way at the same time. Everything of the MPI engine is made of
// them: unlike MPI's own collective operations they can be waited for with a deadline, know whom they wait for, and
// give the same bits however MPI is configured. One thread; memory that is sent or received must stay until `wait` is
// over, and after a failure for as long as the process.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collective/collective.h"

namespace lockstep::collective::mpi {

/// MPI's words for an error code.
std::string error_text(int code);

class Transfers {
 public:
  /// `give_up` is looked at while waiting.
  Transfers(const GroupOptions& options, const std::atomic<bool>& give_up);

  void send(std::span<const std::byte> data, int to);
  void receive(std::span<std::byte> data, int from);
  /// Until all have arrived. A failure says which ranks have not sent, or what MPI said; where `give_up` became true it
  /// says so.
  base::Status wait();

  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

 private:
  struct Peer {
    int rank = 0;
    bool sends_to_us = false;
  };
  template <class Bytes, class Start>
  void start(Bytes data, Peer peer, Start start_piece);
  /// Polls, then yields, then sleeps: ever longer, but never for more than a fraction of what it has waited already.
  void pause(std::chrono::nanoseconds waited) const;
  base::Failure overdue();

  GroupOptions options_;
  const std::atomic<bool>& give_up_;
  std::vector<MPI_Request> requests_;
  std::vector<Peer> peers_;  ///< of the requests
  int error_ = MPI_SUCCESS;  ///< of starting
  Traffic traffic_;
};

}  // namespace lockstep::collective::mpi
