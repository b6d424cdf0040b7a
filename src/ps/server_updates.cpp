// How a parameter server makes versions: an update is counted with the mutex held, applied and stored by the Applier
// without it, and announced and answered with it again. Whether its worker leaves, comes back or is replaced meanwhile,
// it counts once.
//
// A hand makes the small versions that its requests find, and every thread short ones, as waking another thread would
// take longer. Others are left to the maker thread, which sleeps otherwise: a hand serves many streams, heartbeats
// among them.
//
// A lock-free update (Hogwild) is counted and stored like that, and applied after that by the hand of its worker. A
// process killed in between keeps a part of it.
#include "optim/schedule.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

constexpr std::chrono::milliseconds kRoomPoll{10};  ///< between two looks whether a View has ended
constexpr size_t kShort = size_t{256} << 10;        ///< elements read and written, in some 0.1 ms

}  // namespace

void Server::settle() { makes_at_once_ ? make_some() : let_others_make(); }

void Server::make_some() {
  int made = 0;
  do carry_out(job_.orders());
  while (made < kMostAtOnce && make_next() && ++made > 0);
  carry_out(job_.orders());
  if (made == kMostAtOnce && job_.next(now())) ask_to_make();
}

void Server::ask_to_make() {
  asked_to_make_ = true;
  to_make_.notify_one();
}

void Server::let_others_make() {
  carry_out(job_.orders());
  const std::optional<Update> next = job_.next(now());
  if (!next) return;
  is_short(*next) ? make_some() : ask_to_make();
}

bool Server::is_short(const Update& update) const {
  if (options_.durability == Durability::machine || options_.at_update) return false;  // it may wait
  if (update.parts.empty()) return false;                                              // it copies all parameters
  const size_t elements = update.parts.front().values->size();
  return elements * (update.parts.size() + 1) <= kShort;
}

void Server::make_versions() try {
  const base::MutexLock lock(mutex_);
  for (;;) {
    while (!asked_to_make_ && tasks_.empty() && !ended_) to_make_.wait(mutex_);
    if (ended_) return;
    while (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    if (!std::exchange(asked_to_make_, false)) continue;
    if (job_.waits_for_room()) to_make_.wait_for(mutex_, kRoomPoll);
    make_some();
  }
} catch (const std::exception&) {
  end_with_error();
}

double Server::seconds_of_updates() const { return updates_ + (update_since_ == 0 ? 0 : now() - update_since_); }

void Server::with_shard(const std::function<void(const Applier::Work&)>& what) {
  std::optional<Applier::Work> work(std::in_place, applier_, shard_);
  mutex_.unlock();
  std::exception_ptr error;
  try {
    what(*work);
  } catch (...) {
    error = std::current_exception();
  }
  work.reset();  // before the mutex is taken: set_initial holds it while it waits
  mutex_.lock();
  if (!error) return;
  if (!ended_) error_ = error;  // the update is counted, and cannot be made
  end({});
  std::rethrow_exception(error);
}

bool Server::make_next() {
  const std::optional<Update> update = job_.next(now());
  if (!update) return false;
  const bool there = job_.config().lock_free() || shard_->has_room();
  if (!job_.room(there, options_.folder, now())) {
    ask_to_make();  // the maker looks again soon
    return false;
  }
  make(*update);
  return true;
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
  if (orders.changed) wake_waiting();
}

void Server::make(const Update& update) {
  const double began = now();
  job_.begin(update, began);
  if (job_.coordinator() != nullptr && options_.contributions) {
    if (!contributions_) contributions_.emplace(options_.folder + "/contributions.csv");
    contributions_->add(job_.version(), job_.coordinator()->contributions());
  }
  const Rules& rules = job_.rules();
  const bool sync = job_.config().sync();
  const uint64_t version = update.decision.version - 1;
  Applier::Task task{update,
                     {version, optim::learning_rate(rules.schedule, version), 1},
                     0,
                     job_.config().lock_free(),
                     job_.ledger(now())};
  if (!sync && !update.parts.empty()) task.how.gradient_scale = update.parts.front().scale;  // clipped by its worker
  if (sync) task.clip_norm = rules.clip_norm;
  Applier::Done done;
  update_since_ = began;
  with_shard([&](const Applier::Work& work) { done = applier_.make(work, task); });
  updates_ = seconds_of_updates();
  update_since_ = 0;
  job_.set_gradient_norm(done.gradient_norm);
  if (!task.lock_free) trace_update(update.decision, began, done.stored);
  const std::optional<Booked> booked = task.lock_free ? job_.book(update, done.how) : std::nullopt;
  job_.finish(update, now());
  carry_out(job_.orders());
  if (booked) apply(*booked);
  times_.add(Stage::store, done.stored);
  if (!task.lock_free) times_.add(Stage::apply, now() - began - done.stored);
}

void Server::apply(const Booked& booked) {
  with_shard([&](const Applier::Work& work) { Applier::apply_in_place(work, booked); });
  job_.applied();
  wake_waiting();
}

double Server::apply_booked(Session& session) {
  const std::optional<Booked> booked = job_.take_booked(session.id);
  if (!booked) return 0;
  const double began = now();
  apply(*booked);
  const double ended = now();
  times_.add(Stage::apply, ended - began);
  if (session.traced) trace_.applied(*session.trace, session.hello, session.coming, began, ended);
  return ended - began;
}

void Server::trace_update(const Decision& decision, double began, double stored) {
  bool traced = false;
  for (const Contributor& contributor : decision.contributors) {
    for (const auto& [id, session] : sessions_) {
      const bool its = session->hello.member() == contributor.member && session->traced;
      if (!its || job_.gone(id)) continue;
      trace_.contributed(session->hello, contributor.sequence, began);
      traced = true;
    }
  }
  if (traced) trace_.updated(decision.version, began, now(), stored);
}

}  // namespace lockstep::ps
