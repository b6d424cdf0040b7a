// A training as the model sees it: machines and links, the work of a step, the costs of messages, and the rules of the
// exchange. All times are seconds, sizes bytes, rates bytes per second. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "schedule/placement.h"
#include "schedule/range.h"

namespace lockstep::predict {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The link of a node, used both ways at once. Its two directions are queues: messages of one direction take turns by
/// chunks, which divides the rate evenly among them.
struct Link {
  double rate = kUnlimited;
  double latency = 30e-6;   ///< one way, from this node to the middle of the network
  double burst = 0;         ///< bytes that pass at once after a pause: the token bucket of an emulated node
  double overhead = 1.045;  ///< bytes on the link per payload byte: headers of Ethernet, IP and TCP
};

/// Period of the quotas of emulated nodes and of --cpu-quota, for nodes of that many cores: a smaller quota than a
/// millisecond per period would not be kept by the kernel, so small nodes have longer periods (src/emulate).
double quota_period(double cores);
/// Returns what a process uses of a quota beside the training: it watches itself and its peers all the time.
double kept_of_quota(double cores);

struct Node {
  std::string name = {};
  double cores = 1;
  /// 0: processors. Otherwise `cores` is a quota of CPU time per period of this length: full speed, then a pause.
  double quota_period = 0;
  double speed = 1;   ///< speed of a core, relative to the one that the work was measured on
  double others = 0;  ///< cores that other programs would use if they had them all
  double kept = 0;    ///< with a quota: cores of it that the node's processes use beside the training
  Link link = {};
};

/// What a worker does in a step without the exchange. Times on a free machine of speed 1.
struct Work {
  double load = 0;  ///< making a batch, on a thread of its own, two batches ahead
  double forward = 0;
  double backward = 0;
  double optimizer = 0;  ///< updating all parameters in the worker
  double rest = 0;
  double pause = 0;    ///< mean time per step in which the process does not run at all: it was stopped
  double spread = 0;   ///< standard deviation of the logarithm of computing times
  double threads = 1;  ///< cores in use while computing
};

struct Worker {
  size_t node = 0;
  Work work = {};
  double cost = 1;      ///< of its work on messages, relative to the costs below
  double exchange = 0;  ///< CPU time of an exchange that does not depend on its messages
};

struct Server {
  size_t node = 0;
  double cost = 1;  ///< of its work, relative to the costs below
};

/// Costs of the exchange in CPU time of one core, at each end of a message.
struct Costs {
  double message = 40e-6;
  double byte = 0.25e-9;
  double wake = 25e-6;   ///< delay until a waiting thread runs; not CPU time
  double add = 0.12e-9;  ///< adding a byte of a gradient to another
  double update = 30e-6;
  double update_byte = 0.25e-9;  ///< applying the optimizer to a byte of parameters in a server
};

/// A parameter tensor in the order of the parameter buffer.
struct Tensor {
  size_t count = 0;      ///< elements
  double announced = 1;  ///< share of the backward pass after which its gradient is final
};

enum class Strategy : uint8_t { local, servers, all_reduce };

struct Training {
  Strategy strategy = Strategy::local;
  bool sync = true;
  int aggregate = 0;       ///< sync: gradients of an update; 0: all workers'
  int max_staleness = -1;  ///< async: iterations by which a worker may be ahead of the slowest; -1: no limit
  double batch = 1;        ///< examples of a worker's step
  std::vector<Tensor> tensors = {};
  double element_bytes = 4;  ///< on the wire
  size_t push_bucket = size_t{1} << 20;
  size_t all_reduce_bucket = size_t{25} << 20;
  schedule::Placement placement = schedule::Placement::balanced;
  std::vector<Node> nodes = {};
  double machine_cores = 0;  ///< all nodes are emulated on one machine of so many cores; 0: each has its own
  std::vector<Worker> workers = {};
  std::vector<Server> servers = {};
  Costs costs = {};
  double evaluation = 0;  ///< seconds per step of the chief, which others do not share
  double checkpoint = 0;  ///< likewise
  uint64_t seed = 1;

  [[nodiscard]] size_t elements() const {
    size_t sum = 0;
    for (const Tensor& tensor : tensors) sum += tensor.count;
    return sum;
  }
};

/// Returns tensors for a model of which only the size is known: equal parts, whose gradients are final one after the
/// other.
std::vector<Tensor> even_tensors(size_t elements, size_t parts = 8);

/// Throws UsageError for a training that cannot be: no workers, a rate or a number of cores of 0, a node that is not
/// there.
void check(const Training& training);

}  // namespace lockstep::predict
