#include "ps/ps_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "lockstep/error.h"
#include "optim/update_kernels.h"
#include "ps/server_part.h"

namespace lockstep::ps {
namespace {

using exchange::BatchReport;
using exchange::StepInfo;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
/// patience for the transport to release the gradients of a broken connection
constexpr std::chrono::seconds kReleaseWait{10};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

PsExchange::PsExchange(program::ParameterStore& parameters, PsOptions options)
    : parameters_(parameters),
      options_(std::move(options)),
      member_(options_.spec.member_index(options_.task)),
      incarnation_(wire::new_incarnation()),
      buckets_(options_.bucket_bytes),
      left_finish_(Clock::now()) {
  const auto servers = static_cast<int>(options_.spec.ps.size());
  const auto places = place(parameters.infos(), servers, options_.placement);
  for (int i = 0; i < servers; ++i) {
    auto part = std::make_unique<ServerPart>();
    part->index = i;
    part->ranges = places[static_cast<size_t>(i)];
    for (const program::ParameterRange& range : part->ranges) part->count += range.count;
    if (part->ranges.size() != 1) part->scattered.resize(part->count);
    ServerLinkOptions link;
    const cluster::Task server{cluster::Role::ps, i};
    link.server = server.str();
    link.address = options_.spec.address(server);
    link.hello.set_protocol(kProtocol);
    link.hello.set_role(options_.task.str());
    link.hello.set_member(member_);
    link.hello.set_incarnation(incarnation_);
    link.hello.set_job(options_.job);
    introduce(link.hello);
    link.security = options_.security;
    link.patience = options_.patience;
    link.spin = options_.spin;
    link.log = options_.log;
    link.interrupt = options_.interrupt;
    link.meter = options_.meter;
    link.look_for_ending = [this] { return look_for_ending(); };
    if (servers > 1) link.on_lost = [this, i] { on_lost(i); };
    part->link = std::make_unique<ServerLink>(std::move(link));
    parts_.push_back(std::move(part));
  }
  links_ = make_links();
  WorkerFlowOptions flow;
  flow.member = member_;
  flow.sync = options_.coordination.sync;
  flow.log = options_.log;
  flow.interrupted = [this] { return interrupted(); };
  flow_ = std::make_unique<WorkerFlow>(*links_, std::move(flow));
  if (options_.trace != nullptr) {
    push_label_ = options_.trace->tracer().label({"push", "exchange"});
    pull_label_ = options_.trace->tracer().label({"pull", "exchange"});
  }
}

PsExchange::~PsExchange() {
  for (const auto& part : parts_) part->link->stop();  // threads of a link may use another one
}

void PsExchange::on_lost(int server) {
  const int waits_for = waits_for_;
  if (waits_for < 0 || waits_for == server || (waits_for > 0 && server > 0)) return;
  parts_[static_cast<size_t>(waits_for)]->link->lose(fmt::format("ps:{} is gone", server));
}

void PsExchange::begin(const exchange::StepStart& start) {
  buckets_.begin();
  traced_ = options_.trace != nullptr && start.traced;
  // After a broken connection the transport may still hold the gradients of the previous push.
  const Clock::time_point patience = Clock::now() + kReleaseWait;
  while (hold_.use_count() > 1) {
    if (Clock::now() > patience) throw Error("the transport still holds the memory of a broken connection");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!hold_) hold_ = std::make_shared<int>(0);
  flow_->begin(start.batches);
}

void PsExchange::ready(program::ParameterRange range, exchange::Event /*event*/) {
  buckets_.announced(range, [this](program::ParameterRange bucket) { push_bucket(bucket); });
}

void PsExchange::push_bucket(program::ParameterRange bucket) {
  const Clock::time_point before = Clock::now();
  for (const auto& part : parts_) {
    if (!flow_->streams_to(part->index)) continue;
    if (!push(*part, bucket, false)) flow_->broken(part->index);  // the whole push is sent again
  }
  const Clock::time_point now = Clock::now();
  spent_.early_push += seconds_between(before, now);
  if (traced_) options_.trace->span(push_label_, before, now);
}

base::Status PsExchange::push(ServerPart& part, program::ParameterRange range, bool last) {
  base::Result<transport::Stream*> stream = part.link->current();
  if (!stream) return stream.failure();
  wire::PushEnd end;
  end.set_plan(flow_->plan());
  end.set_rounds(flow_->rounds());
  end.set_examples(report_.examples);
  end.set_loss_sum(report_.loss_sum);
  end.set_correct(report_.correct);
  end.set_gradient_scale(gradient_scale_);
  end.set_wait_seconds(last_wait_);
  end.set_busy_seconds(last_busy_);
  end.set_traced(traced_);
  transport::Header elements = header(Kind::push);
  elements.sequence = flow_->sequence();
  elements.version = flow_->version(part.index);
  const std::vector<schedule::Slice> slices = intersect(part.ranges, range);
  for (size_t i = 0; i < slices.size(); ++i) {
    elements.offset = slices[i].local;
    const std::span<const float> values =
        parameters_.gradients().subspan(slices[i].global.offset, slices[i].global.count);
    const bool ends = last && i + 1 == slices.size();
    base::Status sent = send_elements(*stream.value(), elements, values, options_.wire, hold_, ends ? &end : nullptr);
    if (!sent) return sent;
  }
  if (!last || !slices.empty()) return {};
  elements.offset = 0;
  return send_elements(*stream.value(), elements, {}, options_.wire, hold_, &end);
}

void PsExchange::trace_answer(ServerPart& part, const wire::Reply& reply) {
  if (reply.sent_at() == 0) return;  // the server writes no trace
  const Clock::time_point now = Clock::now();
  base::Tracer& tracer = options_.trace->tracer();
  options_.trace->flow_end(pull_label_, pull_flow(member_, incarnation_, flow_->sequence(), part.index), now);
  part.clock.sent(tracer.since_epoch(part.began_last), reply.received_at());
  part.clock.came(reply.sent_at(), tracer.since_epoch(now));
  if (const auto offset = part.clock.nanoseconds()) tracer.set_offset(part.link->name(), *offset);
}

base::Result<StepInfo> PsExchange::finish(const BatchReport& report) {
  const Clock::time_point entered = Clock::now();
  report_ = report;
  gradient_scale_ = 1;
  gradient_norm_ = kNone;
  if (report.examples == 0 && !options_.coordination.sync) {
    // No data in this round: it is counted with the next push.
    StepInfo same;
    same.step = flow_->version(0);
    same.entered = entered;
    same.spent = std::exchange(spent_, {});
    return same;
  }
  Clock::time_point before = entered;
  if (!options_.coordination.sync && options_.rules.clip_norm > 0) {
    clip();
    before = Clock::now();
    spent_.optimizer = seconds_between(entered, before);
  }
  flow_->send();
  pushed_ = Clock::now();
  spent_.push = seconds_between(before, pushed_);
  base::Result<StepInfo> answered = flow_->await();
  if (!answered) return answered;
  StepInfo info = std::move(answered.value());
  info.entered = entered;
  if (flow_->rejoined()) {
    left_finish_ = Clock::now();
    spent_.others = seconds_between(pushed_, left_finish_);
    info.spent = std::exchange(spent_, {});
    return info;
  }
  const Clock::time_point left = Clock::now();
  last_wait_ = seconds_between(entered, left);
  last_busy_ = seconds_between(left_finish_, entered);
  wait_seconds_ += last_wait_;
  busy_seconds_ += last_busy_;
  info.wait_seconds = last_wait_;
  const double waited = seconds_between(pushed_, left);
  spent_.others = std::min(spent_.others, waited);
  spent_.pull = waited - spent_.others;
  info.spent = std::exchange(spent_, {});
  left_finish_ = left;
  return info;
}

/// Looks for signs of the end at ps:0, which knows first and stays longest.
std::optional<exchange::Ending> PsExchange::look_for_ending() const {
  const ServerLink& first = *parts_.front()->link;
  if (first.ended()) return exchange::Ending{first.why_ended(), 0};
  return options_.look_for_ending ? options_.look_for_ending() : std::nullopt;
}

/// Asynchronous: clips each gradient by itself.
void PsExchange::clip() {
  constexpr double kTiny = 1e-6;
  const double norm = std::sqrt(optim::sum_of_squares(parameters_.gradients(), options_.threads));
  gradient_norm_ = static_cast<float>(norm);
  gradient_scale_ = static_cast<float>(std::min(1.0, static_cast<double>(options_.rules.clip_norm) / (norm + kTiny)));
}

}  // namespace lockstep::ps
