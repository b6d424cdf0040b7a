// Who may speak to a parameter server, and for how long without a word.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

constexpr double kSilenceSeconds = std::chrono::duration<double>(kSilence).count();

}  // namespace

/// A stream whose first frame has not come: it is given up when that takes too long.
Server::Stranger::Stranger(Server& of, transport::Stream& stream) : server(of) {
  const base::MutexLock lock(server.mutex_);
  place = server.strangers_.insert(server.strangers_.end(), {&stream, now()});
}

Server::Stranger::~Stranger() {
  const base::MutexLock lock(server.mutex_);
  server.strangers_.erase(place);
}

base::Result<transport::Frame> Server::first_frame(transport::Stream& stream) {
  const Stranger stranger(*this, stream);
  return stream.read();
}

wire::Hello Server::check_hello(const transport::Frame& frame) const {
  if (kind_of(frame) != Kind::hello) throw DataError("the first frame is not a hello");
  auto hello = parse<wire::Hello>(frame);
  if (hello.protocol() != kProtocol) {
    throw DataError(fmt::format("protocol {} of {}; this server speaks {}", hello.protocol(), hello.role(), kProtocol));
  }
  if (hello.job() != options_.job) {
    throw DataError(fmt::format("{} trains something else than ps:{}: model, data or settings differ", hello.role(),
                                options_.index));
  }
  const cluster::Spec& spec = options_.spec;
  const cluster::Task task = cluster::parse_task(hello.role());
  const int members = static_cast<int>(spec.members().size());
  const bool trains = task.role == cluster::Role::worker || task.role == cluster::Role::chief;
  const bool fits = hello.member() == -1 || (trains && hello.member() >= 0 && hello.member() < members &&
                                             (spec.partial || spec.member_index(task) == hello.member()));
  if (!fits) throw DataError(fmt::format("{} is member {} of {}", hello.role(), hello.member(), members));
  const bool server_of_this =
      task.role != cluster::Role::ps || (coordinates() && task.index > 0 && spec.contains(task));
  if (!server_of_this) throw DataError(hello.role() + " is not one of the servers that follow this one");
  return hello;
}

/// Those who said nothing at all, and those who train without heartbeats, are given up.
void Server::give_up_silent() {
  const double limit = now() - kSilenceSeconds;
  for (const auto& [stream, since] : strangers_) {
    if (since < limit) stream->cancel("no hello came");
  }
  const auto look = [&](Session& session) {
    const wire::Hello& hello = session.hello;
    const bool here = peers_.any(
        [&](const Peer& peer) { return peer.role == hello.role() && peer.incarnation == hello.incarnation(); });
    if (here) session.heard = now();
    if (session.heard >= limit || session.given_up) return;
    session.given_up = true;
    session.stream.cancel("no heartbeats come");
    changed_.notify_all();
  };
  for (const auto& [member, session] : sessions_) look(*session);
  if (evaluator_) look(*evaluator_);
}

}  // namespace lockstep::ps
