// A parameter server's updates: versions, commits, parameters.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.h"
#include "ps/server.h"
#include "ps/server_wait.h"

namespace lockstep::ps {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::string Server::ledger_bytes() {
  wire::Ledger ledger;
  if (coordinator_) {
    coordinator_->save(ledger, now());
  } else {
    for (const auto& [member, applied] : applied_) {
      while (ledger.members_size() <= member) ledger.add_members();
      ledger.mutable_members(member)->set_incarnation(applied.first);
      ledger.mutable_members(member)->set_applied(applied.second);
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
      fmt::format("the ledger of the data takes {} bytes; at most {} are allowed: the shares of an epoch"
                  "are in too many pieces; a larger batch makes fewer",
                  ledger.size(), kMostLedgerBytes));
}

void Server::record_contributions() {
  if (!options_.contributions) return;
  if (!contributions_) contributions_.emplace(options_.folder + "/contributions.csv");
  contributions_->add(coordinator_->version(), coordinator_->contributions());
}

void Server::apply_one(const SessionPtr& session, const Push& push, float scale) {
  const View before = shard_->current();
  const optim::Update update{before.version, optim::learning_rate(rules_.schedule, before.version), scale};
  if (coordinator_) {
    coordinator_->applied(push);
    record_contributions();
  } else {
    applied_[push.member] = {push.incarnation, push.sequence};
  }
  ++pushes_;
  const double began = now();
  const std::string ledger = checked_ledger();
  if (job_->lock_free()) {  // already applied in place
    shard_->commit_ledger(bytes_of(ledger));
    times_.add(Stage::store, now() - began);
    return;
  }
  const double written = now() - began;
  const Contribution contribution{session->staging, 1};
  shard_->apply({&contribution, 1}, 1, update, bytes_of(ledger));
  count_update(began, written + shard_->commit_seconds(), session->traced);
  if (session->traced) trace_.contributed(session->hello, push.sequence, began);
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

void Server::tell_received(const Session& session) {
  if (coordinator_stream_ == nullptr || session.sequence == 0) return;
  transport::Header told = header(Kind::received);
  told.offset = static_cast<uint64_t>(session.hello.member());
  told.extra = session.hello.incarnation();
  told.sequence = session.sequence;
  static_cast<void>(coordinator_stream_->write(told));
}

void Server::tell_received_again() {
  for (const auto& [member, session] : sessions_) tell_received(*session);
}

void Server::commit_if_ready() {
  if (!coordinator_ || held_ > 0 || !initialised_) return;
  while (const std::optional<Decision> decision = coordinator_->decide()) {
    if (!apply_decision(*decision, false)) break;
    version_since_ = now();
    warned_ = false;
    wire::Commit commit;
    to_wire(*decision, commit);
    if (coordinator_->options().servers > 1) {
      control_streams_.send(header(Kind::commit), &commit,
                            [](const Peer& peer) { return peer.role.starts_with("ps:"); });
    }
  }
  changed_.notify_all();
}

bool Server::apply_decision(const Decision& decision, bool without_missing) {
  std::vector<Contribution> contributions;
  for (const Contributor& contributor : decision.contributors) {
    const auto found = sessions_.find(contributor.member);
    const bool here = found != sessions_.end() && found->second->sequence == contributor.sequence &&
                      found->second->hello.incarnation() == contributor.incarnation;
    if (here) {
      contributions.push_back({found->second->staging, contributor.weight});
    } else if (!without_missing) {
      return false;
    } else {
      log("warning", fmt::format("step {}: the gradient of {} is lost; ps:{} goes on without it", decision.version,
                                 member_name(contributor.member), options_.index));
    }
  }
  const double began = now();
  const uint64_t version = decision.version - 1;
  optim::Update update{version, optim::learning_rate(rules_.schedule, version), 1};
  gradient_norm_ = std::numeric_limits<float>::quiet_NaN();
  if (rules_.clip_norm > 0 && !contributions.empty()) {
    constexpr double kTiny = 1e-6;
    const double norm = std::sqrt(shard_->sum_of_squares(contributions, decision.mean_scale));
    gradient_norm_ = static_cast<float>(norm);
    update.gradient_scale = static_cast<float>(std::min(1.0, static_cast<double>(rules_.clip_norm) / (norm + kTiny)));
  }
  pushes_ += decision.contributors.size();
  if (coordinator_) {
    coordinator_->committed(decision);
    record_contributions();
  }
  const double before = now();
  const std::string ledger = checked_ledger();
  double stored = now() - before;
  if (contributions.empty()) {
    const View same = shard_->current();
    shard_->initialise(decision.version, same.parameters, same.slots, bytes_of(ledger));
  } else {
    shard_->apply(contributions, decision.mean_scale, update, bytes_of(ledger));
    stored += shard_->commit_seconds();
  }
  bool traced = false;
  for (const Contributor& contributor : decision.contributors) {
    const auto found = sessions_.find(contributor.member);
    if (found == sessions_.end() || !found->second->traced) continue;
    trace_.contributed(found->second->hello, contributor.sequence, began);
    traced = true;
  }
  count_update(began, stored, traced);
  return true;
}

void Server::apply_orders(bool without_missing) {
  while (!orders_.empty() && initialised_ && held_ == 0) {
    const uint64_t version = shard_->current().version;
    const Decision& order = orders_.front();
    if (order.version > version && !apply_decision(order, without_missing)) return;
    orders_.pop_front();
    order_since_ = now();
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
      return initialised_ && shard_->current().version >= frame.header.version;
    });
    view = shard_->current();
  }
  send_parameters(session, view, {}, 0);
}

}  // namespace lockstep::ps
