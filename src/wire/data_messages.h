// Converts the data that is left to messages and back. from_wire checks messages from the network and throws DataError
// for invalid ones. Free functions; any thread.
#pragma once

#include "cluster.pb.h"
#include "data/plan.h"

namespace lockstep::wire {

void to_wire(const data::PassPart& part, PassPart& to);
void to_wire(const data::Remainder& data, Remainder& to);
void to_wire(const data::Plan& plan, Plan& to);
data::PassPart from_wire(const PassPart& part);
data::Remainder from_wire(const Remainder& data);
data::Plan from_wire(const Plan& plan);

}  // namespace lockstep::wire
