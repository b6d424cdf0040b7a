#include "simulation/ps_server.h"

#include <fmt/format.h>

#include <cstring>

namespace lockstep::simulation {

void ServerActor::start() {
  cluster_.truth.died(index_);
  if (cluster_.over) return leave();  // its launcher starts nothing any more
  guarded([this] {
    resume();
    if (index_ > 0) follow();
    tick();
  });
}

void ServerActor::connected(Link link) {
  if (link != ps0_) return;
  guarded([this] {
    job_.ps0_connected(now());
    wire::Hello hello;
    hello.set_role(fmt::format("ps:{}", index_));
    hello.set_member(-1);
    hello.set_incarnation(incarnation_);
    job_.introduce_to_ps0(hello);
    Frame frame{ps::Kind::hello};
    frame.control = true;
    say(ps0_, std::move(frame), std::move(hello));
  });
}

void ServerActor::received(Link link, const std::any& message) {
  if (locked_) return blocked_.push_back([this, link, message] { received(link, message); });
  guarded([&] {
    const auto frame = std::any_cast<FramePtr>(message);
    if (link == ps0_) return from_ps0(*frame);
    const auto found = conns_.find(link);
    if (found == conns_.end()) return;
    Conn& conn = found->second;
    if (conn.what == Conn::fresh) return greeted(link, *frame);
    if (conn.what == Conn::control) return from_peer(link, *frame);
    conn.frames.push_back(frame);
    work(link);
  });
}

void ServerActor::closed(Link link, const std::string& why) {
  if (locked_) return blocked_.push_back([this, link, why] { closed(link, why); });
  guarded([&] {
    if (link == ps0_) return lost_ps0(why);
    forget(link, "its connection closed");
  });
}

ps::JobOptions ServerActor::job_options(const PsOptions& options, int index) {
  ps::JobOptions job;
  job.index = index;
  for (int i = 0; i < options.workers; ++i) job.members.push_back(fmt::format("worker:{}", i));
  for (int i = 0; i < options.servers; ++i) job.servers.push_back(fmt::format("ps:{}", i));
  job.evaluator = options.evaluator;
  job.record = true;
  return job;
}

void ServerActor::end(const std::string& why) {
  over_ = true;
  cluster_.crash(me_, why);
}

void ServerActor::later(double seconds, std::function<void()> what) {
  world_.after(me_, seconds, [this, what = std::move(what)] {
    if (locked_) return blocked_.push_back([this, what] { guarded(what); });
    guarded(what);
  });
}

void ServerActor::say(Link link, Frame frame) {
  const auto shared = std::make_shared<const Frame>(std::move(frame));
  world_.send(me_, link, FramePtr(shared), [&] { return describe(*shared); });
}

void ServerActor::refuse(Link link, ps::RefusalKind kind, const std::string& why) {
  Frame frame{ps::Kind::refuse};
  frame.extra = static_cast<uint64_t>(kind);
  frame.text = why;
  say(link, std::move(frame));
  world_.close(me_, link);
  forget(link, "it was refused");
}

// The state.

void ServerActor::store(const std::string& ledger) {
  Disk& disk = world_.disk(me_);
  const bool full = std::exchange(disk.full, false);  // its room was reserved
  files_.generation = job_.generation();
  files_.boot = world_.boot(me_);
  const auto size = static_cast<uint32_t>(config_.size());
  std::string bytes(reinterpret_cast<const char*>(&files_), sizeof(files_));
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  disk.write("state", bytes + config_ + ledger);
  if (cluster_.options.durability == ps::Durability::machine) disk.sync("state");
  disk.full = full;
}

void ServerActor::resume() {
  if (cluster_.options.durability == ps::Durability::checkpoint) return;
  const auto bytes = world_.disk(me_).read("state");
  uint32_t size = 0;
  if (!bytes || bytes->size() < sizeof(files_) + sizeof(size)) return;
  Stored found;
  std::memcpy(&found, bytes->data(), sizeof(found));
  const bool survived = cluster_.options.durability == ps::Durability::machine;
  if (!survived && found.boot != world_.boot(me_)) return;  // nothing tells which pages were written
  std::memcpy(&size, bytes->data() + sizeof(found), sizeof(size));
  config_ = bytes->substr(sizeof(found) + sizeof(size), size);
  wire::JobConfig config;
  wire::Ledger ledger;
  if (!config.ParseFromString(config_) || !ledger.ParseFromString(bytes->substr(sizeof(found) + sizeof(size) + size))) {
    return world_.fail(fmt::format("ps:{} finds a damaged state", index_));
  }
  files_ = found;
  job_.adopt(config);
  job_.resume(ledger, files_.version, now());
  cluster_.truth.resumed(index_, {files_.generation, files_.version});
  world_.note(me_, [&] { return fmt::format("is back at version {}", files_.version); });
}

std::unique_ptr<Actor> make_server(PsCluster& cluster, Process me, int index) {
  return std::make_unique<ServerActor>(cluster, me, index);
}

}  // namespace lockstep::simulation
