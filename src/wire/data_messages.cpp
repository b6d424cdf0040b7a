#include "wire/data_messages.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::wire {

void to_wire(const data::PassPart& part, PassPart& to) {
  to.set_pass(part.pass);
  for (const base::Range& range : part.ranges) {
    to.add_bounds(range.begin);
    to.add_bounds(range.end);
  }
}

void to_wire(const data::Remainder& data, Remainder& to) {
  for (const data::PassPart& part : data.parts) to_wire(part, *to.add_parts());
  to.set_next_pass(data.next_pass);
}

void to_wire(const data::Plan& plan, Plan& to) {
  to.set_id(plan.id);
  to_wire(plan.data, *to.mutable_data());
  to.set_index(plan.shard.index);
  to.set_count(plan.shard.count);
  to.set_batch(plan.batch);
  to.set_examples(plan.examples);
  to.set_rounds_done(plan.rounds_done);
}

data::PassPart from_wire(const PassPart& part) {
  data::PassPart made{part.pass(), {}};
  if (part.pass() < 0 || part.bounds_size() % 2 != 0)
    throw DataError("part of a pass: a range has no end, or the pass is negative");
  int64_t last = -1;
  for (int i = 0; i < part.bounds_size(); i += 2) {
    const base::Range range{part.bounds(i), part.bounds(i + 1)};
    if (range.begin <= last || range.end <= range.begin) {
      throw DataError(fmt::format("part of a pass: positions {} to {} come after {}", range.begin, range.end, last));
    }
    last = range.end;
    made.ranges.push_back(range);
  }
  return made;
}

data::Remainder from_wire(const Remainder& data) {
  data::Remainder made;
  made.next_pass = data.next_pass();
  if (data.next_pass() < 0)
    throw DataError(fmt::format("next pass of the data is {}; 0 or more is allowed", data.next_pass()));
  int64_t last = -1;
  for (const PassPart& part : data.parts()) {
    made.parts.push_back(from_wire(part));
    if (part.pass() <= last || part.pass() >= data.next_pass()) {
      throw DataError(fmt::format("part of pass {} is out of order: after pass {}, before pass {}", part.pass(), last,
                                  data.next_pass()));
    }
    last = part.pass();
  }
  return made;
}

data::Plan from_wire(const Plan& plan) {
  if (plan.count() < 1 || plan.index() < 0 || plan.index() >= plan.count() || plan.batch() < 1 || plan.examples() < 1 ||
      plan.rounds_done() < 0) {
    throw DataError(fmt::format("invalid data plan: member {} of {}, batch {}, {} examples", plan.index(), plan.count(),
                                plan.batch(), plan.examples()));
  }
  data::Plan made;
  made.id = plan.id();
  made.data = from_wire(plan.data());
  made.shard = {plan.index(), plan.count()};
  made.batch = plan.batch();
  made.examples = plan.examples();
  made.rounds_done = plan.rounds_done();
  return made;
}

}  // namespace lockstep::wire
