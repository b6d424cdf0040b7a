// A fixed group of members that act together: each calls the same operations with the same sizes in the same order, and
// everyone ends up with the same bits. The group never changes; when a member is lost, a new group is made. One thread
// of each member calls at a time, except `abort`, which any thread may call. Every operation has a deadline and fails
// with a line that says what was awaited, and from whom where the engine knows; after a failure the group is of no more
// use, and the memory of the call that failed holds anything.
//
//   in_process.h   thread groups of one process
//   gloo/          processes that reach each other over TCP
//   mpi/           ranks of an MPI job
//   throttled.h    another engine as if on a slower network, for benchmarks and tests
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

/// What is summed. Halves are added as floats and rounded once per addition, to nearest even.
enum class Element : uint8_t { float32, bfloat16, float16 };
constexpr size_t bytes_of(Element element) { return element == Element::float32 ? 4 : 2; }

/// What the engine has moved for this member so far, as bytes of payload.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct GroupOptions {
  Seconds deadline{600};  ///< of each operation, and of connecting
  /// How long a wait polls before it sleeps; 0: threads do not have a core each, so it sleeps at once.
  std::chrono::microseconds spin{0};
  /// Counts the payloads that go to and come from other processes; borrowed, outlives the group.
  base::TrafficMeter* meter = nullptr;
};

class Collective {
 public:
  virtual ~Collective() = default;

  [[nodiscard]] virtual std::string_view engine() const = 0;  ///< "gloo"
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Adds up `count` elements of all members, in place. The order of additions depends on count, size and rank alone.
  virtual base::Status all_reduce(void* data, size_t count, Element element) = 0;
  base::Status all_reduce(std::span<float> data) { return all_reduce(data.data(), data.size(), Element::float32); }
  /// Everyone gets the bytes of `root`.
  virtual base::Status broadcast(std::span<std::byte> data, int root) = 0;
  /// Everyone gets everyone's block, in the order of ranks; `all` is size() times as long as `mine`.
  virtual base::Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Returns when everyone has called it.
  virtual base::Status barrier() = 0;

  /// Operations under way and all later ones fail with this reason, as soon as the engine can.
  virtual void abort(const std::string& why) = 0;
  [[nodiscard]] virtual Traffic traffic() const = 0;
};

/// One member's half of a group that is being made over addresses. Made before anyone else's address is known; to be
/// used once.
class Joining {
 public:
  virtual ~Joining() = default;

  /// What the others need to reach this member: bytes that only the engine understands.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Connects with all; `addresses` are everyone's, in the order of ranks. Fails after the deadline of the options or
  /// soon after `give_up`, which is asked some ten times a second, says so.
  virtual base::Result<std::unique_ptr<Collective>> connect(const std::vector<std::string>& addresses,
                                                            const std::function<bool()>& give_up) = 0;
};

}  // namespace lockstep::collective
