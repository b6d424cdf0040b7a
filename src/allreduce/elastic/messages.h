// Frames between members: their messages as protocol buffers and back. Messages from the network are checked here:
// invalid ones are a DataError, and decoded ones name only existing members. Free functions; any thread.
#pragma once

#include <string>

#include "allreduce.pb.h"
#include "allreduce/elastic/agreement.h"
#include "transport/stream.h"

namespace lockstep::allreduce::elastic {

constexpr uint32_t kProtocol = 2;

/// Kinds of frames, distinct from a parameter server's. The first frame of a stream has a wire::Hello.
enum class Kind : uint16_t {
  hello = 64,  ///< Hello: another member, for a lasting connection
  ask_run,     ///< Hello: asks for the run's name; answered by Welcome
  visit,       ///< Hello: the evaluator
  welcome,     ///< Hello of the answering member; Welcome for ask_run
  refuse,      ///< a refusal (wire/refusal.h); the stream ends
  status,      ///< MemberStatus: at each change, and as a heartbeat
  proposal,    ///< Proposal
  acceptance,  ///< Acceptance
  refusal,     ///< Refusal
  decision,    ///< Decision
  follow,      ///< the evaluator asks for parameters newer than step `version`; answered by one of these, ok: none yet
  parameters,  ///< elements at `offset`; flag kLast with the last; `version`: step, `extra`: total number
  elsewhere,   ///< another member leads: `extra` is its number plus one; 0: unknown
  ended,       ///< training has ended, with nothing newer
  stop,        ///< the evaluator met a goal: `extra` is the reason; answered by ok
  ok,
  // Between neighbours in a large cluster (relay.h):
  sightings,   ///< Sightings
  departures,  ///< Departures
  parcel,      ///< Parcel
  leaving,     ///< Leaving
  beat,        ///< a heartbeat, without a message
};

transport::Header header(Kind kind);
inline Kind kind_of(const transport::Frame& frame) { return static_cast<Kind>(frame.header.kind); }

Kind kind_of(const Message& message);
std::string encode(const Message& message);
/// Decodes a message about a group among `members`.
Message decode(Kind kind, const std::string& bytes, int members);

}  // namespace lockstep::allreduce::elastic
