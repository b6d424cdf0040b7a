#include "ps/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/error.h"
#include "transport/copy.h"

namespace lockstep::ps {
namespace {

constexpr int32_t kMostMembers = 4096;
constexpr uint64_t kMostParameters = uint64_t{1} << 40;
constexpr size_t kLargeBytes = 512 << 10;  ///< of a frame: then it is part of what no cache holds

}  // namespace

Element parse_element(const std::string& text) {
  if (text == "bf16") return Element::kBfloat16;
  return text == "f16" ? Element::kFloat16 : Element::kFloat32;
}

transport::Header header(Kind kind) {
  transport::Header header;
  header.kind = static_cast<uint16_t>(kind);
  return header;
}

namespace {

/// Bytes of a frame's elements; checked against its payload.
size_t element_bytes(const transport::Frame& frame) {
  const transport::Header& header = frame.header;
  if (header.count == 0) return 0;
  if (header.element < static_cast<uint32_t>(Element::kFloat32) ||
      header.element > static_cast<uint32_t>(Element::kFloat16)) {
    throw DataError(fmt::format("elements of unknown type {}", header.element));
  }
  const size_t each = transport::bytes_of(static_cast<Element>(header.element));
  if (header.count > frame.payload_size() / each) {
    throw DataError(fmt::format("{} elements in a frame of {} bytes", header.count, frame.payload_size()));
  }
  return header.count * each;
}

/// Bytes [begin, begin + to.size()) of the payload.
void copy_part(const transport::Frame& frame, size_t begin, std::span<std::byte> to) {
  const bool large = to.size() >= kLargeBytes;
  for (std::span<const std::byte> piece : frame.pieces()) {
    if (begin >= piece.size()) {
      begin -= piece.size();
      continue;
    }
    const size_t count = std::min(piece.size() - begin, to.size());
    if (large) {
      transport::copy_past_caches(piece.subspan(begin, count), to.first(count));
    } else {
      std::memcpy(to.data(), piece.data() + begin, count);
    }
    to = to.subspan(count);
    begin = 0;
    if (to.empty()) return;
  }
}

}  // namespace

void check_elements(const transport::Frame& frame) { element_bytes(frame); }

std::string message_of(const transport::Frame& frame) {
  const size_t begin = element_bytes(frame);
  std::string text(frame.payload_size() - begin, '\0');
  copy_part(frame, begin, std::as_writable_bytes(std::span(text)));
  return text;
}

base::Result<bool> send_text(transport::Stream& stream, const transport::Header& header, const std::string& text) {
  const auto kept = std::make_shared<const std::string>(text);
  return stream.write(header, std::as_bytes(std::span(*kept)), kept);
}

base::Result<bool> send(transport::Stream& stream, const transport::Header& header,
                        const google::protobuf::MessageLite& message) {
  return send_text(stream, header, message.SerializeAsString());
}

base::Result<bool> send_elements(transport::Stream& stream, transport::Header header, std::span<const float> values,
                                 Element element, const std::shared_ptr<const void>& hold,
                                 const google::protobuf::MessageLite* last) {
  struct Kept {
    std::shared_ptr<const void> hold;
    std::string message;
    std::vector<std::byte> packed;
  };
  header.element = static_cast<uint32_t>(element);
  size_t done = 0;
  do {
    const std::span<const float> slice = values.subspan(done, std::min(kSliceElements, values.size() - done));
    done += slice.size();
    const auto kept = std::make_shared<Kept>();
    kept->hold = hold;
    std::array<std::span<const std::byte>, 2> pieces{std::as_bytes(slice), {}};
    if (element != Element::kFloat32) {
      kept->packed.resize(slice.size() * transport::bytes_of(element));
      transport::pack(element, slice, kept->packed);
      pieces[0] = kept->packed;
    }
    header.count = slice.size();
    if (done == values.size() && last != nullptr) {
      header.flags |= kLast;
      kept->message = last->SerializeAsString();
      pieces[1] = std::as_bytes(std::span(kept->message));
    }
    base::Result<bool> sent = stream.write(header, pieces, kept);
    if (!sent) return sent;
    header.offset += slice.size();
  } while (done < values.size());
  return true;
}

size_t take_elements(const transport::Frame& frame, std::span<float> to) {
  const size_t bytes = element_bytes(frame);
  const transport::Header& header = frame.header;
  if (header.offset > to.size() || header.count > to.size() - header.offset) {
    throw DataError(fmt::format("elements {}+{} of {}", header.offset, header.count, to.size()));
  }
  const std::span<float> place = to.subspan(header.offset, header.count);
  if (place.empty()) return 0;
  const auto element = static_cast<Element>(header.element);
  if (element == Element::kFloat32) {
    copy_part(frame, 0, std::as_writable_bytes(place));
    return place.size();
  }
  std::vector<std::byte> packed(bytes);
  copy_part(frame, 0, packed);
  transport::unpack(element, packed, place);
  return place.size();
}

void to_wire(const data::PassPart& part, wire::PassPart& to) {
  to.set_pass(part.pass);
  for (const base::Range& range : part.ranges) {
    to.add_bounds(range.begin);
    to.add_bounds(range.end);
  }
}

void to_wire(const data::Remainder& data, wire::Remainder& to) {
  for (const data::PassPart& part : data.parts) to_wire(part, *to.add_parts());
  to.set_next_pass(data.next_pass);
}

void to_wire(const data::Plan& plan, wire::Plan& to) {
  to.set_id(plan.id);
  to_wire(plan.data, *to.mutable_data());
  to.set_index(plan.shard.index);
  to.set_count(plan.shard.count);
  to.set_batch(plan.batch);
  to.set_examples(plan.examples);
  to.set_rounds_done(plan.rounds_done);
}

void to_wire(const Decision& commit, wire::Commit& to) {
  to.set_version(commit.version);
  to.set_mean_scale(commit.mean_scale);
  for (const Contributor& contributor : commit.contributors) {
    wire::Contributor& added = *to.add_contributors();
    added.set_member(contributor.member);
    added.set_incarnation(contributor.incarnation);
    added.set_sequence(contributor.sequence);
    added.set_weight(contributor.weight);
  }
}

data::PassPart from_wire(const wire::PassPart& part) {
  data::PassPart made{part.pass(), {}};
  if (part.pass() < 0 || part.bounds_size() % 2 != 0) throw DataError("a part of a pass without an end");
  int64_t last = -1;
  for (int i = 0; i < part.bounds_size(); i += 2) {
    const base::Range range{part.bounds(i), part.bounds(i + 1)};
    if (range.begin <= last || range.end <= range.begin) {
      throw DataError(fmt::format("positions {} to {} of a pass after {}", range.begin, range.end, last));
    }
    last = range.end;
    made.ranges.push_back(range);
  }
  return made;
}

data::Remainder from_wire(const wire::Remainder& data) {
  data::Remainder made;
  made.next_pass = data.next_pass();
  if (data.next_pass() < 0) throw DataError(fmt::format("pass {} of the data", data.next_pass()));
  int64_t last = -1;
  for (const wire::PassPart& part : data.parts()) {
    made.parts.push_back(from_wire(part));
    if (part.pass() <= last || part.pass() >= data.next_pass()) {
      throw DataError(fmt::format("part of pass {} after {}, before {}", part.pass(), last, data.next_pass()));
    }
    last = part.pass();
  }
  return made;
}

data::Plan from_wire(const wire::Plan& plan) {
  if (plan.count() < 1 || plan.index() < 0 || plan.index() >= plan.count() || plan.batch() < 1 || plan.examples() < 1 ||
      plan.rounds_done() < 0) {
    throw DataError(fmt::format("a data plan for member {} of {}, batch {}, {} examples", plan.index(), plan.count(),
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

Decision from_wire(const wire::Commit& commit) {
  Decision made{commit.version(), {}, commit.mean_scale()};
  for (const wire::Contributor& c : commit.contributors()) {
    if (c.member() < 0 || c.member() >= kMostMembers) throw DataError(fmt::format("contributor {}", c.member()));
    made.contributors.push_back({c.member(), c.incarnation(), c.sequence(), c.weight()});
  }
  return made;
}

void to_wire(const Rules& rules, wire::Optimizer& to) {
  const optim::OptimizerSettings& o = rules.optimizer;
  to.set_method(static_cast<uint32_t>(o.method));
  to.set_momentum(o.momentum);
  to.set_nesterov(o.nesterov);
  to.set_beta1(o.beta1);
  to.set_beta2(o.beta2);
  to.set_epsilon(o.epsilon);
  to.set_weight_decay(o.weight_decay);
  const optim::Schedule& s = rules.schedule;
  to.set_schedule(static_cast<uint32_t>(s.kind));
  to.set_rate(s.base);
  to.set_rate_end(s.end);
  to.set_decay_rate(s.decay_rate);
  to.set_power(s.power);
  to.set_decay_steps(s.decay_steps);
  to.set_warmup_steps(s.warmup_steps);
  to.set_clip_norm(rules.clip_norm);
}

Rules from_wire(const wire::Optimizer& from) {
  if (from.method() >= optim::method_names().size()) throw DataError(fmt::format("optimizer {}", from.method()));
  if (from.schedule() >= optim::schedule_names().size()) throw DataError(fmt::format("schedule {}", from.schedule()));
  Rules rules;
  rules.optimizer = {static_cast<optim::Method>(from.method()),
                     from.momentum(),
                     from.nesterov(),
                     from.beta1(),
                     from.beta2(),
                     from.epsilon(),
                     from.weight_decay()};
  rules.schedule.kind = static_cast<optim::Schedule::Kind>(from.schedule());
  rules.schedule.base = from.rate();
  rules.schedule.end = from.rate_end();
  rules.schedule.decay_rate = from.decay_rate();
  rules.schedule.power = from.power();
  rules.schedule.decay_steps = from.decay_steps();
  rules.schedule.warmup_steps = from.warmup_steps();
  rules.clip_norm = from.clip_norm();
  return rules;
}

void to_wire(const CoordinatorOptions& options, wire::JobConfig& to) {
  to.set_members(options.members);
  to.set_servers(options.servers);
  to.set_sync(options.sync);
  to.set_max_staleness(options.max_staleness);
  to.set_aggregate(options.aggregate);
  to.set_mean(options.mean);
  to.set_mean_loss(options.mean_loss);
  to.set_batch(options.batch);
  to.set_accumulate(options.accumulate);
  to.set_examples(options.examples);
  to.set_passes(options.passes);
  to.set_sharded(options.sharded);
  to.set_limit_steps(options.limit_steps);
  to.set_start_wait(options.start_wait);
}

CoordinatorOptions coordinator_options(const wire::JobConfig& job) {
  CoordinatorOptions options;
  options.members = job.members();
  options.servers = job.servers();
  options.sync = job.sync();
  options.max_staleness = job.max_staleness();
  options.aggregate = job.aggregate();
  options.mean = job.mean();
  options.mean_loss = job.mean_loss();
  options.batch = job.batch();
  options.accumulate = job.accumulate();
  options.examples = job.examples();
  options.passes = job.passes();
  options.sharded = job.sharded();
  options.limit_steps = job.limit_steps();
  options.start_wait = job.start_wait();
  return options;
}

std::vector<graph::ParameterRange> ranges_of(const google::protobuf::RepeatedPtrField<wire::Range>& ranges) {
  std::vector<graph::ParameterRange> made;
  for (const wire::Range& range : ranges) made.push_back({range.offset(), range.count()});
  return made;
}

void check(const wire::JobConfig& job) {
  const auto need = [](bool fine, const std::string& what) {
    if (!fine) throw DataError("job: " + what);
  };
  need(job.members() >= 1 && job.members() <= kMostMembers, fmt::format("{} members", job.members()));
  need(job.servers() >= 1 && job.servers() <= kMostMembers, fmt::format("{} servers", job.servers()));
  need(job.batch() >= 1 && job.accumulate() >= 1 && job.examples() >= 1,
       fmt::format("batch {}, accumulate {}, {} examples", job.batch(), job.accumulate(), job.examples()));
  need(job.batch() <= INT64_C(1) << 40 && job.accumulate() <= INT64_C(1) << 20 && job.examples() < INT64_C(1) << 40,
       "batch or examples out of range");
  need(job.parameters() <= kMostParameters, fmt::format("{} parameters", job.parameters()));
  need(job.max_staleness() >= -1 && job.aggregate() >= 0 && job.aggregate() <= INT64_C(1) << 20 && job.passes() >= 0,
       "staleness, aggregate or passes out of range");
  need(job.wire() >= static_cast<uint32_t>(Element::kFloat32) && job.wire() <= static_cast<uint32_t>(Element::kFloat16),
       fmt::format("elements of type {}", job.wire()));
  uint64_t next = 0;
  for (const wire::Range& range : job.ranges()) {
    const bool fits = range.offset() >= next && range.count() > 0 && range.count() <= job.parameters() &&
                      range.offset() <= job.parameters() - range.count();
    need(fits, fmt::format("parameters {}+{} after {} of {}", range.offset(), range.count(), next, job.parameters()));
    next = range.offset() + range.count();
  }
  optim::check(from_wire(job.optimizer()).optimizer);
}

}  // namespace lockstep::ps
