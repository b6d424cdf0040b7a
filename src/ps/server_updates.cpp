// A parameter server's updates: versions, commits, parameters.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.h"
#include "ps/server.h"
#include "ps/server_wait.h"

namespace lockstep::ps {
namespace {

constexpr double kRoomWait = 60;  ///< seconds; a silent worker is given up long before

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::string Server::ledger_bytes() {
  wire::Ledger ledger;
  if (coordinator_) {
    coordinator_->save(ledger, now());
  } else {
    for (const auto& [member, push] : follower_->applied()) {
      while (ledger.members_size() <= member) ledger.add_members();
      ledger.mutable_members(member)->set_incarnation(push.incarnation);
      ledger.mutable_members(member)->set_applied(push.sequence);
    }
  }
  ledger.set_generation(generation_);
  return ledger.SerializeAsString();
}

/// Serializes the ledger. One that is too large is this server's error, not a peer's: the server ends with a line.
std::string Server::checked_ledger() {
  std::string ledger = ledger_bytes();
  if (ledger.size() <= kMostLedgerBytes) return ledger;
  throw IoError(
      fmt::format("the ledger of the data takes {} bytes; at most {} are allowed: the shares of an epoch "
                  "are in too many pieces; a larger batch makes fewer",
                  ledger.size(), kMostLedgerBytes));
}

void Server::record_contributions() {
  if (!options_.contributions) return;
  if (!contributions_) contributions_.emplace(options_.folder + "/contributions.csv");
  contributions_->add(coordinator_->version(), coordinator_->contributions());
}

void Server::keep(const SessionPtr& session, const Push& push, float scale) {
  const PushName name{push.incarnation, push.sequence};
  gradients_[push.member] = {name, session->staging, scale, std::nullopt};
  if (follower_) follower_->arrived(push.member, name);
}

void Server::overwrite(const SessionPtr& session) {
  const auto kept = gradients_.find(session->hello.member());
  if (kept == gradients_.end() || kept->second.values != session->staging) return;
  gradients_.erase(kept);
  if (follower_) follower_->overwritten(session->hello.member());
}

bool Server::has_handler(int member, const Gradient& gradient) const {
  const auto session = sessions_.find(member);
  return session != sessions_.end() && session->second->staging == gradient.values;
}

void Server::count_update(double began, double stored, bool traced) {
  const double ended = now();
  update_seconds_ = ended - began;
  if (traced) trace_.updated(shard_->version(), began, ended, stored);
  times_.add(Stage::apply, update_seconds_ - stored);
  times_.add(Stage::store, stored);
}

wire::Reply Server::reply_for(int member, uint64_t known_plan) {
  wire::Reply reply;
  reply.set_stop(static_cast<uint32_t>(coordinator_->stopped()));
  const uint64_t version = coordinator_->version();
  reply.set_learning_rate(optim::learning_rate(rules_.schedule, version == 0 ? 0 : version - 1));
  reply.set_gradient_norm(gradient_norm_);
  const exchange::BatchReport& latest = coordinator_->latest();
  reply.set_examples(latest.examples);
  reply.set_loss_sum(latest.loss_sum);
  reply.set_correct(latest.correct);
  reply.set_examples_total(coordinator_->examples());
  reply.set_staleness(coordinator_->latest_staleness(member));
  if (const std::optional<data::Plan> plan = coordinator_->unseen_plan(member, known_plan)) {
    to_wire(*plan, *reply.mutable_plan());
    reply.mutable_plan()->set_batches_per_update(coordinator_->batches_per_update(member));
  }
  return reply;
}

void Server::tell_received(int member, const PushName& push) {
  if (coordinator_stream_ == nullptr) return;
  wire::Received received;
  received.set_member(member);
  received.set_incarnation(push.incarnation);
  received.set_sequence(push.sequence);
  received.set_version(follower_->version());
  received.set_generation(generation_);
  static_cast<void>(send(*coordinator_stream_, header(Kind::received), received));
}

void Server::commit_if_ready() {
  if (!coordinator_ || held_ > 0 || !initialised_) return;
  while (const std::optional<Decision> decision = coordinator_->decide()) {
    if (!has_room()) return;
    apply_decision(*decision);
    version_since_ = now();
    warned_ = false;
    if (coordinator_->options().servers > 1) announce(*decision);
    changed_.notify_all();
  }
}

void Server::announce(const Decision& decision) {
  wire::Commit commit;
  to_wire(decision, commit);
  commit.set_generation(generation_);
  control_streams_.send(header(Kind::commit), &commit, [](const Peer& peer) { return peer.role.starts_with("ps:"); });
}

std::vector<Contribution> Server::contributions_to(const Decision& decision) {
  std::vector<Contribution> contributions;
  for (const Contributor& contributor : decision.contributors) {
    const auto found = gradients_.find(contributor.member);
    const bool is_here = found != gradients_.end() && found->second.push == name_of(contributor);
    if (is_here) contributions.push_back({*found->second.values, contributor.weight});
  }
  return contributions;
}

optim::Update Server::update_of(const Decision& decision, const std::vector<Contribution>& contributions) {
  const uint64_t version = decision.version - 1;
  optim::Update update{version, optim::learning_rate(rules_.schedule, version), 1};
  gradient_norm_ = std::numeric_limits<float>::quiet_NaN();
  if (contributions.empty()) return update;
  if (!job_->sync()) {  // clipped by its worker
    update.gradient_scale = gradients_.at(decision.contributors.front().member).scale;
  } else if (rules_.clip_norm > 0) {
    constexpr double kTiny = 1e-6;
    const double norm = std::sqrt(shard_->sum_of_squares(contributions, decision.mean_scale));
    gradient_norm_ = static_cast<float>(norm);
    update.gradient_scale = static_cast<float>(std::min(1.0, static_cast<double>(rules_.clip_norm) / (norm + kTiny)));
  }
  return update;
}

bool Server::has_room() {
  if (job_->lock_free() || shard_->has_room()) {
    no_room_since_ = 0;
    return true;
  }
  const std::string line = fmt::format(
      "ps:{}: no room for another copy of the parameters in {}: updates wait for "
      "workers to read theirs",
      options_.index, options_.folder);
  if (no_room_since_ == 0) {
    no_room_since_ = now();
    log("warning", line);
  }
  if (now() - no_room_since_ < kRoomWait) return false;
  throw IoError(fmt::format("{}; none has in {:.0f} s", line, kRoomWait));
}

void Server::apply_decision(const Decision& decision) {
  const std::vector<Contribution> contributions = contributions_to(decision);
  const double began = now();
  const optim::Update update = update_of(decision, contributions);
  pushes_ += decision.contributors.size();
  if (coordinator_) {
    coordinator_->committed(decision);
    record_contributions();
  } else {
    follower_->committed(now());
  }
  const double before = now();
  const std::string ledger = checked_ledger();
  double stored = now() - before;
  if (job_->lock_free()) {
    shard_->commit_in_place(decision.version, bytes_of(ledger));
    times_.add(Stage::store, now() - before);
    return book_in_place(decision, update, !contributions.empty());
  }
  if (contributions.empty()) {
    const View same = shard_->current();
    shard_->initialise(decision.version, same.parameters, same.slots, bytes_of(ledger));
  } else {
    shard_->apply(contributions, decision.mean_scale, update, bytes_of(ledger));
    stored += shard_->commit_seconds();
  }
  count_update(began, stored, trace_contributions(decision, began));
  for (const Contributor& contributor : decision.contributors) {  // nobody sends their like again
    const auto found = gradients_.find(contributor.member);
    if (found != gradients_.end() && !has_handler(found->first, found->second)) gradients_.erase(found);
  }
}

bool Server::trace_contributions(const Decision& decision, double began) {
  bool traced = false;
  for (const Contributor& contributor : decision.contributors) {
    const auto found = sessions_.find(contributor.member);
    if (found == sessions_.end() || !found->second->traced) continue;
    trace_.contributed(found->second->hello, contributor.sequence, began);
    traced = true;
  }
  return traced;
}

void Server::apply_announced() {
  while (follower_ && initialised_) {
    const std::optional<Follower::Next> next = follower_->next(now());
    if (!next || !has_room()) return;
    for (const Contributor& lost : next->missing) {
      log("warning", fmt::format("step {}: the gradient of {} is lost; ps:{} goes on without it", next->update.version,
                                 member_name(lost.member), options_.index));
    }
    apply_decision(next->update);
    changed_.notify_all();
  }
}

void Server::send_parameters(const SessionPtr& session, const View& view, wire::Reply reply, uint64_t sequence) {
  transport::Header first = header(Kind::parameters);
  first.version = view.version;
  first.sequence = sequence;
  Element element = Element::kFloat32;
  {
    const base::MutexLock lock(mutex_);
    element = static_cast<Element>(job_->wire());
  }
  const double began = now();
  const bool traced = sequence > 0 && session->trace != nullptr && reply.received_at() > 0;
  if (traced) reply.set_sent_at(trace_.since_epoch(began));
  static_cast<void>(send_elements(session->stream, first, view.parameters, element, view.hold, &reply));
  const double ended = now();
  times_.add(Stage::send, ended - began);
  if (traced) trace_.sent(*session->trace, session->hello, sequence, began, ended);
}

void Server::count_lost(const transport::Header& join) {
  const bool of_before = join.extra > 0 && join.extra < generation_;
  if (!of_before || join.version <= began_at_ + lost_) return;
  lost_ = join.version - began_at_;
  log("warning", fmt::format("{} steps after step {} are lost", lost_, began_at_));
}

void Server::on_join(const SessionPtr& session, const transport::Frame& frame) {
  View view;
  wire::Reply reply;
  {
    const base::MutexLock lock(mutex_);
    const int member = session->hello.member();
    wait_for_parameters(session, "joining");
    count_lost(frame.header);
    coordinator_->join(member, session->hello.incarnation());
    lost_at_.erase(member);
    commit_if_ready();
    changed_.notify_all();
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->takes_part(member, session->hello.incarnation()) ||
             coordinator_->stopped() != train::StopReason::none;
    });
    reply = reply_for(member, 0);
    reply.set_generation(generation_);
    view = shard_->current();
  }
  send_parameters(session, view, reply, 0);
}

void Server::on_pull(const SessionPtr& session, const transport::Frame& frame) {
  View view;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a pull");
    wait_until(session, [&] {
      mutex_.assert_held();
      return initialised_ && shard_->version() >= frame.header.version;
    });
    view = shard_->current();
  }
  send_parameters(session, view, {}, 0);
}

}  // namespace lockstep::ps
