#include "simulation/ps_server.h"

namespace lockstep::simulation {

void ServerActor::answer(Link link, const FramePtr& frame) {
  const ps::SessionId id = conns_.at(link).session;
  switch (frame->kind) {
    case ps::Kind::push:
      return wait_for_parameters(link, "a push", [this, link, frame] { take_push(link, *frame); });
    case ps::Kind::join:
      return wait_for_parameters(link, "joining", [this, link, frame, id] {
        job_.join(id, frame->version, frame->extra);
        wait(link, {ps::Wait::joining}, [this, link, id] { send_parameters(link, job_.join_reply(id), 0); });
      });
    case ps::Kind::pull:
      return wait_for_parameters(link, "a pull", [this, link, frame] {
        wait(link, {ps::Wait::version, frame->version}, [this, link] { send_parameters(link, {}, 0); });
      });
    case ps::Kind::init_begin:
      coming_ = message_of<wire::JobConfig>(*frame);
      return done(link);
    case ps::Kind::init_end:
      return set_parameters(link, *frame);
    case ps::Kind::leave:
      return wait_for_parameters(link, "leaving", [this, link, frame, id] {
        job_.leave(id, message_of<wire::Leave>(*frame), now());
        say(link, Frame{ps::Kind::ok});
        done(link);
      });
    case ps::Kind::wait_end:
      return wait_for_parameters(link, "waiting for the end", [this, link, id] {
        wait(link, {ps::Wait::end}, [this, link, id] {
          wire::Snapshot end;
          Frame answer{ps::Kind::snapshot_end};
          answer.last = job_.end_of(id, end, now());
          say(link, std::move(answer), std::move(end));
          done(link);
        });
      });
    case ps::Kind::hold:
      return wait_for_parameters(link, "a snapshot", [this, link, id] {
        job_.hold(id);
        wait(link, {ps::Wait::version}, [this, link] {
          say(link, Frame{ps::Kind::snapshot_end}, wire::Snapshot());
          done(link);
        });
      });
    case ps::Kind::release:
      job_.release(id);
      return done(link);
    case ps::Kind::snapshot:
      return wait_for_parameters(link, "a snapshot", [this, link, frame] {
        wait(link, {ps::Wait::version, frame->version}, [this, link, frame] {
          wait(link, {ps::Wait::snapshot}, [this, link, frame] { send_snapshot(link, *frame); });
        });
      });
    case ps::Kind::follow:
      job_.follow(frame->version, frame->last);
      return wait(link, {ps::Wait::news}, [this, link] { send_news(link); });
    case ps::Kind::stop:
      return wait(link, {ps::Wait::version}, [this, link, frame] {
        job_.stop(static_cast<train::StopReason>(frame->extra));
        store(job_.ledger(now()));
        done(link);
      });
    case ps::Kind::end:
      say(link, Frame{ps::Kind::ok});
      finish_training();
      return done(link);
    case ps::Kind::ok:  // it has read its parameters
      views_.erase(link);
      return done(link);
    default:
      return world_.fail("a frame that makes no sense: " + describe(*frame));
  }
}

void ServerActor::take_push(Link link, const Frame& frame) {
  Conn& conn = conns_.at(link);
  const auto& end = message_of<wire::PushEnd>(frame);
  if (frame.sequence != conn.coming) job_.overwrite(conn.session);
  conn.coming = frame.sequence;
  ps::Push push;
  push.member = conn.hello.member();
  push.incarnation = conn.hello.incarnation();
  push.sequence = frame.sequence;
  push.base = frame.version;
  push.plan = end.plan();
  push.rounds = end.rounds();
  push.report = {end.loss_sum(), end.correct(), end.examples()};
  if (!conn.staging) conn.staging = std::make_shared<std::vector<float>>(2);
  (*conn.staging)[0] = static_cast<float>(push.incarnation);
  (*conn.staging)[1] = static_cast<float>(push.sequence);
  if (job_.release(conn.session)) settle();
  const ps::SessionId id = conn.session;
  const bool accepted = job_.push(id, push, conn.staging, 1) == ps::Verdict::accepted;
  cluster_.truth.received(index_, {push.incarnation, push.sequence});
  if (!accepted) {
    return wait(link, {ps::Wait::decision},
                [this, link, id, push] { send_parameters(link, job_.reply(id), push.sequence); });
  }
  if (index_ > 0 && has(OldFault::followers_do_not_ask) && !job_.config().sync()) apply_at_once(push);
  wait(link, {ps::Wait::decision}, [this, link, id, push] {
    const auto answer = [this, link, id, push] {
      wait(link, {ps::Wait::slower}, [this, link, id, push] { send_parameters(link, job_.reply(id), push.sequence); });
    };
    if (!job_.take_booked(id)) return answer();
    later(world_.random().between(0.0001, 0.003), [this, link, id, answer] {
      job_.applied();
      const auto found = conns_.find(link);
      if (found != conns_.end() && found->second.session == id) answer();
    });
  });
}

void ServerActor::apply_at_once(const ps::Push& push) {
  wire::Commit commit;
  ps::Decision decision{announced_ = std::max(announced_, job_.version()) + 1, {}, 1};
  decision.contributors.push_back({push.member, push.incarnation, push.sequence, 1});
  to_wire(decision, commit);
  commit.set_generation(job_.generation());
  job_.announced(commit, now());
}

void ServerActor::send_parameters(Link link, wire::Reply reply, uint64_t sequence) {
  Frame frame{ps::Kind::parameters};
  frame.sequence = sequence;
  frame.version = files_.version;
  frame.digest = files_.digest;
  frame.message = std::make_shared<const wire::Reply>(std::move(reply));
  views_[link] = files_.version;
  cluster_.truth.acknowledged(index_, {job_.generation(), files_.version});
  later(world_.random().between(0, std::max(cluster_.options.read_seconds, 0.001)), [this, link, frame] {
    if (!conns_.contains(link)) return;
    say(link, frame);
    done(link);
  });
}

void ServerActor::set_parameters(Link link, const Frame& frame) {
  if (world_.disk(me_).full) throw IoError("cannot reserve 4096 bytes for the state: No space left on device");
  const auto& ledger = message_of<wire::Ledger>(frame);
  auto coordinator = job_.coordinator_for(coming_, frame.version, ledger, now());
  job_.set_parameters(conns_.at(link).session, coming_, frame.version, std::move(coordinator));
  cluster_.truth.set(index_, job_.generation(), {frame.extra, frame.version});
  files_ = {job_.generation(), frame.version, frame.digest, 0};
  config_ = coming_.SerializeAsString();
  store(job_.ledger(now()));
  job_.parameters_set(now());
  carry_out();
  if (!conns_.contains(link)) return;
  say(link, Frame{ps::Kind::ok});
  done(link);
}

void ServerActor::send_snapshot(Link link, const Frame& asked) {
  wire::Snapshot end;
  job_.snapshot(end, now());
  end.set_version(files_.version);
  const uint64_t id = asked.sequence == 0 ? files_.version : asked.sequence;
  if (job_.wanted(id)) job_.keep(id, std::make_shared<const std::vector<float>>(1));
  Frame answer{ps::Kind::snapshot_end};
  answer.version = files_.version;
  answer.digest = files_.digest;
  answer.extra = job_.generation();
  say(link, std::move(answer), std::move(end));
  done(link);
}

void ServerActor::send_news(Link link) {
  const std::optional<ps::Kept> kept = job_.next_snapshot();
  Frame answer{kept ? ps::Kind::snapshot_end : ps::Kind::end};
  if (kept) answer.version = kept->id;
  say(link, std::move(answer));
  done(link);
}

void ServerActor::finish_training() {
  const bool first = !job_.finishing();
  job_.finish_training(now());
  if (first) world_.after(me_, 0, [this] { tick(); });
}

}  // namespace lockstep::simulation
