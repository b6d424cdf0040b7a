// The frames between members, and what they say as protocol buffers and back. What comes from the network is checked
// here: what makes no sense is a DataError, and what is given out names only members that there are. Free functions;
// any thread.
#pragma once

#include <string>

#include "allreduce.pb.h"
#include "allreduce/elastic/agreement.h"
#include "transport/stream.h"

namespace lockstep::allreduce::elastic {

constexpr uint32_t kProtocol = 1;

/// Kinds of frames; none is one of a parameter server's. The first of a stream is a wire::Hello.
enum class Kind : uint16_t {
  hello = 64,  ///< Hello: another member, for good
  ask_run,     ///< Hello: what the run is called; answered by Welcome
  visit,       ///< Hello: the evaluator
  welcome,     ///< Hello of who is there; Welcome for ask_run
  refuse,      ///< text: why; the stream ends
  status,      ///< MemberStatus: at each change, and as a heartbeat
  proposal,    ///< Proposal
  acceptance,  ///< Acceptance
  refusal,     ///< Refusal
  decision,    ///< Decision
  follow,      ///< the evaluator: parameters newer than of step `version`; answered by one of these, ok: none yet
  parameters,  ///< elements at `offset`; flag kLast with the last; `version` is the step, `extra` how many there are
  elsewhere,   ///< not here: `extra` is the member that leads, plus one; 0: it is not known
  ended,       ///< training has ended, and there is nothing newer
  stop,        ///< the evaluator met a goal: `extra` is the reason; answered by ok
  ok,
};

transport::Header header(Kind kind);
inline Kind kind_of(const transport::Frame& frame) { return static_cast<Kind>(frame.header.kind); }

Kind kind_of(const Message& message);
std::string encode(const Message& message);
/// Of a group among `members`.
Message decode(Kind kind, const std::string& bytes, int members);

}  // namespace lockstep::allreduce::elastic
