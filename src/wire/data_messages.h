// What is left of the data as messages and back. What comes from the network is checked: from_wire answers what makes
// no sense with a DataError. Free functions; any thread.
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
