// The answer of a process that refuses another: a kind for programs, in the header's field `extra`, and a text for
// people, which is the payload. Both keep their place in every version of the protocols: a peer of another version is
// told why it is refused. Free functions; any thread.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/result.h"
#include "lockstep/error.h"
#include "transport/stream.h"

namespace lockstep::wire {

/// The numbers stand in messages: a new kind gets the next one.
enum class RefusalKind : uint32_t {
  other,
  protocol,  ///< the peer speaks another version
  identity,  ///< the peer's certificate does not name the role that it claims
  job,       ///< model, data or settings differ
  role,      ///< the peer's role does not exist here, or may not connect here
  taken,     ///< another living process has the role
  state,     ///< the peer's parameters do not fit those here
  message,   ///< the peer sent something that makes no sense or that it may not ask
  failed     ///< the side that refuses cannot go on, for a reason of its own; its next process may accept
};

/// A peer is refused for this reason.
class RefusedError : public DataError {
 public:
  RefusedError(RefusalKind kind, const std::string& text) : DataError(text), kind_(kind) {}
  [[nodiscard]] RefusalKind kind() const { return kind_; }

 private:
  RefusalKind kind_;
};

struct RefusalReason {
  RefusalKind kind = RefusalKind::other;
  std::string text;
};

/// Returns the refusal that an error of this side or of the peer leads to.
RefusalReason refusal_for(const std::exception& error);
/// Sends a refusal. `header`: of the protocol's kind of frame for it.
base::Status send_refusal(transport::Stream& stream, transport::Header header, const RefusalReason& refusal);
/// Reads a refusal; a number that this version does not know is `other`.
RefusalReason read_refusal(const transport::Frame& frame);

}  // namespace lockstep::wire
