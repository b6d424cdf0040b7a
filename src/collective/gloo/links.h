// The connections of one group over Gloo's TCP transport, one pair of each two members. Internal.
//
// Gloo's usual way of waiting wakes its event thread, which wakes the caller, and first asks the receiver whether it is
// ready: three messages and six sleeping threads for one exchange. Here its pairs are in their synchronous mode, in
// which the caller's thread itself writes to and reads from the socket, and messages go to buffers that the receiver
// has prepared. Gloo can neither bound nor interrupt such a read, so each link has one more handle of the pair's
// socket: waits for a message are polls of it, and `interrupt` shuts it down, which ends whatever Gloo does with it at
// once.
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

namespace lockstep::collective::gloo_engine {

using Clock = std::chrono::steady_clock;

class LinkError : public Error {
 public:
  explicit LinkError(base::Failure failure) : Error(failure.message()), failure_(std::move(failure)) {}

  [[nodiscard]] const base::Failure& failure() const { return failure_; }

 private:
  base::Failure failure_;
};

/// The largest message, and that of which four may be unread. Nobody reads while he writes, so what is on its way
/// between two members must find room in a socket's send buffer: Linux gives 416 kB unless told otherwise.
constexpr size_t kPiece = 128 * 1024;
constexpr size_t kQuarter = 80 * 1024;
constexpr size_t kRoom = 400'000;

/// Where a message goes at its receiver.
enum class Lane : uint8_t { stage, place };

class Links {
 public:
  Links(const std::string& host, int rank, int size, const GroupOptions& options);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Whether members share cores: some of them share a machine, and some were told not to spin.
  [[nodiscard]] bool crowded() const { return crowded_; }
  [[nodiscard]] Seconds deadline() const { return options_.deadline; }
  [[nodiscard]] std::string address() const;
  void connect(const std::vector<std::string>& addresses);

  /// The time by which what follows has to end.
  void set_deadline(Clock::time_point until) { until_ = until; }

  /// What is sent lies within `out`, what comes by the lane `place` goes to `in`; both stay until `unbind`.
  void bind(std::span<const std::byte> out, std::span<std::byte> in);
  void unbind();
  /// Sends out[offset, offset + length) to the same place in the peer's `in`, or to the beginning of its stage.
  void send(int peer, Lane lane, size_t offset, size_t length);
  /// The next message of a peer, `length` bytes long.
  void receive(int peer, Lane lane, size_t length);
  /// Where messages of a peer by the lane `stage` lie: kPiece bytes, aligned.
  [[nodiscard]] std::byte* stage(int peer) { return peers_[static_cast<size_t>(peer)].stage.get(); }

  /// Everything fails from now on; calls under way return at once. Any thread.
  void interrupt();

  [[nodiscard]] Traffic traffic() const { return {sent_.load(), received_.load()}; }

 private:
  using Buffer = std::unique_ptr<gloo::transport::Buffer>;
  struct FreeStage {
    void operator()(std::byte* bytes) const;
  };
  struct Peer {
    gloo::transport::Pair* pair = nullptr;
    base::FileHandle socket;  ///< the pair's, once more
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
  std::string token_;  ///< who greets with it has this member's address from the group's membership
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<Peer> peers_;
  Clock::time_point until_;
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  std::atomic<bool> interrupted_{false};
  std::mutex sockets_;  ///< guards Peer::socket against `interrupt` while connecting
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};
};

}  // namespace lockstep::collective::gloo_engine
