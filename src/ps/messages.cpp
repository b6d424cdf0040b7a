#include "ps/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/host.h"
#include "base/tracer.h"
#include "lockstep/error.h"

namespace lockstep::ps {
namespace {

constexpr int32_t kMostMembers = 4096;
constexpr uint64_t kMostParameters = uint64_t{1} << 40;
constexpr size_t kMostName = 200;  ///< characters of a host or folder in a line

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

uint64_t push_flow(int member, uint64_t incarnation, uint64_t sequence, int server) {
  return base::flow_number({0, static_cast<uint64_t>(member), incarnation, sequence, static_cast<uint64_t>(server)});
}

uint64_t pull_flow(int member, uint64_t incarnation, uint64_t sequence, int server) {
  return base::flow_number({1, static_cast<uint64_t>(member), incarnation, sequence, static_cast<uint64_t>(server)});
}

void introduce(wire::Hello& hello) {
  std::error_code ignored;
  hello.set_host(base::host_name());
  hello.set_pid(::getpid());
  hello.set_folder(std::filesystem::current_path(ignored).string());
}

std::string process_of(const wire::Hello& hello, const std::string& address) {
  std::string text = fmt::format("process {} on {} in {} at {}", hello.pid(), hello.host().substr(0, kMostName),
                                 hello.folder().substr(0, kMostName), address);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return text;
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
    added.set_replaced(contributor.replaced);
  }
}

Decision from_wire(const wire::Commit& commit) {
  Decision made{commit.version(), {}, commit.mean_scale()};
  for (const wire::Contributor& c : commit.contributors()) {
    if (c.member() < 0 || c.member() >= kMostMembers) throw DataError(fmt::format("contributor {}", c.member()));
    made.contributors.push_back({c.member(), c.incarnation(), c.sequence(), c.weight(), c.replaced()});
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

std::vector<program::ParameterRange> ranges_of(const google::protobuf::RepeatedPtrField<wire::Range>& ranges) {
  std::vector<program::ParameterRange> made;
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

void check(const wire::Reply& reply) {
  const double waited = reply.waited_seconds();
  if (std::isfinite(waited) && waited >= 0) return;
  throw DataError(fmt::format("a reply says that it waited {} s; 0 or more is allowed", waited));
}

train::StopReason stop_reason(uint32_t number) {
  return static_cast<train::StopReason>(std::min(number, static_cast<uint32_t>(train::StopReason::error)));
}

}  // namespace lockstep::ps
