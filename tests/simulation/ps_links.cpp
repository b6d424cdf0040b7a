#include "simulation/ps_links.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::simulation {
namespace {

constexpr double kRetry = 0.2;   ///< seconds between attempts to connect
constexpr double kWatch = 0.25;  ///< seconds between two looks at silence
constexpr double kPatience = 600;

base::Failure gone(int server, const std::string& why) {
  return {base::FailureKind::gone, why, {fmt::format("ps:{}", server)}};
}

}  // namespace

PsLinks::PsLinks(PsCluster& cluster, Process me, std::string role, int member)
    : cluster_(cluster),
      me_(me),
      role_(std::move(role)),
      member_(member),
      incarnation_(cluster.born(me)),
      to_(static_cast<size_t>(cluster.options.servers)) {}

void PsLinks::start(std::function<void()> body) {
  for (int i = 0; i < cluster_.options.servers; ++i) {
    at(i).watch.heard(now());
    keep_control(i);
  }
  watch();
  fiber_ = std::make_unique<Fiber>([this, body = std::move(body)] {
    try {
      body();
    } catch (const ProcessEnds& ends) {
      end(ends.why);
    }
  });
  wanted_ = [] { return true; };
  go_on();
}

void PsLinks::end(const std::string& why) {
  if (!why.empty()) return cluster_.crash(me_, why);
  cluster_.left.insert(me_);
  if (member_ >= 0) cluster_.truth.worker_left();
  cluster_.world.exit(me_);
}

void PsLinks::go_on() {
  if (fiber_ == nullptr || !cluster_.world.alive(me_) || fiber_->running() || !wanted_ || !wanted_()) return;
  wanted_ = nullptr;
  fiber_->resume();
}

void PsLinks::wait_until(const std::function<bool()>& done) {
  while (!done()) {
    wanted_ = done;
    fiber_->wait();
  }
}

void PsLinks::sleep(double seconds) {
  const auto over = std::make_shared<bool>(false);
  cluster_.world.after(me_, seconds, [this, over] {
    *over = true;
    go_on();
  });
  wait_until([over] { return *over; });
}

wire::Hello PsLinks::hello() const {
  wire::Hello hello;
  hello.set_role(role_);
  hello.set_member(member_);
  hello.set_incarnation(incarnation_);
  return hello;
}

void PsLinks::send(Link link, Frame frame) {
  const auto shared = std::make_shared<const Frame>(std::move(frame));
  cluster_.world.send(me_, link, FramePtr(shared), [&] { return describe(*shared); });
}

// The data connections.

std::optional<base::Failure> PsLinks::try_to_connect(int server) {
  To& to = at(server);
  to.made = to.welcomed = to.noticed = false;
  to.lost.clear();
  to.inbox.clear();
  to.watch.data_connecting(now());
  to.data = cluster_.world.connect(me_, cluster_.server(server));
  wait_until([&to] { return to.made || !to.lost.empty(); });
  if (!to.lost.empty()) return gone(server, to.lost);
  Frame first{ps::Kind::hello};
  first.message = std::make_shared<const wire::Hello>(hello());
  send(to.data, std::move(first));
  wait_until([&to] { return !to.inbox.empty() || !to.lost.empty(); });
  if (to.inbox.empty()) return gone(server, to.lost);
  const FramePtr frame = to.inbox.front();
  to.inbox.pop_front();
  if (frame->kind == ps::Kind::refuse) {
    const bool taken = frame->extra == static_cast<uint64_t>(ps::RefusalKind::taken);
    if (taken) throw ProcessEnds{cluster_.is_twin(me_) ? "" : frame->text};
    return base::Failure{base::FailureKind::refused, frame->text};
  }
  to.welcome = message_of<wire::Welcome>(*frame);
  to.welcomed = true;
  ++to.connections;
  if (to.watch.data_welcomed(to.welcome.incarnation()) && to.control >= 0) {
    const Link control = to.control;
    cluster_.world.close(me_, control);
    lost_control(server, "the server was restarted");
  }
  return std::nullopt;
}

base::Status PsLinks::connect(int server, const std::string& awaited) {
  To& to = at(server);
  if (intact(server) && to.welcomed) return {};
  const double since = now();
  for (;;) {
    if (to.data >= 0) cluster_.world.close(me_, to.data);
    std::optional<base::Failure> failure = try_to_connect(server);
    if (!failure) return {};
    drop(server, failure->message());
    if (cluster_.over) to.ended = true;  // the run's folder tells
    if (to.ended || now() - since > kPatience) return std::move(*failure).because("waiting for " + awaited);
    sleep(kRetry);
  }
}

void PsLinks::drop(int server, const std::string& why) {
  To& to = at(server);
  if (to.data >= 0) cluster_.world.close(me_, to.data);
  to.data = -1;
  to.lost = why;
  to.welcomed = false;
}

void PsLinks::lose(int server, const std::string& why) {
  To& to = at(server);
  if (to.data < 0 || !to.lost.empty()) return;
  to.lost = why;
  cluster_.world.close(me_, to.data);
}

base::Status PsLinks::say(int server, Frame frame) {
  To& to = at(server);
  if (!intact(server)) return gone(server, to.lost);
  send(to.data, std::move(frame));
  return {};
}

base::Result<FramePtr> PsLinks::read(int server, ps::Kind kind) {
  To& to = at(server);
  wait_until([&to] { return !to.inbox.empty() || !to.lost.empty(); });
  if (to.inbox.empty()) return gone(server, to.lost);
  const FramePtr frame = to.inbox.front();
  to.inbox.pop_front();
  if (frame->kind != kind && !(kind == ps::Kind::snapshot_end && frame->kind == ps::Kind::end)) {
    return base::Failure{base::FailureKind::refused, "answered with " + describe(*frame)};
  }
  if (kind == ps::Kind::parameters) send(to.data, Frame{ps::Kind::ok});
  return frame;
}

// The control connections.

void PsLinks::keep_control(int server) {
  if (!at(server).ended) at(server).control = cluster_.world.connect(me_, cluster_.server(server));
}

void PsLinks::lost_control(int server, const std::string& why) {
  To& to = at(server);
  to.control = -1;
  to.control_welcomed = false;
  to.watch.control_lost(now());
  if (cluster_.over) to.ended = true;  // the run's folder tells
  cluster_.world.after(me_, kRetry, [this, server] { keep_control(server); });
  lose(server, why);
  on_lost(server);
  go_on();
}

void PsLinks::on_lost(int server) {
  if (waits_for < 0 || waits_for == server || (waits_for > 0 && server > 0)) return;
  lose(waits_for, fmt::format("ps:{} is gone", server));
}

void PsLinks::connected(Link link) {
  for (int i = 0; i < cluster_.options.servers; ++i) {
    if (at(i).data == link) at(i).made = true;
    if (at(i).control != link) continue;
    at(i).watch.control_connected(now());
    Frame first{ps::Kind::hello};
    first.control = true;
    first.message = std::make_shared<const wire::Hello>(hello());
    send(link, std::move(first));
  }
  go_on();
}

void PsLinks::received(Link link, const FramePtr& frame) {
  for (int i = 0; i < cluster_.options.servers; ++i) {
    if (at(i).data == link) at(i).inbox.push_back(frame);
    if (at(i).control == link) from_control(i, *frame);
  }
  go_on();
}

void PsLinks::from_control(int server, const Frame& frame) {
  To& to = at(server);
  to.watch.heard(now());
  const Link link = to.control;
  if (frame.kind == ps::Kind::notice) {
    const auto& notice = message_of<wire::Notice>(frame);
    to.ended = true;
    to.why_ended = static_cast<train::StopReason>(notice.stop());
    send(link, Frame{ps::Kind::notice});
  }
  if (frame.kind == ps::Kind::welcome) to.control_welcomed = true;
  if (frame.kind == ps::Kind::refuse) return end(cluster_.is_twin(me_) ? std::string() : frame.text);
  if (frame.kind == ps::Kind::welcome && to.watch.control_welcomed(message_of<wire::Welcome>(frame).incarnation())) {
    lose(server, "the server was restarted");
    on_lost(server);
  }
  if (frame.kind == ps::Kind::heartbeat) send(link, Frame{ps::Kind::heartbeat});
}

void PsLinks::closed(Link link, const std::string& why) {
  for (int i = 0; i < cluster_.options.servers; ++i) {
    if (at(i).data == link && at(i).lost.empty()) at(i).lost = why;
    if (at(i).control == link) lost_control(i, "its connection closed");
  }
  go_on();
}

void PsLinks::watch() {
  cluster_.check_that_servers_look();
  for (int i = 0; i < cluster_.options.servers; ++i) {
    To& to = at(i);
    const std::optional<double> silent = to.watch.silent(now());
    if (!silent) watch_data(i);
    if (!silent) continue;
    const std::string why = fmt::format("no heartbeat for {:.1f} s", *silent);
    lose(i, why);
    if (to.control >= 0) {
      cluster_.world.close(me_, to.control);
      lost_control(i, why);
    } else {
      on_lost(i);
    }
  }
  go_on();
  cluster_.world.after(me_, kWatch, [this] { watch(); });
}

/// The data stream may have broken alone, or the server may have ended it; perhaps nobody reads it now.
void PsLinks::watch_data(int server) {
  To& to = at(server);
  if (to.data < 0 || to.noticed) return;
  if (!to.watch.data_silent(cluster_.world.unanswered(me_, to.data), now())) return;
  to.noticed = true;
  lose(server, "no answer on the connection of data");
  on_lost(server);
}

}  // namespace lockstep::simulation
