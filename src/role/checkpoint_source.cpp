#include "role/checkpoint_source.h"

#include <algorithm>
#include <vector>

#include "allreduce/elastic/checkpoint_follower.h"
#include "lockstep/error.h"
#include "role/all_reduce_member.h"
#include "role/ps_member.h"
#include "schedule/placement.h"

namespace lockstep::role {
namespace {

/// Reads snapshots from all servers.
class ServersSnapshots final : public CheckpointSource {
 public:
  ServersSnapshots(const settings::Settings& settings, const ClusterProcess& process, const std::string& job,
                   const std::atomic<bool>* interrupt, program::ParameterStore& parameters)
      : parameters_(parameters) {
    const auto servers = static_cast<int>(process.spec.ps.size());
    const uint64_t incarnation = wire::new_incarnation();
    for (int i = 0; i < servers; ++i) {
      ps::ServerLinkOptions link;
      const cluster::Task server{cluster::Role::ps, i};
      link.server = server.str();
      link.address = process.spec.address(server);
      link.hello.set_protocol(ps::kProtocol);
      link.hello.set_role(process.task.str());
      link.hello.set_member(-1);
      link.hello.set_job(job);
      link.hello.set_incarnation(incarnation);
      ps::introduce(link.hello);
      link.security = security_of(settings, process);
      link.patience = settings.patience;
      link.log = process.log;
      link.interrupt = interrupt;
      link.meter = process.meter;
      link.look_for_ending = process.look_for_ending;
      links_.push_back(std::make_unique<ps::ServerLink>(std::move(link)));
    }
    ranges_ = schedule::place(parameters.infos(), servers, placement_of(settings));
  }

  std::optional<uint64_t> next(uint64_t after) override {
    for (;;) {
      if (links_.front()->ended() && !reachable()) return std::nullopt;
      base::Result<std::optional<uint64_t>> found = try_next(after);
      if (found) return found.value();
      const bool over = std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link->ended(); });
      if (over) return std::nullopt;
      if (gave_up_) throw Error(found.failure().message());
    }
  }

  /// Stores the reason; it is sent with the next request.
  void stop(train::StopReason reason) override { stop_ = reason; }

 private:
  /// Sends the stop once on every connection to ps:0: a server that died may not have heard it, or may have lost it.
  base::Status say_stop(transport::Stream& stream) {
    const uint64_t connection = links_.front()->connections();
    if (stop_ == train::StopReason::none || stop_said_on_ == connection) return {};
    transport::Header order = ps::header(ps::Kind::stop);
    order.extra = static_cast<uint64_t>(stop_);
    base::Status said = stream.write(order);
    if (said) stop_said_on_ = connection;
    return said;
  }
  bool reachable() { return links_.front()->stream("the last snapshot").ok(); }

  base::Result<std::optional<uint64_t>> try_next(uint64_t after) {
    uint64_t version = after;
    for (size_t i = 0; i < links_.size(); ++i) {
      ps::ServerLink& link = *links_[i];
      base::Result<transport::Stream*> stream = link.stream("the next checkpoint");
      if (!stream) {
        gave_up_ = true;
        return stream.failure();
      }
      transport::Header ask = ps::header(ps::Kind::follow);
      ask.version = version;
      ask.flags = i > 0 ? ps::kExact : 0;
      base::Status sent = i == 0 ? say_stop(*stream.value()) : base::Status();
      if (sent) sent = stream.value()->write(ask);
      base::Result<std::optional<uint64_t>> got = sent ? take(ranges_[i], *stream.value()) : sent.failure();
      if (!got) {
        link.drop(got.failure().message());
        return got;
      }
      if (!got.value()) return got;
      if (i > 0 && *got.value() != version)
        return base::Failure{base::FailureKind::other, "the servers' snapshots differ"};
      version = *got.value();
    }
    return std::optional<uint64_t>(version);
  }

  base::Result<std::optional<uint64_t>> take(const std::vector<program::ParameterRange>& ranges,
                                             transport::Stream& stream) {
    size_t count = 0;
    for (const program::ParameterRange& range : ranges) count += range.count;
    std::vector<float> shard(count);
    for (;;) {
      base::Result<transport::Frame> frame = stream.read();
      if (!frame) return frame.failure();
      if (ps::kind_of(frame.value()) == ps::Kind::end) return std::optional<uint64_t>();
      if (ps::kind_of(frame.value()) == ps::Kind::snapshot_end) {
        size_t local = 0;
        for (const program::ParameterRange& range : ranges) {
          std::copy_n(shard.begin() + static_cast<ptrdiff_t>(local), range.count,
                      parameters_.values().begin() + static_cast<ptrdiff_t>(range.offset));
          local += range.count;
        }
        return std::optional<uint64_t>(frame.value().header.version);
      }
      if (ps::kind_of(frame.value()) != ps::Kind::state)
        return base::Failure{base::FailureKind::refused, "an answer that is not a snapshot"};
      ps::take_elements(frame.value(), shard);
    }
  }

  program::ParameterStore& parameters_;
  std::vector<std::unique_ptr<ps::ServerLink>> links_;
  std::vector<std::vector<program::ParameterRange>> ranges_;  ///< ranges of each server
  train::StopReason stop_ = train::StopReason::none;
  uint64_t stop_said_on_ = 0;  ///< connection to ps:0 on which the stop was sent; 0: none
  bool gave_up_ = false;
};

/// Reads the checkpoints that the leader of an all-reduce publishes.
class LeadersCheckpoints final : public CheckpointSource {
 public:
  LeadersCheckpoints(const allreduce::ElasticOptions& options, program::ParameterStore& parameters)
      : parameters_(parameters), follower_(options) {}

  std::optional<uint64_t> next(uint64_t after) override { return follower_.next(after, parameters_.values()); }
  void stop(train::StopReason reason) override { follower_.stop(reason); }

 private:
  program::ParameterStore& parameters_;
  allreduce::CheckpointFollower follower_;
};

}  // namespace

std::unique_ptr<CheckpointSource> follow_checkpoints(const settings::Settings& settings, const ClusterProcess& process,
                                                     const std::string& job, const std::atomic<bool>* interrupt,
                                                     program::ParameterStore& parameters) {
  if (!process.spec.ps.empty()) {
    return std::make_unique<ServersSnapshots>(settings, process, job, interrupt, parameters);
  }
  return std::make_unique<LeadersCheckpoints>(elastic_options(settings, process, job, interrupt), parameters);
}

}  // namespace lockstep::role
