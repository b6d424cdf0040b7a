// Messages between the processes of a simulated elastic group. Plain values, shared by all who hold one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "allreduce/elastic/agreement.h"
#include "allreduce/elastic/assembly.h"
#include "allreduce/elastic/relay.h"
#include "authority/register.h"

namespace lockstep::simulation {

struct Greeting {
  uint64_t incarnation = 0;
};
/// An answer to a greeting: no connection here.
struct Full {};
struct Beat {};
struct EngineHello {
  uint64_t group = 0;  ///< id
};
/// The engine of a large group is connected.
struct EngineReady {
  uint64_t group = 0;
};
/// A member's part of a step; from the first member of a large group, the sum of all parts.
struct StepNote {
  uint64_t group = 0;
  uint64_t state = 0;
  bool stop = false;
  bool interrupted = false;  ///< why it stops
  bool regroup = false;
};
struct StateSent {
  uint64_t group = 0;
  uint64_t state = 0;
};
struct AskRegister {
  uint64_t number = 0;
  std::optional<authority::Swap> swap;
};
struct RegisterSays {
  uint64_t number = 0;
  authority::Answer answer;
};
using ElasticMessage = std::variant<Greeting, allreduce::elastic::Message, EngineHello, StepNote, StateSent,
                                    AskRegister, RegisterSays, Full, Beat, EngineReady, allreduce::elastic::RelayFrame>;
using ElasticPacket = std::shared_ptr<const ElasticMessage>;
std::string describe(const ElasticMessage& message);

}  // namespace lockstep::simulation
