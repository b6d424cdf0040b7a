// Connections of one group over Gloo's TCP transport, one pair for each two members that are connected
// (schedule::all_reduce_neighbours). Internal.
//
// Gloo's usual wait wakes its event thread, which wakes the caller, and first asks the receiver whether it is ready:
// three messages and six sleeping threads for one exchange. Here Gloo's pairs are in synchronous mode: the caller's
// thread itself writes to and reads from the socket, and messages go to buffers that the receiver has prepared. Gloo
// can neither bound nor interrupt such a read, so each link has another handle of the pair's socket. Waits for a
// message poll it, and `interrupt` shuts it down, which ends Gloo's calls on it at once.
//
// One thread at a time calls connect, send and receive; any thread may call interrupt. Failures are thrown as
// LinkError.
#pragma once

#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "collective/collective.h"
#include "schedule/all_reduce_way.h"

namespace lockstep::collective::gloo_engine {

using Clock = std::chrono::steady_clock;

class LinkError : public Error {
 public:
  explicit LinkError(base::Failure failure) : Error(failure.message()), failure_(std::move(failure)) {}

  [[nodiscard]] const base::Failure& failure() const { return failure_; }

 private:
  base::Failure failure_;
};

/// Largest message, and largest size of four in flight. A member does not read while it writes, so messages in flight
/// between two members must fit into a socket's send buffer: Linux gives 416 kB by default.
constexpr size_t kPiece = schedule::kAllReducePiece;
constexpr size_t kQuarter = schedule::kAllReduceQuarter;
constexpr size_t kRoom = 400'000;

/// Destination of a message at its receiver.
enum class Lane : uint8_t { stage, place };

class Links {
 public:
  Links(const std::string& host, int rank, int size, const GroupOptions& options);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// True if members share cores: some share a machine, and some were told not to spin.
  [[nodiscard]] bool crowded() const { return crowded_; }
  [[nodiscard]] Seconds deadline() const { return options_.deadline; }
  [[nodiscard]] std::string address() const;
  void connect(const std::vector<std::string>& addresses);

  /// Sets the time by which the following calls must end.
  void set_deadline(Clock::time_point until) { until_ = until; }

  /// Sets the memory: messages are sent from `out`; those of the lane `place` are received into `in`. Both stay until
  /// `unbind`.
  void bind(std::span<const std::byte> out, std::span<std::byte> in);
  void unbind();
  /// Sends out[offset, offset + length) to the same place in the peer's `in`, or to the beginning of its stage.
  void send(int peer, Lane lane, size_t offset, size_t length);
  /// Receives the next message of a peer, `length` bytes long.
  void receive(int peer, Lane lane, size_t length);
  /// Returns the buffer for a peer's messages of the lane `stage`: kPiece bytes, aligned.
  [[nodiscard]] std::byte* stage(int peer) { return peers_[static_cast<size_t>(peer)].stage.get(); }

  /// Makes all calls fail from now on; those in flight return at once. Any thread.
  void interrupt();

  [[nodiscard]] Traffic traffic() const { return {sent_.load(), received_.load()}; }

 private:
  using Buffer = std::unique_ptr<gloo::transport::Buffer>;
  struct FreeStage {
    void operator()(std::byte* bytes) const;
  };
  struct Peer {
    gloo::transport::Pair* pair = nullptr;  ///< null: not connected with it
    base::FileHandle socket;                ///< another handle of the pair's socket
    std::unique_ptr<std::byte, FreeStage> stage;
    std::array<Buffer, 2> in;   ///< by lane
    std::array<Buffer, 2> out;  ///< by lane
  };

  void connect_peer(int rank, std::string_view address);
  void greet(int rank, std::string_view token);
  void check_greeting(int rank);
  void wait_for(int rank, short event);
  [[nodiscard]] int slot(Lane lane, int from, int to) const { return 2 * static_cast<int>(lane) + (from < to ? 0 : 1); }

  const int rank_;
  const int size_;
  const GroupOptions options_;
  bool crowded_ = false;
  std::string token_;  ///< proof of membership: only members of the group know this address's token
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<int> neighbours_;  ///< ranks with a connection
  std::vector<Peer> peers_;      ///< by rank
  Clock::time_point until_;
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  std::atomic<bool> interrupted_{false};
  std::mutex sockets_;  ///< guards Peer::socket against `interrupt` while connecting
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};
};

}  // namespace lockstep::collective::gloo_engine
