// The frames between workers and servers, and the conversion of plain values to protocol buffers and back. Values from
// the network are checked here and in wire/: `parse` and the from_wire functions throw DataError for impossible values.
// Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "cluster.pb.h"
#include "lockstep/error.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "program/program.h"
#include "ps/coordinator.h"
#include "transport/convert.h"
#include "transport/stream.h"
#include "wire/data_messages.h"
#include "wire/frames.h"
#include "wire/refusal.h"

namespace lockstep::ps {

constexpr uint32_t kProtocol = 2;
constexpr uint32_t kSameVersions = 2;  ///< since this one all servers hold the same updates, in async too

/// Kinds of frames. The payload is `count` elements, then a message of proto/cluster.proto where the kind has one.
enum class Kind : uint16_t {
  hello = 1,     ///< Hello: the first frame of a stream; flag kControl: the stream is for heartbeats and orders
  welcome,       ///< Welcome
  refuse,        ///< a refusal (wire/refusal.h); the stream ends
  heartbeat,     ///< control, both ways
  notice,        ///< control: Notice
  received,      ///< control: Received, from another server
  commit,        ///< control: Commit, to the other servers
  init_begin,    ///< JobConfig
  init,          ///< elements of the parameters (extra 0) or of slot extra - 1, at `offset` in the shard
  init_end,      ///< Ledger, for the coordinator; version; answered by ok
  join,          ///< asks to join; answered by parameters
  pull,          ///< asks for parameters of `version` or newer; answered by parameters
  push,          ///< elements of a gradient at `offset` in the shard; flag kLast: with PushEnd
  parameters,    ///< elements at `offset` in the shard; flag kLast: with Reply
  leave,         ///< Leave; answered by ok at once, or by parameters if work is left
  wait_end,      ///< answered by snapshot_end (Snapshot) when all have finished, or by parameters if work is left
  hold,          ///< ps:0 makes no version until release; answered by snapshot_end
  snapshot,      ///< asks for all state of `version` or newer; answered by state frames, then snapshot_end
  release,       ///< ends a hold
  state,         ///< elements of the parameters (extra 0) or of slot extra - 1, at `offset` in the shard
  snapshot_end,  ///< Snapshot; version
  follow,        ///< the evaluator: asks for the next snapshot after `version`; flag kExact: for exactly that one
  stop,          ///< the evaluator met a rule that ends training; extra is the reason
  end,           ///< the chief has everything it needs: all may leave; answered by ok
  ok,
};
constexpr uint16_t kControl = 1;
constexpr uint16_t kExact = 1;

/// Type of elements on the wire.
using transport::Element;
Element parse_element(const std::string& text);

transport::Header header(Kind kind);
inline Kind kind_of(const transport::Frame& frame) { return static_cast<Kind>(frame.header.kind); }

using wire::check_elements;
using wire::ElementSender;
using wire::kLast;
using wire::parse;
using wire::read_refusal;
using wire::RefusalKind;
using wire::RefusalReason;
using wire::RefusedError;
using wire::send;
using wire::send_elements;
using wire::send_text;
using wire::take_elements;

/// Returns the id of the arrow from a push to its answer in a trace.
uint64_t push_flow(int member, uint64_t incarnation, uint64_t sequence, int server);
uint64_t pull_flow(int member, uint64_t incarnation, uint64_t sequence, int server);

/// Puts host, number and working folder of this process into its hello.
void introduce(wire::Hello& hello);
/// Returns what a hello says of its process, for a line: "process 12 on host in /folder at ADDRESS".
std::string process_of(const wire::Hello& hello, const std::string& address);

void to_wire(const Decision& commit, wire::Commit& to);
Decision from_wire(const wire::Commit& commit);

/// Optimizer, schedule and clipping of a job.
struct Rules {
  optim::OptimizerSettings optimizer;
  optim::Schedule schedule;
  float clip_norm = 0;
};
void to_wire(const Rules& rules, wire::Optimizer& to);
Rules from_wire(const wire::Optimizer& optimizer);

void to_wire(const CoordinatorOptions& options, wire::JobConfig& to);
CoordinatorOptions coordinator_options(const wire::JobConfig& job);
std::vector<program::ParameterRange> ranges_of(const google::protobuf::RepeatedPtrField<wire::Range>& ranges);
/// Checks numbers that sizes depend on; throws DataError that names the wrong one.
void check(const wire::JobConfig& job);
/// Checks times, because they are added up.
void check(const wire::Reply& reply);
/// Converts a number; an unknown one becomes `error`.
train::StopReason stop_reason(uint32_t number);

}  // namespace lockstep::ps
