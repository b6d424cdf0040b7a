// What a worker says to the servers, and what it reads.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "ps/server_part.h"

namespace lockstep::ps {

/// The servers of a WorkerFlow, over this exchange's links.
class PsExchange::Links final : public Servers {
 public:
  explicit Links(PsExchange& exchange) : exchange_(exchange) {}

  [[nodiscard]] int count() const override { return static_cast<int>(exchange_.parts_.size()); }
  base::Status connect(int server, const std::string& awaited) override {
    base::Result<transport::Stream*> stream = link(server).stream(awaited);
    return stream ? base::Status() : stream.failure();
  }
  [[nodiscard]] uint64_t connections(int server) const override { return link(server).connections(); }
  [[nodiscard]] bool intact(int server) override { return link(server).intact(); }
  [[nodiscard]] const wire::Welcome& welcome(int server) const override { return link(server).welcome(); }
  void drop(int server, const std::string& why) override { link(server).drop(why); }
  [[nodiscard]] bool ended(int server) const override { return link(server).ended(); }
  [[nodiscard]] train::StopReason why_ended(int server) const override { return link(server).why_ended(); }
  void waits_for(int server) override { exchange_.waits_for_ = server; }

  base::Status push(int server, bool whole) override {
    if (exchange_.traced_) {
      part(server).began_last = Clock::now();
      const uint64_t flow = push_flow(exchange_.member_, exchange_.incarnation_, exchange_.flow_->sequence(), server);
      exchange_.options_.trace->flow_begin(exchange_.push_label_, flow, part(server).began_last);
    }
    program::ParameterRange range{};
    const bool nothing = exchange_.report_.examples == 0;
    if (whole && !nothing) range = {0, exchange_.parameters_.count()};
    if (!whole && !nothing) range = exchange_.buckets_.rest();
    return exchange_.push(part(server), range, true);
  }
  base::Result<Parameters> read_parameters(int server) override {
    base::Result<wire::Reply> reply = exchange_.read_parameters(part(server));
    if (!reply) return reply.failure();
    return Parameters{part(server).version, std::move(reply.value())};
  }
  void answered(int server, const wire::Reply& reply) override {
    // The other servers wait for ps:0, which knows the missing members.
    double& others = exchange_.spent_.others;
    if (server == 0) others = std::max(others, reply.waited_seconds());
    if (exchange_.traced_) exchange_.trace_answer(part(server), reply);
  }
  base::Status ask_to_join(uint64_t version, uint64_t generation) override {
    transport::Header ask = header(Kind::join);
    ask.version = version;
    ask.extra = generation;
    return write(0, ask);
  }
  base::Status ask_for(int server, uint64_t version) override {
    transport::Header ask = header(Kind::pull);
    ask.version = version;
    return write(server, ask);
  }
  uint64_t find_initial() override {
    exchange_.initial_ = exchange_.options_.initial();
    return exchange_.initial_->version;
  }
  base::Status initialise(int server, uint64_t generation) override {
    return exchange_.send_initial(part(server), generation);
  }
  base::Status say_leave(const wire::Leave& leave) override {
    base::Result<transport::Stream*> stream = link(0).current();
    if (!stream) return stream.failure();
    base::Status sent = send(*stream.value(), header(Kind::leave), leave);
    if (!sent) return sent;
    base::Result<transport::Frame> ok = read(0, Kind::ok);
    return ok ? base::Status() : ok.failure();
  }
  base::Result<bool> wait_end() override {
    base::Status asked = write(0, header(Kind::wait_end));
    base::Result<transport::Frame> end = asked ? read(0, Kind::snapshot_end) : asked.failure();
    if (!end) return end.failure();
    exchange_.take_records(parse<wire::Snapshot>(end.value()).ledger());
    return (end.value().header.flags & kLast) != 0;
  }
  base::Status hold() override {
    base::Status asked = write(0, header(Kind::hold));
    base::Result<transport::Frame> held = asked ? read(0, Kind::snapshot_end) : asked.failure();
    return held ? base::Status() : held.failure();
  }
  void release() override {
    base::Result<transport::Stream*> stream = link(0).stream("a snapshot");
    if (stream) static_cast<void>(stream.value()->write(header(Kind::release)));
  }
  base::Result<uint64_t> read_state(int server, uint64_t version) override {
    base::Result<wire::Snapshot> came = exchange_.read_state(part(server), version);
    if (!came) return came.failure();
    if (server == 0) exchange_.snapshot_ = came.value();
    return came.value().version();
  }

 private:
  [[nodiscard]] ServerPart& part(int server) const { return *exchange_.parts_[static_cast<size_t>(server)]; }
  [[nodiscard]] ServerLink& link(int server) const { return *part(server).link; }
  base::Status write(int server, const transport::Header& header) {
    base::Result<transport::Stream*> stream = link(server).current();
    return stream ? stream.value()->write(header) : stream.failure();
  }
  base::Result<transport::Frame> read(int server, Kind kind) {
    base::Result<transport::Stream*> stream = link(server).current();
    if (!stream) return stream.failure();
    base::Result<transport::Frame> frame = stream.value()->read();
    if (frame && kind_of(frame.value()) != kind) return unexpected(link(server), frame.value());
    return frame;
  }

  PsExchange& exchange_;
};

std::unique_ptr<Servers> PsExchange::make_links() { return std::make_unique<Links>(*this); }

base::Status PsExchange::send_initial(ServerPart& part, uint64_t generation) {
  const Initial& initial = *initial_;
  base::Result<transport::Stream*> found = part.link->stream("its first parameters");
  if (!found) return found.failure();
  transport::Stream& stream = *found.value();
  wire::JobConfig job;
  to_wire(options_.coordination, job);
  to_wire(options_.rules, *job.mutable_optimizer());
  job.set_lock_free(options_.lock_free);
  job.set_patience(options_.patience);
  job.set_parameters(parameters_.count());
  job.set_generation(generation);
  job.set_job(options_.job);
  job.set_protocol(kProtocol);
  job.set_wire(static_cast<uint32_t>(options_.wire));
  for (const program::ParameterRange& range : part.ranges) {
    wire::Range& added = *job.add_ranges();
    added.set_offset(range.offset);
    added.set_count(range.count);
  }
  base::Status sent = send(stream, header(Kind::init_begin), job);
  std::vector<std::span<const float>> arrays{initial.parameters};
  arrays.insert(arrays.end(), initial.slots.begin(), initial.slots.end());
  const auto hold = std::make_shared<int>(0);
  for (size_t i = 0; i < arrays.size(); ++i) {
    size_t local = 0;
    for (const program::ParameterRange& range : part.ranges) {
      if (!sent) return sent;
      transport::Header elements = header(Kind::init);
      elements.offset = local;
      elements.extra = i;
      sent = send_elements(stream, elements, arrays[i].subspan(range.offset, range.count), Element::kFloat32, hold,
                           nullptr);
      local += range.count;
    }
  }
  if (!sent) return sent;
  wire::Ledger ledger;
  to_wire(initial.data, *ledger.mutable_plan());
  ledger.set_examples(initial.examples);
  transport::Header last = header(Kind::init_end);
  last.version = initial.version;
  sent = send(stream, last, ledger);
  if (!sent) return sent;
  base::Result<transport::Frame> answer = stream.read();
  if (!answer) return answer.failure();
  if (kind_of(answer.value()) != Kind::ok) return unexpected(*part.link, answer.value());
  return {};
}

base::Result<wire::Reply> PsExchange::read_parameters(ServerPart& part) {
  base::Result<transport::Stream*> stream = part.link->current();
  if (!stream) return stream.failure();
  const bool direct = part.ranges.size() == 1;
  const std::span<float> to = direct
                                  ? parameters_.values().subspan(part.ranges.front().offset, part.ranges.front().count)
                                  : std::span<float>(part.scattered);
  size_t taken = 0;
  for (;;) {
    base::Result<transport::Frame> frame = stream.value()->read();
    if (!frame) return frame.failure();
    if (kind_of(frame.value()) != Kind::parameters) return unexpected(*part.link, frame.value());
    taken += take_elements(frame.value(), to);
    if ((frame.value().header.flags & kLast) == 0) continue;
    if (taken != part.count) {
      return base::Failure{base::FailureKind::corrupt, fmt::format("received {} of {} parameters", taken, part.count)};
    }
    part.version = frame.value().header.version;
    size_t local = 0;
    for (const program::ParameterRange& range : part.ranges) {
      if (direct) break;
      std::copy_n(part.scattered.begin() + static_cast<ptrdiff_t>(local), range.count,
                  parameters_.values().begin() + static_cast<ptrdiff_t>(range.offset));
      local += range.count;
    }
    wire::Reply reply = parse<wire::Reply>(frame.value());
    check(reply);
    return reply;
  }
}

}  // namespace lockstep::ps
