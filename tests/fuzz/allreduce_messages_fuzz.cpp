// Any bytes as messages between members of a training by all-reduce must give valid values or a typed error, and
// accepted messages must not break the rules of an Assembly. The input is a list of messages: a byte for the kind and
// the sender, two for the length, then the message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "allreduce/elastic/assembly.h"
#include "allreduce/elastic/messages.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep::allreduce;
using namespace lockstep::allreduce::elastic;

constexpr int kMembers = 4;

void check(const Assembly& assembly) {
  const MemberStatus status = assembly.status();
  if (assembly.phase() == MemberPhase::running && status.group.seats.empty()) std::abort();
  if (status.left > status.seen && status.left > status.group.number) std::abort();
}

/// Does the work of the thread that forms a group.
void work(Assembly& assembly, double now) {
  if (const auto wanted = assembly.take_preparation()) {
    if (wanted->rank < 0 || wanted->rank >= wanted->size || wanted->size > kMembers) std::abort();
    assembly.prepared(wanted->number, "here", now);
  }
  const auto decision = assembly.take_decision();
  if (!decision) return;
  if (decision->addresses.size() != decision->group.seats.size()) std::abort();
  if (assembly.why_give_up().empty()) {
    assembly.connected(now);
  } else {
    assembly.not_connected("given up", now);
  }
}

void play(const uint8_t* data, size_t size) {
  AssemblyRules rules;
  rules.me = 1;
  rules.members = kMembers;
  rules.incarnation = 1;
  rules.start_wait = 2;
  for (int i = 0; i < kMembers; ++i) {
    rules.names.push_back("worker:" + std::to_string(i));
    rules.addresses.emplace_back("h:1");
  }
  Assembly assembly(rules);
  double now = 1;
  for (const int peer : {0, 2, 3}) assembly.peer_connected(peer, MemberStatus{}, now);
  assembly.form({}, now);
  while (size >= 3) {
    const int what = data[0];
    const size_t length = std::min<size_t>(size - 3, data[1] + size_t{256} * data[2]);
    const std::string bytes(reinterpret_cast<const char*>(data) + 3, length);
    data += 3 + length;
    size -= 3 + length;
    constexpr int peers[] = {0, 2, 3, 0};
    const int peer = peers[what % 4];
    now += what / 64;
    const auto kind = static_cast<Kind>(static_cast<int>(Kind::status) + what / 4 % 6);
    try {
      assembly.receive(peer, decode(kind, bytes, kMembers), now);
    } catch (const lockstep::Error&) {
      assembly.peer_lost(peer, "nonsense", now);
      assembly.peer_connected(peer, MemberStatus{}, now);
    }
    work(assembly, now);
    assembly.tick(now);
    if (!assembly.broken().empty()) assembly.form({}, now);
    for (const Send& send : assembly.take_sends()) {
      decode(kind_of(send.message), encode(send.message), kMembers);  // the other members must understand it
    }
    assembly.take_log_lines();
    check(assembly);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  play(data, size);
  return 0;
}
