// A server's heartbeats and deadlines, and the other servers' connection to ps:0.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

bool Server::alone_after_the_end() {
  wire::Notice notice;
  notice.set_ended(true);
  {
    const base::MutexLock lock(mutex_);
    if (job_.coordinator()) notice.set_stop(static_cast<uint32_t>(job_.coordinator()->stopped()));
  }
  control_streams_.send(header(Kind::notice), &notice, [](const Peer&) { return true; });
  const base::MutexLock lock(mutex_);
  return job_.may_leave(control_streams_.peers(), now());
}

void Server::monitor() {
  try {
    watch_until_the_end();
  } catch (const std::exception&) {
    end_with_error();
  }
}

void Server::watch_until_the_end() {
  for (;;) {
    bool finishing = false;
    std::map<int, std::string> awaited;
    {
      const base::MutexLock lock(mutex_);
      const Clock::time_point next = Clock::now() + kHeartbeat;
      while (!ended_ && !job_.finishing() && Clock::now() < next) ending_.wait_for(mutex_, next - Clock::now());
      if (job_.finishing() && !ended_) changed_.wait_for(mutex_, kHeartbeat / 10);
      job_.expire(now());
      carry_out(job_.orders());
      job_.watch(control_streams_.peers(), is_interrupted(), now());
      let_others_make();
      if (ended_) return;
      finishing = job_.finishing();
      awaited = job_.awaited();
    }
    control_streams_.tick(awaited);
    if (!finishing || !alone_after_the_end()) continue;
    const base::MutexLock lock(mutex_);
    return end({});
  }
}

// The other servers.

void Server::follow_coordinator() {
  try {
    follow_until_the_end();
  } catch (const std::exception&) {
    end_with_error();
  }
}

void Server::follow_until_the_end() {
  const std::string& address = options_.spec.ps.front();
  for (;;) {
    {
      const base::MutexLock lock(mutex_);
      if (ended_ || job_.finishing()) return;
    }
    transport::ConnectOptions connect;
    connect.security = options_.security;
    connect.role = "ps:0";
    connect.meter = options_.meter;
    base::Result<std::unique_ptr<transport::Stream>> stream = transport::connect(address, connect, [this] {
      const base::MutexLock lock(mutex_);
      return ended_;
    });
    if (!stream) {
      const base::MutexLock lock(mutex_);
      if (stream.failure().kind == base::FailureKind::usage)
        end(fmt::format("ps:{}: ps:0: {}", options_.index, stream.failure().message()));
      job_.ps0_unreachable(stream.failure().message(), now());
      let_others_make();
      continue;
    }
    {
      const base::MutexLock lock(mutex_);
      followed_ = stream.value().get();
      job_.ps0_connected(now());
    }
    try {
      serve_coordinator(*stream.value());
    } catch (const std::exception&) {
      end_with_error();
    }
    const base::MutexLock lock(mutex_);
    followed_ = coordinator_stream_ = nullptr;
    job_.ps0_lost(now());
  }
}

void Server::serve_coordinator(transport::Stream& stream) {
  wire::Hello hello;
  hello.set_protocol(kProtocol);
  hello.set_role("ps:" + std::to_string(options_.index));
  hello.set_member(-1);
  hello.set_incarnation(incarnation_);
  hello.set_job(options_.job);
  introduce(hello);
  {
    const base::MutexLock lock(mutex_);
    job_.introduce_to_ps0(hello);
  }
  transport::Header first = header(Kind::hello);
  first.flags = kControl;
  if (!send(stream, first, hello)) return;
  base::Result<transport::Frame> greeting = stream.read();
  if (!greeting) return;
  if (kind_of(greeting.value()) != Kind::welcome) {
    const RefusalReason refusal = read_refusal(greeting.value());
    if (refusal.kind == RefusalKind::failed) return;  // the next process of ps:0 may accept
    const base::MutexLock lock(mutex_);
    return end(fmt::format("ps:{}: ps:0 at {} refused: {}", options_.index, stream.peer(), refusal.text));
  }
  {
    const base::MutexLock lock(mutex_);
    coordinator_stream_ = &stream;
    job_.ps0_welcomed();
    let_others_make();
  }
  listen_to_coordinator(stream);
}

void Server::listen_to_coordinator(transport::Stream& stream) {
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (!frame) return;
    const base::MutexLock lock(mutex_);
    job_.heard_of_ps0(now());
    switch (kind_of(frame.value())) {
      case Kind::heartbeat:
        if (!stream.write(header(Kind::heartbeat))) return;
        break;
      case Kind::commit:
        job_.announced(parse<wire::Commit>(frame.value()), now());
        break;
      case Kind::notice:
        if (!parse<wire::Notice>(frame.value()).ended()) break;
        job_.finish_training(now());
        let_others_make();
        ending_.notify_all();
        return;
      default:
        break;
    }
    let_others_make();
  }
}

}  // namespace lockstep::ps
