// How a parameter server makes versions.
//
// A lock-free update (Hogwild) is counted with the lock held, and applied after that with the lock released, by the
// handler of its worker: whether its worker leaves, comes back or is replaced meanwhile, it counts once. A process
// killed in between keeps a part of it.
#include <cmath>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

void Server::settle() {
  while (const std::optional<Update> update = job_.next(now())) {
    const bool there = job_.config().lock_free() || shard_->has_room();
    if (!job_.room(there, options_.folder, now())) break;
    make(*update);
    carry_out(job_.orders());
  }
  carry_out(job_.orders());
}

void Server::carry_out(const Orders& orders) {
  for (const Orders::Line& line : orders.lines) log(line.level, line.text);
  for (const Decision& decision : orders.announced) {
    wire::Commit commit;
    to_wire(decision, commit);
    commit.set_generation(job_.generation());
    control_streams_.send(header(Kind::commit), &commit, [](const Peer& peer) { return peer.role.starts_with("ps:"); });
  }
  for (const auto& [member, push] : orders.received) {
    wire::Received received;
    received.set_member(member);
    received.set_incarnation(push.incarnation);
    received.set_sequence(push.sequence);
    received.set_version(job_.stored());
    received.set_generation(job_.generation());
    if (coordinator_stream_ != nullptr) static_cast<void>(send(*coordinator_stream_, header(Kind::received), received));
  }
  for (const auto& [id, why] : orders.dropped) {
    const auto session = sessions_.find(id);
    if (session != sessions_.end()) session->second->stream.cancel(why);
  }
  if (orders.drop_ps0 && followed_ != nullptr) followed_->cancel(*orders.drop_ps0);
  if (orders.end) end(*orders.end);
  if (orders.changed) changed_.notify_all();
}

void Server::make(const Update& update) {
  std::vector<Contribution> contributions;
  for (const Update::Part& part : update.parts) contributions.push_back({*part.values, part.from.weight});
  const double began = now();
  const optim::Update how = update_of(update, contributions);
  job_.begin(update, now());
  if (job_.coordinator() != nullptr && options_.contributions) {
    if (!contributions_) contributions_.emplace(options_.folder + "/contributions.csv");
    contributions_->add(job_.version(), job_.coordinator()->contributions());
  }
  const double before = now();
  const std::string ledger = job_.ledger(before);
  if (job_.config().lock_free()) {
    make_in_place(update, how, ledger);
    times_.add(Stage::store, now() - before);
  } else {
    double stored = now() - before;
    if (contributions.empty()) {
      const View same = shard_->current();
      shard_->initialise(update.decision.version, same.parameters, same.slots, bytes_of(ledger));
    } else {
      shard_->apply(contributions, update.decision.mean_scale, how, bytes_of(ledger));
      stored += shard_->commit_seconds();
    }
    count_update(began, stored, trace_contributions(update.decision, began));
  }
  job_.finish(update, now());
}

void Server::make_in_place(const Update& update, const optim::Update& how, const std::string& ledger) {
  shard_->commit_in_place(update.decision.version, bytes_of(ledger));
  const std::shared_ptr<std::vector<float>> at_once = job_.book(update, how);
  if (at_once) shard_->apply_in_place(*at_once, how);
}

double Server::apply_booked(Session& session) {
  const std::optional<Booked> booked = job_.take_booked(session.id);
  if (!booked) return 0;
  const std::shared_ptr<ParameterShard> shard = shard_;
  mutex_.unlock();
  const double began = now();
  std::exception_ptr error;
  try {
    shard->apply_in_place(*booked->values, booked->how);
  } catch (...) {
    error = std::current_exception();
  }
  const double ended = now();
  times_.add(Stage::apply, ended - began);
  mutex_.lock();
  job_.applied();
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
  if (session.traced) trace_.applied(*session.trace, session.hello, session.coming, began, ended);
  return ended - began;
}

optim::Update Server::update_of(const Update& update, const std::vector<Contribution>& contributions) {
  const Rules& rules = job_.rules();
  const uint64_t version = update.decision.version - 1;
  optim::Update how{version, optim::learning_rate(rules.schedule, version), 1};
  float gradient_norm = std::numeric_limits<float>::quiet_NaN();
  if (contributions.empty()) {
    job_.set_gradient_norm(gradient_norm);
    return how;
  }
  if (!job_.config().sync()) {  // clipped by its worker
    how.gradient_scale = update.parts.front().scale;
  } else if (rules.clip_norm > 0) {
    constexpr double kTiny = 1e-6;
    const double norm = std::sqrt(shard_->sum_of_squares(contributions, update.decision.mean_scale));
    gradient_norm = static_cast<float>(norm);
    how.gradient_scale = static_cast<float>(std::min(1.0, static_cast<double>(rules.clip_norm) / (norm + kTiny)));
  }
  job_.set_gradient_norm(gradient_norm);
  return how;
}

void Server::count_update(double began, double stored, bool traced) {
  const double ended = now();
  update_seconds_ = ended - began;
  if (traced) trace_.updated(shard_->version(), began, ended, stored);
  times_.add(Stage::apply, update_seconds_ - stored);
  times_.add(Stage::store, stored);
}

bool Server::trace_contributions(const Decision& decision, double began) {
  bool traced = false;
  for (const Contributor& contributor : decision.contributors) {
    for (const auto& [id, session] : sessions_) {
      const bool its = session->hello.member() == contributor.member && session->traced;
      if (!its || job_.gone(id)) continue;
      trace_.contributed(session->hello, contributor.sequence, began);
      traced = true;
    }
  }
  return traced;
}

}  // namespace lockstep::ps
