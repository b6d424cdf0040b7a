// Messages between this rank and others, several in flight at a time. All operations of the MPI engine use them. Unlike
// MPI's own collective operations they can have a deadline, know which rank they wait for, and give the same bits
// however MPI is configured. One thread. Memory that is sent or received must stay until `wait` returns; after a
// failure, for the life of the process.
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

/// Returns MPI's text for an error code.
std::string error_text(int code);

class Transfers {
 public:
  /// `give_up`: checked while waiting
  Transfers(const GroupOptions& options, const std::atomic<bool>& give_up);

  void send(std::span<const std::byte> data, int to);
  void receive(std::span<std::byte> data, int from);
  /// Waits until all have arrived. A failure says which ranks have not sent, what MPI reported, or that `give_up`
  /// became true.
  base::Status wait();

  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

 private:
  struct Peer {
    int rank = 0;
    bool sends_to_us = false;
  };
  template <class Bytes, class Start>
  void start(Bytes data, Peer peer, Start start_piece);
  /// Polls, then yields, then sleeps: ever longer, but at most a fraction of the time waited so far.
  void pause(std::chrono::nanoseconds waited) const;
  base::Failure overdue();

  GroupOptions options_;
  const std::atomic<bool>& give_up_;
  std::vector<MPI_Request> requests_;
  std::vector<Peer> peers_;  ///< peers of the requests
  int error_ = MPI_SUCCESS;  ///< error of starting a request
  Traffic traffic_;
};

}  // namespace lockstep::collective::mpi
