#include "allreduce/elastic/mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/mesh_tree.h"
#include "allreduce/elastic/messages.h"
#include "cluster.pb.h"
#include "lockstep/error.h"
#include "wire/frames.h"
#include "wire/refusal.h"

namespace lockstep::allreduce::elastic {
namespace {

using std::chrono::milliseconds;

constexpr size_t kLargestPayload = size_t{8} << 20;
constexpr milliseconds kFirstRetry{20};
constexpr milliseconds kLastRetry{500};
constexpr int kMostProbes = 8;  ///< at the fast pace; a stopped process must not be flooded

PeerLink::Outgoing framed(const Message& message) { return {header(kind_of(message)), encode(message)}; }

milliseconds retry_after(int tries) { return std::min(kFirstRetry * (1 << std::min(tries, 5)), kLastRetry); }

}  // namespace

int check_hello(const wire::Hello& hello, const cluster::Spec& spec, const std::string& job, const std::string& here) {
  if (hello.protocol() != kProtocol) {
    throw wire::RefusedError(wire::RefusalKind::protocol, fmt::format("protocol {} of {}; {} speaks {}",
                                                                      hello.protocol(), hello.role(), here, kProtocol));
  }
  if (hello.job() != job) {
    throw wire::RefusedError(wire::RefusalKind::job,
                             fmt::format("{} and {} differ in model, data or settings", hello.role(), here));
  }
  const cluster::Task task = cluster::parse_task(hello.role());
  if (spec.member_index(task) != hello.member()) {
    throw wire::RefusedError(
        wire::RefusalKind::role,
        fmt::format("{} is member {} in this cluster, not {}", hello.role(), spec.member_index(task), hello.member()));
  }
  return hello.member();
}

Mesh::Stranger::Stranger(Mesh& of, transport::Stream& stream) : mesh(of) {
  const base::MutexLock lock(mesh.mutex_);
  place = mesh.strangers_.insert(mesh.strangers_.end(), {&stream, wire::Clock::now()});
}

Mesh::Stranger::~Stranger() {
  const base::MutexLock lock(mesh.mutex_);
  mesh.strangers_.erase(place);
}

Mesh::Mesh(MeshOptions options, MeshOwner& owner)
    : options_(std::move(options)),
      owner_(owner),
      members_(options_.spec.members()),
      me_(options_.spec.member_index(options_.task)),
      relays_(static_cast<int>(members_.size()) > kMeshMembers),
      relay_(std::max(me_, 0), static_cast<int>(members_.size())) {
  for (const cluster::Task& task : members_) {
    if (options_.spec.address(task).empty()) {
      throw UsageError(fmt::format("{} has no address; all-reduce needs one for every member", task.str()));
    }
  }
  if (me_ < 0) throw UsageError(options_.task.str() + " is not a member that trains");
  transport::ServerOptions server;
  server.address = cluster::listen_address(options_.spec.address(options_.task));
  server.security = options_.security;
  server.meter = options_.meter;
  server.largest_payload = kLargestPayload;
  server.hello_first = true;
  server.on_refused = [this](const std::string& line) { owner_.on_refused(line, false); };
  server.on_failure = [this](const std::string& line) { owner_.on_failed(line); };
  server_ = std::make_unique<transport::Server>(server, [this](transport::Stream& stream) { handle(stream); });
  if (relays_) threads_.emplace_back([this] { run_thread([this] { seek_parent(); }); });
  for (int peer = 0; peer < me_ && !relays_; ++peer) {
    threads_.emplace_back([this, peer] { run_thread([this, peer] { keep_connected(peer); }); });
  }
  threads_.emplace_back([this] { probe_lost(); });
  threads_.emplace_back([this] { watch(); });
}

Mesh::~Mesh() { stop(); }

void Mesh::stop() {
  if (!server_) return;
  if (relays_) part();
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [peer, link] : links_) {
      if (link != nullptr) link->cancel("this process ends");
    }
    for (const auto& stranger : strangers_) stranger.first->cancel("this process ends");
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  if (parent_thread_.joinable()) parent_thread_.join();
  server_->shutdown();
  server_.reset();
}

void Mesh::pause(milliseconds at_most) {
  const base::MutexLock lock(mutex_);
  const auto until = wire::Clock::now() + at_most;
  while (!stopping_ && wire::Clock::now() < until) changed_.wait_for(mutex_, until - wire::Clock::now());
}

std::string Mesh::name(int peer) const {
  const cluster::Task& task = members_[static_cast<size_t>(peer)];
  return task.str() + " at " + options_.spec.address(task);
}

wire::Hello Mesh::hello() const {
  wire::Hello hello;
  hello.set_protocol(kProtocol);
  hello.set_role(options_.task.str());
  hello.set_member(me_);
  hello.set_incarnation(options_.incarnation);
  hello.set_job(options_.job);
  return hello;
}

void Mesh::send(const std::vector<int>& to, const Message& message) {
  const base::MutexLock lock(mutex_);
  if (relays_) {
    relay_.post(to, static_cast<uint16_t>(kind_of(message)), encode(message));
    return send_frames();
  }
  for (const int peer : to) {
    const auto found = links_.find(peer);
    if (found != links_.end() && found->second != nullptr) found->second->send(framed(message));
  }
}

void Mesh::publish(const MemberStatus& status) {
  const base::MutexLock lock(mutex_);
  if (relays_) {
    relay_.set_status(status);
    return send_frames();
  }
  for (const auto& [peer, link] : links_) {
    if (link != nullptr) link->send(framed(status));
  }
}

// Connections.

void Mesh::keep_connected(int peer) {
  const std::string& address = options_.spec.address(members_[static_cast<size_t>(peer)]);
  int tries = 0;
  while (!stopping_) {
    if (transport::refuses(address)) {
      owner_.on_confirmed_dead(peer);
      owner_.on_unreachable(peer, "connection refused: no process listens there");
    } else {
      const auto begun = wire::Clock::now();
      const std::string why = connect_once(peer);
      if (!why.empty()) owner_.on_unreachable(peer, why);
      if (wire::Clock::now() - begun > wire::kHeartbeat) tries = 0;
    }
    pause(retry_after(tries++));
  }
}

std::string Mesh::connect_once(int peer) {
  uint64_t incarnation = 0;
  std::string why;
  const std::unique_ptr<transport::Stream> stream = greet(peer, incarnation, why);
  if (stream) run_link(peer, incarnation, *stream);
  return why;
}

std::unique_ptr<transport::Stream> Mesh::greet(int peer, uint64_t& incarnation, std::string& why) try {
  transport::ConnectOptions connect;
  connect.security = options_.security;
  connect.role = members_[static_cast<size_t>(peer)].str();
  connect.meter = options_.meter;
  connect.largest_payload = kLargestPayload;
  base::Result<std::unique_ptr<transport::Stream>> made = transport::connect(
      options_.spec.address(members_[static_cast<size_t>(peer)]), connect, [this] { return stopping_.load(); });
  if (!made && made.failure().kind == base::FailureKind::usage) {
    owner_.on_refused(fmt::format("{}: {}", name(peer), made.failure().message()), true);
  }
  const auto fail = [&why](std::string text) {
    why = std::move(text);
    return nullptr;
  };
  if (!made) return fail(made.failure().message());
  transport::Stream& stream = *made.value();
  const Stranger stranger(*this, stream);
  if (stopping_) return fail("this process ends");
  if (!wire::send(stream, header(Kind::hello), hello())) return fail("the peer closed the connection");
  const base::Result<transport::Frame> answer = stream.read();
  if (!answer) return fail("no greeting: " + answer.failure().message());
  if (kind_of(answer.value()) == Kind::refuse) {
    const wire::RefusalReason refusal = wire::read_refusal(answer.value());
    if (refusal.kind == wire::RefusalKind::failed) return fail(refusal.text);  // its next process may accept
    owner_.on_refused(fmt::format("{} refused {}: {}", name(peer), options_.task.str(), refusal.text), true);
    return fail("it refused this process");
  }
  if (kind_of(answer.value()) != Kind::welcome) return fail("it is not a member of a training by all-reduce");
  const auto there = wire::parse<wire::Hello>(answer.value());
  if (check_hello(there, options_.spec, options_.job, options_.task.str()) != peer) {
    throw DataError(fmt::format("another role has this address: {}", there.role()));
  }
  incarnation = there.incarnation();
  return std::move(made.value());
} catch (const Error& error) {
  owner_.on_refused(fmt::format("{}: {}", name(peer), error.what()), true);
  why = error.what();
  return nullptr;
}

void Mesh::handle(transport::Stream& stream) {
  const base::Result<transport::Frame> first = stream.read();
  if (!first || stopping_) return;
  try {
    serve(stream, first.value());
  } catch (const Error& error) {
    owner_.on_refused(fmt::format("{} was refused: {}", stream.peer(), error.what()), false);
    static_cast<void>(wire::send_refusal(stream, header(Kind::refuse), wire::refusal_for(error)));
  }
}

void Mesh::serve(transport::Stream& stream, const transport::Frame& first) {
  const bool guest = kind_of(first) == Kind::ask_run || kind_of(first) == Kind::visit;
  if (!guest && kind_of(first) != Kind::hello) {
    throw DataError("the first frame is not a greeting of a training by all-reduce");
  }
  const auto greeting = wire::parse<wire::Hello>(first);
  const std::string role = cluster::parse_task(greeting.role()).str();
  if (const std::string why = stream.why_not(role); !why.empty()) {
    throw wire::RefusedError(wire::RefusalKind::identity, fmt::format("it claims to be {}: {}", role, why));
  }
  if (guest) return owner_.serve_guest(stream, first);
  const int peer = check_hello(greeting, options_.spec, options_.job, options_.task.str());
  if (peer <= me_)
    throw wire::RefusedError(wire::RefusalKind::role,
                             fmt::format("{} does not connect to {}", greeting.role(), options_.task.str()));
  if (const std::string why = why_full(peer); !why.empty()) {
    return static_cast<void>(wire::send_refusal(stream, header(Kind::refuse), {wire::RefusalKind::failed, why}));
  }
  stream.admit();
  if (!wire::send(stream, header(Kind::welcome), hello())) return;
  run_link(peer, greeting.incarnation(), stream);
}

void Mesh::run_link(int peer, uint64_t incarnation, transport::Stream& stream) {
  if (relays_) return run_tree_link(peer, incarnation, stream);
  bool arrived = false;
  std::string why;
  {
    PeerLink link(stream, [this] { return framed(owner_.status()); });
    enter(peer, link);
    link.send(framed(owner_.status()));
    why = read_messages(peer, incarnation, stream, link, arrived);
    leave(peer);
  }
  if (arrived && !stopping_) owner_.on_lost(peer, why);
  const base::MutexLock lock(mutex_);
  links_.erase(peer);
  if (arrived && peer > me_) lost_[peer] = 0;
  changed_.notify_all();
}

std::string Mesh::read_messages(int peer, uint64_t incarnation, transport::Stream& stream, PeerLink& link,
                                bool& arrived) try {
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (stopping_) return "this process ends";
    if (!frame) {
      const std::string given_up = link.why();
      return given_up.empty() ? "connection closed" : given_up;
    }
    link.heard();
    const Message message =
        decode(kind_of(frame.value()), wire::message_of(frame.value()), static_cast<int>(members_.size()));
    const MemberStatus* status = std::get_if<MemberStatus>(&message);
    if (status != nullptr && status->incarnation != incarnation)
      throw DataError("the status comes from another process of this member");
    if (!arrived && status == nullptr) throw DataError("its first message is not a status");
    if (arrived) {
      owner_.on_message(peer, message);
    } else {
      arrived = true;
      owner_.on_connected(peer, *status);
    }
  }
} catch (const Error& error) {
  owner_.on_refused(fmt::format("{} sent an invalid message: {}", name(peer), error.what()), false);
  return std::string("it sent an invalid message: ") + error.what();
}

/// Adds the member's connection. A newer one ends the one before, and waits until its loss has been reported.
void Mesh::enter(int peer, PeerLink& link) {
  const base::MutexLock lock(mutex_);
  while (links_.contains(peer) && !stopping_) {
    if (links_[peer] != nullptr) links_[peer]->cancel("it connected again");
    changed_.wait(mutex_);
  }
  links_[peer] = &link;
  lost_.erase(peer);
  if (stopping_) link.cancel("this process ends");
}

/// Removes the connection once its loss has been reported.
void Mesh::leave(int peer) {
  const base::MutexLock lock(mutex_);
  links_[peer] = nullptr;
}

// Threads.

/// Checks whether lost members that should connect to this one are dead: their address refuses connections.
void Mesh::probe_lost() {
  while (!stopping_) {
    std::map<int, int> lost;
    {
      const base::MutexLock lock(mutex_);
      while (!stopping_ && lost_.empty()) changed_.wait(mutex_);
      lost = lost_;
    }
    milliseconds next = kLastRetry;
    for (const auto& [peer, tries] : lost) {
      if (stopping_) return;
      const bool refuses = transport::refuses(options_.spec.address(members_[static_cast<size_t>(peer)]));
      if (refuses) confirm_dead(peer);
      const base::MutexLock lock(mutex_);
      const auto found = lost_.find(peer);
      if (found == lost_.end()) continue;
      if (refuses || (relays_ && !relay_.misses(peer))) {
        lost_.erase(found);
      } else if (++found->second < kMostProbes) {
        next = std::min(next, retry_after(found->second));
      }
    }
    pause(next);
  }
}

void Mesh::confirm_dead(int peer) {
  if (!relays_) return owner_.on_confirmed_dead(peer);
  with_relay([peer](Relay& relay) { relay.confirm_dead(peer); });
}

void Mesh::watch() {
  auto looked = wire::Clock::now();
  while (!stopping_) {
    pause(wire::kHeartbeat / 4);
    const auto now = wire::Clock::now();
    check_links(now - std::exchange(looked, now) > wire::kPause);
    if (relays_) with_relay([](Relay& relay) { relay.tick(Mesh::now()); });
    if (!stopping_) owner_.tick();
  }
}

/// Ends silent connections; `paused`: this process itself was stopped.
void Mesh::check_links(bool paused) {
  const auto now = wire::Clock::now();
  const base::MutexLock lock(mutex_);
  for (const auto& [peer, link] : links_) {
    if (link == nullptr) continue;
    if (paused) link->forgive();
    link->check_silence();
  }
  for (auto& [stream, since] : strangers_) {
    if (paused) since = now;
    if (now - since > wire::kSilence) stream->cancel("no greeting within 5 s");
  }
}

}  // namespace lockstep::allreduce::elastic
