#include "simulation/ps_server.h"

namespace lockstep::simulation {

// Updates.

bool ServerActor::has_room() {
  std::set<uint64_t> held;
  for (const auto& [link, view] : views_) held.insert(view);
  held.insert(files_.version);
  if (held.size() < buffers_) return true;
  if (world_.disk(me_).full) return false;
  ++buffers_;
  return true;
}

void ServerActor::settle() {
  while (!over_ && !booking_) {
    std::optional<ps::Update> update = job_.next(now());
    if (!update) break;
    const bool in_place = cluster_.options.lock_free;
    if (in_place && has(OldFault::books_after_applying)) return apply_first(std::move(*update));
    const bool there = in_place || has_room();
    if (!there && has(OldFault::waits_for_room_locked)) {
      locked_ = true;
      world_.note(me_, [] { return std::string("waits for room with its lock"); });
      world_.after(me_, 0.01, [this] { unlock(); });
      break;
    }
    if (!job_.room(there, "its folder", now())) break;
    begin(std::move(*update));
  }
  carry_out();
}

void ServerActor::unlock() {
  if (!has_room()) return world_.after(me_, 0.01, [this] { unlock(); });
  locked_ = false;
  const std::deque<std::function<void()>> waiting = std::exchange(blocked_, {});
  guarded([] {});
  for (const auto& what : waiting) what();
}

void ServerActor::begin(ps::Update update) {
  job_.begin(update, now());
  std::vector<ps::Contributed> parts;
  if (job_.coordinator() != nullptr) parts = job_.coordinator()->contributions();
  const std::string ledger = job_.ledger(now());
  const double took = world_.random().between(0.0001, 0.003) + world_.disk(me_).write_delay;
  later(took, [this, update = std::move(update), parts = std::move(parts), ledger] {
    if (update.generation != job_.generation()) return;
    files_.version = update.decision.version;
    files_.digest = Truth::digest_after(files_.digest, update);
    cluster_.truth.stored(index_, update, &parts, files_.digest);
    store(ledger);
    const bool here = cluster_.options.lock_free && job_.book(update, {});
    later(0.0001, [this, update, here] {
      job_.finish(update, now());
      if (here) later(0.0001, [this] { job_.applied(); });
    });
  });
}

void ServerActor::apply_first(ps::Update update) {
  booking_ = true;
  const auto coming = std::make_shared<ps::Update>(std::move(update));
  later(world_.random().between(0.0001, 0.003), [this, coming] {
    booking_ = false;
    const std::optional<ps::Update> still = job_.next(now());
    const bool same =
        still && still->decision.contributors.size() == coming->decision.contributors.size() &&
        ps::name_of(still->decision.contributors.front()) == ps::name_of(coming->decision.contributors.front());
    if (!same) return world_.fail("an update is in the parameters that nobody counts: its worker will be asked again");
    begin(*still);
  });
}

void ServerActor::carry_out() {
  for (;;) {
    const ps::Orders orders = job_.orders();
    for (const ps::Orders::Line& line : orders.lines) world_.note(me_, [&] { return line.text; });
    for (const ps::Decision& decision : orders.announced) announce(decision);
    for (const auto& [member, push] : orders.received) tell_received(member, push);
    for (const auto& [id, why] : orders.dropped) {
      if (const Link link = link_of(id); link >= 0) drop(link, why);
    }
    if (orders.drop_ps0 && !has(OldFault::silence_unnoticed)) {
      world_.close(me_, ps0_);
      lost_ps0(*orders.drop_ps0);
    }
    if (orders.end) return orders.end->empty() ? leave() : end(*orders.end);
    if (orders.dropped.empty() && !orders.drop_ps0) return;
  }
}

void ServerActor::announce(const ps::Decision& decision) {
  wire::Commit commit;
  to_wire(decision, commit);
  commit.set_generation(job_.generation());
  for (auto& [link, conn] : conns_) {
    if (conn.what != Conn::control || !conn.hello.role().starts_with("ps:")) continue;
    Frame frame{ps::Kind::commit};
    frame.version = decision.version;
    say(link, std::move(frame), commit);
  }
}

void ServerActor::tell_received(int member, const ps::PushName& push) {
  wire::Received received;
  received.set_member(member);
  received.set_incarnation(push.incarnation);
  received.set_sequence(push.sequence);
  received.set_version(job_.stored());
  received.set_generation(job_.generation());
  Frame frame{ps::Kind::received};
  frame.sequence = push.sequence;
  if (ps0_ >= 0) say(ps0_, std::move(frame), std::move(received));
}

}  // namespace lockstep::simulation
