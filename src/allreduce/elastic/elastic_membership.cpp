#include "allreduce/elastic/elastic_membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "allreduce/elastic/assembly.h"
#include "allreduce/elastic/mesh.h"
#include "allreduce/elastic/messages.h"
#include "allreduce/elastic/publications.h"
#include "base/mutex.h"
#include "cluster.pb.h"
#include "lockstep/error.h"
#include "wire/frames.h"
#include "wire/liveness.h"

namespace lockstep::allreduce {
namespace {

using elastic::Decision;
using elastic::MemberPhase;
using elastic::Message;
using elastic::Preparation;

constexpr std::chrono::milliseconds kLook{100};  ///< between looks at the interrupt
constexpr double kConnect = 30;                  ///< seconds for the engine to connect a group
constexpr double kFarewell = 20;                 ///< seconds for all to hear of the end, and the evaluator's last look
constexpr double kShortFarewell = 2;             ///< the same for whoever does not lead
constexpr size_t kMostLines = 100;               ///< about strangers

double now() { return std::chrono::duration<double>(wire::Clock::now().time_since_epoch()).count(); }

elastic::AssemblyRules rules_of(const ElasticOptions& options, uint64_t incarnation) {
  elastic::AssemblyRules rules;
  const std::vector<cluster::Task> members = options.spec.members();
  rules.me = options.spec.member_index(options.task);
  rules.members = static_cast<int>(members.size());
  rules.incarnation = incarnation;
  rules.expected = options.expected;
  rules.min_workers = options.min_workers;
  rules.max_workers = options.max_workers;
  rules.start_wait = options.start_wait;
  rules.patience = options.patience;
  for (const cluster::Task& task : members) {
    rules.names.push_back(task.str());
    rules.addresses.push_back(options.spec.address(task));
  }
  return rules;
}

}  // namespace

class ElasticMembership::Impl final : public elastic::MeshOwner {
 public:
  explicit Impl(ElasticOptions options);
  ~Impl() override;

  base::Result<Formed> form(const Standing& standing);
  base::Result<Parting> close(train::StopReason why);
  void end();
  [[nodiscard]] bool says(bool (elastic::Assembly::*what)() const);
  [[nodiscard]] bool wants_regroup() const { return wants_regroup_; }
  elastic::Publications& publications() { return publications_; }

  // Of the mesh.
  Message status() override;
  void arrived(int peer, const elastic::MemberStatus& status) override;
  void took(int peer, const Message& message) override;
  void lost(int peer, const std::string& why) override;
  void certain(int peer) override;
  void absent(int peer, const std::string& why) override;
  void refused(const std::string& line, bool by_member) override;
  void failed(const std::string& line) override;
  void serve_guest(transport::Stream& stream, const transport::Frame& first) override;
  void tick() override;

 private:
  /// Calls `change` under the lock, then does what follows from it.
  template <class Change>
  void act(const Change& change);
  void send_all() LOCKSTEP_REQUIRES(mutex_);
  /// What the thread that forms a group has to do; after a while, if only to look again. A failure ends the forming.
  struct Errand {
    std::optional<Preparation> preparation;
    std::optional<Decision> decision;
  };
  base::Result<Errand> next_errand();
  base::Status prepare(const Preparation& preparation);
  base::Result<Formed> connect(const Decision& decision);
  [[nodiscard]] bool give_up(double until);
  void look_for_ending();
  /// Until the others of the group know that this member was interrupted, and it knows who of them has gone on.
  void await_parting();
  /// Until everyone has heard of the end.
  void say_farewell(double at_most, bool to_evaluator);
  [[nodiscard]] bool interrupted() const { return options_.interrupt != nullptr && options_.interrupt->load(); }
  [[nodiscard]] elastic::Publications::Place place();

  ElasticOptions options_;
  const uint64_t incarnation_ = wire::new_incarnation();
  elastic::Publications publications_;
  std::unique_ptr<collective::Joining> joining_;  ///< the training thread's
  uint64_t joining_number_ = 0;
  std::atomic<bool> wants_regroup_ = false;

  base::Mutex mutex_;
  base::Condition wake_;
  elastic::Assembly assembly_ LOCKSTEP_GUARDED_BY(mutex_);
  std::shared_ptr<collective::Collective> collective_ LOCKSTEP_GUARDED_BY(mutex_);  ///< of the group, until it breaks
  elastic::MemberStatus told_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string refusal_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string failed_ LOCKSTEP_GUARDED_BY(mutex_);  ///< why this member must end
  std::set<std::string> lines_ LOCKSTEP_GUARDED_BY(mutex_);
  std::unique_ptr<elastic::Mesh> mesh_ LOCKSTEP_GUARDED_BY(mutex_);
};

ElasticMembership::Impl::Impl(ElasticOptions options)
    : options_(std::move(options)),
      publications_(!options_.spec.evaluator.empty()),
      assembly_(rules_of(options_, incarnation_)) {
  elastic::MeshOptions mesh;
  mesh.spec = options_.spec;
  mesh.task = options_.task;
  mesh.security = options_.security;
  mesh.job = options_.job;
  mesh.incarnation = incarnation_;
  mesh.meter = options_.meter;
  const base::MutexLock lock(mutex_);  // threads of the mesh wait for it
  mesh_ = std::make_unique<elastic::Mesh>(std::move(mesh), *this);
}

ElasticMembership::Impl::~Impl() {
  publications_.stop();
  std::unique_ptr<elastic::Mesh> mesh;
  {
    const base::MutexLock lock(mutex_);
    mesh = std::move(mesh_);
  }
  mesh->stop();
}

template <class Change>
void ElasticMembership::Impl::act(const Change& change) {
  std::vector<elastic::Say> says;
  std::shared_ptr<collective::Collective> broken;
  std::string why;
  {
    const base::MutexLock lock(mutex_);
    change(assembly_);
    send_all();
    says = assembly_.take_says();
    wants_regroup_ = assembly_.wants_regroup();
    why = assembly_.broken();
    if (!why.empty()) broken = std::exchange(collective_, nullptr);
    wake_.notify_all();
  }
  if (broken) broken->abort(why);
  if (!options_.log) return;
  for (const elastic::Say& say : says) options_.log(say.level, say.text);
}

void ElasticMembership::Impl::send_all() {
  for (const elastic::Send& send : assembly_.take_sends()) {
    const auto* status = std::get_if<elastic::MemberStatus>(&send.message);
    if (send.to < 0 && status != nullptr) {
      if (*status == told_) continue;
      told_ = *status;
    }
    if (mesh_) mesh_->send(send.to, send.message);
  }
}

// Forming.

base::Result<Formed> ElasticMembership::Impl::form(const Standing& standing) {
  act([&](elastic::Assembly& assembly) {
    mutex_.assert_held();
    collective_.reset();
    assembly.form(standing, now());
  });
  std::optional<base::Failure> failure;
  while (!failure) {
    look_for_ending();
    base::Result<Errand> errand = next_errand();
    if (!errand) {
      failure = errand.failure();
    } else if (errand.value().preparation) {
      const base::Status prepared = prepare(*errand.value().preparation);
      if (!prepared) failure = prepared.failure();
    } else if (errand.value().decision) {
      base::Result<Formed> formed = connect(*errand.value().decision);
      if (formed) return formed;
    }
  }
  act([this](elastic::Assembly& assembly) { assembly.withdraw(interrupted()); });
  await_parting();
  return std::move(*failure).because(options_.task.str());
}

void ElasticMembership::Impl::look_for_ending() {
  const auto ending = options_.look_for_ending ? options_.look_for_ending() : std::nullopt;
  if (!ending) return;
  const bool ended_by_user = ending->reason == train::StopReason::interrupted;
  act([&](elastic::Assembly& assembly) { assembly.found_ending(ending->step, ended_by_user, now()); });
}

void ElasticMembership::Impl::await_parting() {
  const double until = now() + kShortFarewell;
  const base::MutexLock lock(mutex_);
  const auto done = [this] {
    mutex_.assert_held();
    return assembly_.parted() && assembly_.accounted();
  };
  while (assembly_.interrupted() && !done() && now() < until) wake_.wait_for(mutex_, kLook);
}

base::Result<ElasticMembership::Impl::Errand> ElasticMembership::Impl::next_errand() {
  const base::MutexLock lock(mutex_);
  using base::Failure;
  using base::FailureKind;
  if (interrupted()) return Failure{FailureKind::interrupted, "interrupted while a group was being made"};
  if (!assembly_.failure().empty()) {
    return Failure{assembly_.over() ? FailureKind::gone : FailureKind::timeout, assembly_.failure()};
  }
  if (assembly_.interrupted()) return Failure{FailureKind::interrupted, "another member was interrupted"};
  if (!failed_.empty()) return Failure{FailureKind::limit, failed_};
  if (!refusal_.empty()) return Failure{FailureKind::usage, refusal_};
  Errand errand{assembly_.take_preparation(), {}};
  if (!errand.preparation) errand.decision = assembly_.take_decision();
  if (!errand.preparation && !errand.decision) wake_.wait_for(mutex_, kLook);
  return errand;
}

base::Status ElasticMembership::Impl::prepare(const Preparation& preparation) try {
  joining_.reset();
  joining_ = options_.engine(preparation.rank, preparation.size);
  joining_number_ = preparation.number;
  const std::string address = joining_->address();
  act([&](elastic::Assembly& assembly) { assembly.prepared(preparation.number, address, now()); });
  return {};
} catch (const Error& error) {
  return base::Failure::of(error);
}

bool ElasticMembership::Impl::give_up(double until) {
  const base::MutexLock lock(mutex_);
  return interrupted() || now() > until || !assembly_.why_give_up().empty();
}

base::Result<Formed> ElasticMembership::Impl::connect(const Decision& decision) {
  const double until = now() + kConnect;
  base::Result<std::unique_ptr<collective::Collective>> made =
      base::Failure{base::FailureKind::corrupt, "its addresses are of another group"};
  if (joining_ && joining_number_ == decision.group.number) {
    made = joining_->connect(decision.addresses, [&] { return give_up(until); });
  }
  joining_.reset();
  if (!made) {
    std::vector<std::string> names;
    for (const elastic::Seat& seat : decision.group.seats) {
      names.push_back(options_.spec.members()[static_cast<size_t>(seat.member)].str());
    }
    const base::Failure failure = base::Failure(made.failure()).named(names);
    act([&](elastic::Assembly& assembly) {
      const std::string why = assembly.why_give_up();
      assembly.not_connected(why.empty() ? failure.message() : why, now());
    });
    return failure;
  }
  Formed formed;
  formed.number = decision.group.number;
  for (const elastic::Seat& seat : decision.group.seats) formed.members.push_back(seat.member);
  formed.collective = std::move(made.value());
  formed.source = decision.source;
  formed.transfer = decision.transfer;
  formed.standing = decision.standing;
  const auto& holders = decision.holders;
  formed.holds = std::find(holders.begin(), holders.end(), formed.collective->rank()) != holders.end();
  act([&](elastic::Assembly& assembly) {
    mutex_.assert_held();
    collective_ = formed.collective;
    assembly.connected(now());
    formed.announced = assembly.announced();
  });
  return formed;
}

// The end.

base::Result<Parting> ElasticMembership::Impl::close(train::StopReason why) {
  act([why](elastic::Assembly& assembly) { assembly.close(now(), why == train::StopReason::interrupted); });
  const double until = now() + kShortFarewell;
  {
    const base::MutexLock lock(mutex_);
    for (;;) {
      if (assembly_.knows_end()) break;
      const int leader = assembly_.leader(now());
      if (leader < 0 || leader == options_.spec.member_index(options_.task)) return Parting::closes;
      // Whoever goes before all have heard of the end breaks the step that tells them.
      const bool may_go = assembly_.parted() || now() > until;
      if (interrupted() && may_go) {
        return base::Failure{base::FailureKind::interrupted, "interrupted while the leader was closing"};
      }
      wake_.wait_for(mutex_, kLook);
    }
  }
  say_farewell(kShortFarewell, false);
  return Parting::leaves;
}

void ElasticMembership::Impl::end() {
  act([](elastic::Assembly& assembly) { assembly.end(now()); });
  say_farewell(interrupted() ? kShortFarewell : kFarewell, !interrupted());
}

void ElasticMembership::Impl::say_farewell(double at_most, bool to_evaluator) {
  double until = now() + at_most;
  const bool was_interrupted = interrupted();
  while (now() < until) {
    if (interrupted() && !was_interrupted) until = std::min(until, now() + kShortFarewell / 2);
    const bool evaluator = publications_.awaited() || (to_evaluator && publications_.expected());
    const base::MutexLock lock(mutex_);
    if (assembly_.may_go(now()) && !evaluator) return;
    wake_.wait_for(mutex_, kLook);
  }
}

bool ElasticMembership::Impl::says(bool (elastic::Assembly::*what)() const) {
  const base::MutexLock lock(mutex_);
  return (assembly_.*what)();
}

// What the mesh tells.

Message ElasticMembership::Impl::status() {
  const base::MutexLock lock(mutex_);
  return assembly_.status();
}

void ElasticMembership::Impl::arrived(int peer, const elastic::MemberStatus& status) {
  act([&](elastic::Assembly& assembly) { assembly.arrived(peer, status, now()); });
}

void ElasticMembership::Impl::took(int peer, const Message& message) {
  act([&](elastic::Assembly& assembly) { assembly.take(peer, message, now()); });
}

void ElasticMembership::Impl::lost(int peer, const std::string& why) {
  act([&](elastic::Assembly& assembly) { assembly.lost(peer, why, now()); });
}

void ElasticMembership::Impl::certain(int peer) {
  act([&](elastic::Assembly& assembly) { assembly.certain(peer, now()); });
}

void ElasticMembership::Impl::absent(int peer, const std::string& why) {
  act([&](elastic::Assembly& assembly) { assembly.absent(peer, why); });
}

void ElasticMembership::Impl::tick() {
  act([](elastic::Assembly& assembly) { assembly.tick(now()); });
}

void ElasticMembership::Impl::refused(const std::string& line, bool by_member) {
  {
    const base::MutexLock lock(mutex_);
    // One who trains goes on with those who know it; one who has not begun is told why it cannot.
    const MemberPhase phase = assembly_.phase();
    const bool begins = phase == MemberPhase::starting || phase == MemberPhase::forming;
    if (by_member && begins && !assembly_.status().live && refusal_.empty()) refusal_ = line;
    if (lines_.size() >= kMostLines || !lines_.insert(line).second) return;
    wake_.notify_all();
  }
  if (options_.log) options_.log("warning", line);
}

void ElasticMembership::Impl::failed(const std::string& line) {
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
  if (member >= 0) act([&](elastic::Assembly& assembly) { assembly.expect(member, now()); });
  wire::Welcome welcome;
  welcome.set_run(options_.run);
  welcome.set_incarnation(incarnation_);
  if (!wire::send(stream, elastic::header(elastic::Kind::welcome), welcome)) return;
  if (elastic::kind_of(first) == elastic::Kind::visit) publications_.serve(stream, [this] { return place(); });
}

// The class as others see it.

ElasticMembership::ElasticMembership(ElasticOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ElasticMembership::~ElasticMembership() = default;
base::Result<Formed> ElasticMembership::form(const Standing& standing) { return impl_->form(standing); }
bool ElasticMembership::wants_regroup() const { return impl_->wants_regroup(); }
base::Result<Parting> ElasticMembership::close(train::StopReason why) { return impl_->close(why); }
void ElasticMembership::end() { impl_->end(); }
bool ElasticMembership::over() const { return impl_->says(&elastic::Assembly::over); }
bool ElasticMembership::interrupted() const { return impl_->says(&elastic::Assembly::interrupted); }
bool ElasticMembership::foremost() const { return impl_->says(&elastic::Assembly::foremost); }
train::StopReason ElasticMembership::evaluators_word() const { return impl_->publications().word(); }
void ElasticMembership::publish(uint64_t step, std::span<const float> parameters) {
  impl_->publications().publish(step, parameters);
}

}  // namespace lockstep::allreduce
