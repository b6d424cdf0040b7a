// A fixed group of members that act together. Each calls the same operations with the same sizes in the same order, and
// all end up with the same bits. The group never changes; when a member is lost, a new group is made. One thread of
// each member calls at a time, except `abort`, which any thread may call. Every operation has a deadline. Its failure
// says what was awaited, and from whom if the engine knows. After a failure the group is unusable, and the memory of
// the failed call has undefined contents.
//
//   in_process.h   thread groups of one process
//   gloo/          processes that reach each other over TCP
//   mpi/           ranks of an MPI job
//   throttled.h    an engine slowed down to another network's speed, for benchmarks and tests
//
// To add an engine: its folder here with a source list chosen in CMake, its name among the choices of --collective and
// in cluster::choose_engine, its line in tests/conformance/collective_test.cpp. NCCL's place is nccl/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/traffic_meter.h"

namespace lockstep::collective {

using Seconds = std::chrono::duration<double>;

/// Element type of a sum. Halves are added as floats and rounded once per addition, to nearest even.
enum class Element : uint8_t { float32, bfloat16, float16 };
constexpr size_t bytes_of(Element element) { return element == Element::float32 ? 4 : 2; }

/// Payload bytes that the engine has moved for this member so far.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct GroupOptions {
  Seconds deadline{600};  ///< for each operation, and for connecting
  /// Time that a wait polls before it sleeps; 0: sleep at once, because threads do not have a core each.
  std::chrono::microseconds spin{0};
  /// Counts payloads sent to and received from other processes; borrowed, outlives the group.
  base::TrafficMeter* meter = nullptr;
};

class Collective {
 public:
  virtual ~Collective() = default;

  [[nodiscard]] virtual std::string_view engine() const = 0;  ///< "gloo"
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Sums `count` elements of all members, in place. The order of additions depends only on count, size and rank.
  virtual base::Status all_reduce(void* data, size_t count, Element element) = 0;
  base::Status all_reduce(std::span<float> data) { return all_reduce(data.data(), data.size(), Element::float32); }
  /// Sends the bytes of `root` to all members.
  virtual base::Status broadcast(std::span<std::byte> data, int root) = 0;
  /// Gathers all members' blocks, in the order of ranks; `all` is size() times as long as `mine`.
  virtual base::Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Returns when all members have called it.
  virtual base::Status barrier() = 0;

  /// Makes operations in flight and all later ones fail with this reason, as soon as the engine can.
  virtual void abort(const std::string& why) = 0;
  [[nodiscard]] virtual Traffic traffic() const = 0;
};

/// One member's half of a group that is made over addresses. Made before other addresses are known; used once.
class Joining {
 public:
  virtual ~Joining() = default;

  /// Returns what the others need to reach this member: bytes that only the engine understands.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Connects with all; `addresses` are all members', in the order of ranks. Fails after the deadline of the options,
  /// or soon after `give_up` returns true, which is asked about ten times a second.
  virtual base::Result<std::unique_ptr<Collective>> connect(const std::vector<std::string>& addresses,
                                                            const std::function<bool()>& give_up) = 0;
};

}  // namespace lockstep::collective
