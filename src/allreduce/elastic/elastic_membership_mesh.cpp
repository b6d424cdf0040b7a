// Callbacks of the mesh, on its threads.
#include <fmt/format.h>

#include "allreduce/elastic/elastic_membership_impl.h"
#include "allreduce/elastic/messages.h"
#include "cluster.pb.h"
#include "wire/frames.h"

namespace lockstep::allreduce {
namespace {

using elastic::MemberPhase;
using elastic::Message;

constexpr size_t kMostLines = 100;  ///< most log lines about refused processes

}  // namespace

Message ElasticMembership::Impl::status() {
  const base::MutexLock lock(mutex_);
  return assembly_.status();
}

void ElasticMembership::Impl::on_connected(int peer, const elastic::MemberStatus& status) {
  act([&](elastic::Assembly& assembly) { assembly.peer_connected(peer, status, now()); });
}

void ElasticMembership::Impl::on_message(int peer, const Message& message) {
  act([&](elastic::Assembly& assembly) { assembly.receive(peer, message, now()); });
}

void ElasticMembership::Impl::on_lost(int peer, const std::string& why) {
  act([&](elastic::Assembly& assembly) { assembly.peer_lost(peer, why, now()); });
}

void ElasticMembership::Impl::on_confirmed_dead(int peer) {
  act([&](elastic::Assembly& assembly) { assembly.peer_confirmed_dead(peer, now()); });
}

void ElasticMembership::Impl::on_unreachable(int peer, const std::string& why) {
  act([&](elastic::Assembly& assembly) { assembly.peer_unreachable(peer, why); });
}

void ElasticMembership::Impl::tick() {
  act([this](elastic::Assembly& assembly) {
    mutex_.assert_held();
    assembly.tick(now());
    // Neighbours that pass on statuses send heartbeats without them.
    if (mesh_ && mesh_->relays()) publish(assembly.status());
  });
}

void ElasticMembership::Impl::on_refused(const std::string& line, bool by_member) {
  {
    const base::MutexLock lock(mutex_);
    // A member that trains goes on with its group. One that has not started ends with the reason.
    const MemberPhase phase = assembly_.phase();
    const bool begins = phase == MemberPhase::starting || phase == MemberPhase::forming;
    if (by_member && begins && !assembly_.status().live && refusal_.empty()) refusal_ = line;
    if (lines_.size() >= kMostLines || !lines_.insert(line).second) return;
    wake_.notify_all();
  }
  if (options_.log) options_.log("warning", line);
}

void ElasticMembership::Impl::on_failed(const std::string& line) {
  std::shared_ptr<collective::Collective> broken;
  {
    const base::MutexLock lock(mutex_);
    failed_ = line;
    broken = std::exchange(collective_, nullptr);
    wake_.notify_all();
  }
  if (broken) broken->abort(line);
}

elastic::Publications::Place ElasticMembership::Impl::place() {
  const base::MutexLock lock(mutex_);
  const int leader = assembly_.leader(now());
  return {leader == options_.spec.member_index(options_.task), leader, assembly_.knows_end()};
}

void ElasticMembership::Impl::serve_guest(transport::Stream& stream, const transport::Frame& first) {
  const auto hello = wire::parse<wire::Hello>(first);
  const int member = elastic::check_hello(hello, options_.spec, options_.job, options_.task.str());
  stream.admit();
  if (member >= 0) act([&](elastic::Assembly& assembly) { assembly.peer_starting(member, now()); });
  wire::Welcome welcome;
  welcome.set_run(options_.run);
  welcome.set_incarnation(incarnation_);
  if (!wire::send(stream, elastic::header(elastic::Kind::welcome), welcome)) return;
  if (elastic::kind_of(first) == elastic::Kind::visit) publications_.serve(stream, [this] { return place(); });
}

}  // namespace lockstep::allreduce
