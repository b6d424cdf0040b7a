// What a Job (job.h) and the server around it tell each other. Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"
#include "ps/coordinator.h"

namespace lockstep::ps {

constexpr size_t kMostLedgerBytes = size_t{1} << 20;  ///< largest ledger of a version, whose data may be in many pieces

/// The number of a data stream.
using SessionId = uint64_t;

struct JobOptions {
  int index = 0;                     ///< index i of ps:i
  std::vector<std::string> members;  ///< their names for lines: "worker:1 at ADDRESS"
  std::vector<std::string> servers;  ///< "ps:1 at ADDRESS"
  bool evaluator = false;            ///< the cluster has one
  double patience = 600;
  bool record = false;  ///< record the parts of each version
};

/// What a data stream waits for.
enum class Wait : uint8_t {
  nothing,
  parameters,  ///< the first ones
  decision,    ///< its push is in a version, or will be in none
  slower,      ///< bounded staleness: the slowest members
  joining,     ///< to take part
  version,     ///< this version or a newer one
  snapshot,    ///< the same, and several servers: no counted update is still being applied
  news,        ///< the evaluator: a snapshot, or the end
  end          ///< all have finished, or there is work left
};
struct Waiting {
  Wait what = Wait::nothing;
  uint64_t version = 0;
};

/// The next version, and the pushes that are here.
struct Update {
  Decision decision;
  uint64_t generation = 0;
  struct Part {
    Contributor from;
    std::shared_ptr<std::vector<float>> values;
    float scale = 1;
  };
  std::vector<Part> parts;           ///< in the order of summation
  std::vector<Contributor> missing;  ///< lost ones
};

/// Lock-free: a counted update that its stream applies.
struct Booked {
  std::shared_ptr<std::vector<float>> values;
  optim::Update how;
};

/// State of the job that answers tell: that of the latest stored version.
struct Told {
  uint64_t version = 0;
  exchange::BatchReport latest;
  uint64_t examples = 0;
};

/// A snapshot that the evaluator has not had yet.
struct Kept {
  uint64_t id = 0;  ///< ps:0's version, the id shared by all servers' parts
  std::shared_ptr<const std::vector<float>> parameters;
};

/// What is to be done for a Job, in this order.
struct Orders {
  struct Line {
    const char* level = "";
    std::string text;
  };
  std::vector<Line> lines;                                 ///< for the log
  std::vector<Decision> announced;                         ///< to tell the other servers
  std::vector<std::pair<int, PushName>> received;          ///< to tell ps:0: whole pushes, by member
  std::vector<std::pair<SessionId, std::string>> dropped;  ///< data streams to cancel, and why
  std::optional<std::string> drop_ps0;                     ///< cancel the connection to ps:0
  std::optional<std::string> end;                          ///< the server ends, with this error unless it is empty
  bool changed = false;                                    ///< waits may be over
};

}  // namespace lockstep::ps
