// A worker, the chief and the evaluator in the simulated world. The workers' decisions are the real WorkerFlow; the
// trainer around it computes nothing, but takes its batches as a real one does.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/plan.h"
#include "ps/worker_flow.h"
#include "simulation/ps_links.h"

namespace lockstep::simulation {
namespace {

using exchange::StepInfo;

class SimulatedServers final : public ps::Servers {
 public:
  explicit SimulatedServers(PsLinks& links) : links_(links) {}

  [[nodiscard]] int count() const override { return links_.cluster().options.servers; }
  base::Status connect(int server, const std::string& awaited) override { return links_.connect(server, awaited); }
  [[nodiscard]] uint64_t connections(int server) const override { return links_.at(server).connections; }
  [[nodiscard]] bool intact(int server) override { return links_.intact(server); }
  [[nodiscard]] const wire::Welcome& welcome(int server) const override { return links_.at(server).welcome; }
  void drop(int server, const std::string& why) override { links_.drop(server, why); }
  [[nodiscard]] bool ended(int server) const override { return links_.at(server).ended; }
  [[nodiscard]] train::StopReason why_ended(int server) const override { return links_.at(server).why_ended; }
  void waits_for(int server) override { links_.waits_for = server; }

  base::Status push(int server, bool /*whole*/) override {
    wire::PushEnd end;
    end.set_plan(flow->plan());
    end.set_rounds(flow->rounds());
    end.set_examples(examples);
    end.set_gradient_scale(1);
    Frame frame{ps::Kind::push};
    frame.sequence = flow->sequence();
    frame.version = flow->version(server);
    return links_.say(server, std::move(frame), std::move(end));
  }
  base::Result<Parameters> read_parameters(int server) override {
    const base::Result<FramePtr> frame = links_.read(server, ps::Kind::parameters);
    if (!frame) return frame.failure();
    return Parameters{frame.value()->version, message_of<wire::Reply>(*frame.value())};
  }
  base::Status ask_to_join(uint64_t version, uint64_t generation) override {
    Frame frame{ps::Kind::join};
    frame.version = version;
    frame.extra = generation;
    return links_.say(0, std::move(frame));
  }
  base::Status ask_for(int server, uint64_t version) override {
    Frame frame{ps::Kind::pull};
    frame.version = version;
    return links_.say(server, std::move(frame));
  }
  uint64_t find_initial() override { return checkpoint.place.version; }
  base::Status initialise(int server, uint64_t generation) override {
    base::Status connected = links_.connect(server, "its first parameters");
    if (!connected) return connected;
    const PsOptions& options = links_.cluster().options;
    wire::JobConfig config;
    ps::CoordinatorOptions rules = options.rules;
    rules.members = options.workers;
    rules.servers = options.servers;
    to_wire(rules, config);
    ps::to_wire(ps::Rules{}, *config.mutable_optimizer());
    config.set_lock_free(options.lock_free);
    config.set_generation(generation);
    config.set_parameters(2);
    config.add_ranges()->set_count(2);
    config.set_wire(static_cast<uint32_t>(ps::Element::kFloat32));
    base::Status said = links_.say(server, Frame{ps::Kind::init_begin}, std::move(config));
    if (!said) return said;
    wire::Ledger ledger;
    to_wire(checkpoint.data, *ledger.mutable_plan());
    ledger.set_examples(checkpoint.examples);
    Frame end{ps::Kind::init_end};
    end.version = checkpoint.place.version;
    end.extra = checkpoint.place.generation;
    end.digest = checkpoint.digest;
    said = links_.say(server, std::move(end), std::move(ledger));
    return said ? answer(server, ps::Kind::ok) : said;
  }
  base::Status say_leave(const wire::Leave& leave) override {
    base::Status said = links_.say(0, Frame{ps::Kind::leave}, leave);
    return said ? answer(0, ps::Kind::ok) : said;
  }
  base::Result<bool> wait_end() override {
    base::Status asked = links_.say(0, Frame{ps::Kind::wait_end});
    if (!asked) return asked.failure();
    const base::Result<FramePtr> end = links_.read(0, ps::Kind::snapshot_end);
    if (!end) return end.failure();
    return end.value()->last;
  }
  base::Status hold() override {
    base::Status asked = links_.say(0, Frame{ps::Kind::hold});
    return asked ? answer(0, ps::Kind::snapshot_end) : asked;
  }
  void release() override {
    if (links_.connect(0, "a snapshot")) static_cast<void>(links_.say(0, Frame{ps::Kind::release}));
  }
  base::Result<uint64_t> read_state(int server, uint64_t version) override {
    Frame ask{ps::Kind::snapshot};
    ask.version = ask.sequence = version;
    base::Status asked = links_.say(server, std::move(ask));
    if (!asked) return asked.failure();
    const base::Result<FramePtr> frame = links_.read(server, ps::Kind::snapshot_end);
    if (!frame) return frame.failure();
    const auto& snapshot = message_of<wire::Snapshot>(*frame.value());
    if (server == 0) {
      taken = {{frame.value()->extra, frame.value()->version},
               frame.value()->digest,
               snapshot.ledger().examples(),
               from_wire(snapshot.remaining())};
      digests.clear();
    }
    digests.push_back(frame.value()->digest);
    return frame.value()->version;
  }

  /// The chief, at the end.
  void end() {
    for (int i = 0; i < count(); ++i) {
      if (i > 0 && !links_.intact(i)) continue;
      const bool here = links_.connect(i, "the end").ok() && links_.say(i, Frame{ps::Kind::end}).ok();
      if (here) static_cast<void>(links_.read(i, ps::Kind::ok));
    }
  }

  ps::WorkerFlow* flow = nullptr;
  uint64_t examples = 0;  ///< of the push in flight
  PsCheckpoint checkpoint;
  PsCheckpoint taken;
  std::vector<uint64_t> digests;

 private:
  base::Status answer(int server, ps::Kind kind) {
    const base::Result<FramePtr> frame = links_.read(server, kind);
    return frame ? base::Status() : frame.failure();
  }
  PsLinks& links_;
};

/// Has its links, and hands them what arrives.
class LinkedActor : public Actor {
 public:
  LinkedActor(PsCluster& cluster, Process me, const std::string& role, int member)
      : links_(cluster, me, role, member) {}
  void start() override {
    links_.start([this] { live(); });
  }
  void connected(Link link) override { links_.connected(link); }
  void received(Link link, const std::any& message) override {
    links_.received(link, std::any_cast<FramePtr>(message));
  }
  void closed(Link link, const std::string& why) override { links_.closed(link, why); }

 protected:
  virtual void live() = 0;
  [[nodiscard]] PsCluster& cluster() { return links_.cluster(); }

  PsLinks links_;
};

class WorkerActor final : public LinkedActor {
 public:
  WorkerActor(PsCluster& cluster, Process me, int index)
      : LinkedActor(cluster, me, fmt::format("worker:{}", index), index),
        index_(index),
        servers_(links_),
        flow_(servers_, flow_options()) {
    servers_.flow = &flow_;
    servers_.checkpoint = cluster.checkpoint;
  }

 private:
  ps::WorkerFlowOptions flow_options() {
    ps::WorkerFlowOptions options;
    options.member = index_;
    options.sync = cluster().options.rules.sync;
    options.log = [this](std::string_view, const std::string& text) {
      links_.cluster().world.note(links_.me(), [&] { return text; });
    };
    options.interrupted = [] { return false; };
    return options;
  }
  [[nodiscard]] bool chief() const { return index_ == 0; }

  void live() override {
    std::optional<StepInfo> info = checked(flow_.join());
    for (;;) {
      listen(*info);
      const train::StopReason why = train(*info);
      if (flow_.over()) break;
      info = checked(flow_.leave({why}));
      if (!info) break;
      if (info->outcome == exchange::StepOutcome::missed) break;
    }
    if (chief() && !flow_.over()) {
      cluster().over = true;
      servers_.end();
    }
    throw ProcessEnds{};
  }
  static std::optional<StepInfo> checked(base::Result<std::optional<StepInfo>> result) {
    if (!result) throw ProcessEnds{result.failure().message()};
    return std::move(result.value());
  }
  void listen(const StepInfo& info) {
    if (!info.plan) return;
    plan_ = std::make_unique<data::Rounds>(*info.plan);
    per_step_ = std::max<int64_t>(info.batches_per_step, 1);
    next_ = 0;
  }
  /// Trains until a rule ends it here.
  train::StopReason train(StepInfo info) {
    const ps::CoordinatorOptions& rules = cluster().options.rules;
    data::Round round;
    for (;;) {
      if (info.stop) return info.stop->reason;
      int64_t taken = 0;
      uint64_t examples = 0;
      for (; taken < per_step_; ++taken) {
        if (plan_ == nullptr) return train::StopReason::data;
        plan_->read(next_ + taken, round);
        if (rules.passes > 0 && round.pass >= rules.passes) break;
        examples += static_cast<uint64_t>(round.count);
        if (round.index_in_part + 1 == round.rounds_in_part) {
          ++taken;
          break;
        }
      }
      if (taken == 0) return train::StopReason::data;
      next_ += taken;
      links_.sleep(cluster().world.random().between(0.5, 1.5) * cluster().options.batch_seconds);
      flow_.begin(taken);
      if (examples == 0 && !rules.sync) continue;  // counted with the next push
      servers_.examples = examples;
      flow_.send();
      base::Result<StepInfo> answered = flow_.await();
      if (!answered) throw ProcessEnds{answered.failure().message()};
      info = std::move(answered.value());
      if (flow_.over()) return train::StopReason::data;
      if (info.outcome == exchange::StepOutcome::retry && !info.plan) next_ -= taken;
      listen(info);
      if (chief() && info.step >= saved_ + cluster().options.checkpoint_every) save();
    }
  }
  void save() {
    base::Status taken = flow_.snapshot();
    if (!taken) return;  // a server lost its state: the next push finds that out
    saved_ = servers_.taken.place.version;
    cluster().truth.checkpoint(servers_.taken.place, servers_.digests);
    servers_.checkpoint = cluster().checkpoint = servers_.taken;
  }

  int index_;
  SimulatedServers servers_;
  ps::WorkerFlow flow_;
  std::unique_ptr<data::Rounds> plan_;
  int64_t per_step_ = 1;
  int64_t next_ = 0;
  uint64_t saved_ = 0;
};

/// Follows the snapshots; may meet a goal, which ends training.
class EvaluatorActor final : public LinkedActor {
 public:
  EvaluatorActor(PsCluster& cluster, Process me) : LinkedActor(cluster, me, "evaluator:0", -1) {}

 private:
  void live() override {
    uint64_t seen = 0;
    for (;;) {
      const base::Result<std::optional<uint64_t>> found = next(seen);
      if (found && !found.value()) throw ProcessEnds{};
      for (int i = 0; !found && i < cluster().options.servers; ++i) {
        if (links_.at(i).ended) throw ProcessEnds{};
      }
      if (!found) continue;
      seen = *found.value();
      links_.sleep(0.05);
      if (cluster().options.goal && seen >= kGoal) met_ = true;
    }
  }
  base::Result<std::optional<uint64_t>> next(uint64_t after) {
    uint64_t version = after;
    for (int i = 0; i < cluster().options.servers; ++i) {
      base::Status said = links_.connect(i, "the next checkpoint");
      if (!said) return said.failure();
      if (i == 0 && met_ && said_on_ != links_.at(0).connections) {
        Frame stop{ps::Kind::stop};
        stop.extra = static_cast<uint64_t>(train::StopReason::accuracy);
        said = links_.say(0, std::move(stop));
        if (said) said_on_ = links_.at(0).connections;
      }
      Frame ask{ps::Kind::follow};
      ask.version = version;
      ask.last = i > 0;
      if (said) said = links_.say(i, std::move(ask));
      const base::Result<FramePtr> got = said ? links_.read(i, ps::Kind::snapshot_end) : said.failure();
      if (!got) {
        links_.drop(i, got.failure().message());
        return got.failure();
      }
      if (got.value()->kind == ps::Kind::end) return std::optional<uint64_t>();
      if (i > 0 && got.value()->version != version) {
        return base::Failure{base::FailureKind::other, "the servers' snapshots differ"};
      }
      version = got.value()->version;
    }
    return std::optional<uint64_t>(version);
  }

  static constexpr uint64_t kGoal = 20;  ///< the version that meets the goal
  bool met_ = false;
  uint64_t said_on_ = 0;  ///< connection to ps:0 on which the stop was said
};

}  // namespace

std::unique_ptr<Actor> make_worker(PsCluster& cluster, Process me, int index) {
  return std::make_unique<WorkerActor>(cluster, me, index);
}

std::unique_ptr<Actor> make_evaluator(PsCluster& cluster, Process me) {
  return std::make_unique<EvaluatorActor>(cluster, me);
}

}  // namespace lockstep::simulation
