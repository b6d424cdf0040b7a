// Forming groups and ending, for the training thread.
#include "allreduce/elastic/elastic_membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/elastic_membership_impl.h"
#include "allreduce/elastic/messages.h"
#include "lockstep/error.h"

namespace lockstep::allreduce {
namespace {

using elastic::Decision;
using elastic::Preparation;

constexpr std::chrono::milliseconds kLook{100};  ///< between checks of the interrupt
constexpr double kConnect = 30;                  ///< seconds for the engine to connect a group
constexpr double kFarewell = 20;      ///< seconds for all to hear of the end, and for the evaluator's last request
constexpr double kShortFarewell = 2;  ///< the same for members that do not lead

elastic::AssemblyRules rules_of(const ElasticOptions& options, uint64_t incarnation, const std::string& authority) {
  elastic::AssemblyRules rules;
  const std::vector<cluster::Task> members = options.spec.members();
  rules.me = options.spec.member_index(options.task);
  rules.members = static_cast<int>(members.size());
  rules.incarnation = incarnation;
  rules.expected = options.expected;
  rules.min_workers = options.min_workers;
  rules.max_workers = options.max_workers;
  rules.allow_split = options.allow_split;
  rules.relayed = rules.members > elastic::kMeshMembers;
  rules.authority = authority;
  rules.latest = options.latest;
  rules.start_wait = options.start_wait;
  rules.patience = options.patience;
  for (const cluster::Task& task : members) {
    rules.names.push_back(task.str());
    rules.addresses.push_back(options.spec.address(task));
  }
  return rules;
}

}  // namespace

ElasticMembership::Impl::Impl(ElasticOptions options)
    : options_(std::move(options)),
      publications_(!options_.spec.evaluator.empty()),
      authority_(options_.authority ? options_.authority() : nullptr),
      assembly_(rules_of(options_, incarnation_, authority_ ? authority_->name() : "")) {
  elastic::MeshOptions mesh;
  mesh.spec = options_.spec;
  mesh.task = options_.task;
  mesh.security = options_.security;
  mesh.job = options_.job;
  mesh.incarnation = incarnation_;
  mesh.meter = options_.meter;
  const base::MutexLock lock(mutex_);  // threads of the mesh wait for this lock
  mesh_ = std::make_unique<elastic::Mesh>(std::move(mesh), *this);
  if (mesh_->relays()) mesh_->publish(assembly_.status());
}

ElasticMembership::Impl::~Impl() {
  publications_.stop();
  std::unique_ptr<elastic::Mesh> mesh;
  {
    const base::MutexLock lock(mutex_);
    mesh = std::move(mesh_);
  }
  mesh->stop();
  authority_.reset();
}

void ElasticMembership::Impl::ask_authority(const elastic::Question& question) {
  const auto done = [this](const authority::Answer& answer) {
    act([&](elastic::Assembly& assembly) { assembly.answered(answer, now()); });
    wake_.notify_all();  // a checkpoint waits for it
  };
  if (question.swap) {
    authority_->swap(question.swap->expected, question.swap->next, done);
  } else {
    authority_->read(done);
  }
}

void ElasticMembership::Impl::publish(const elastic::MemberStatus& status) {
  if (status == last_status_) return;
  last_status_ = status;
  if (mesh_) mesh_->publish(status);
}

void ElasticMembership::Impl::send_all() {
  const std::vector<elastic::Send> sends = assembly_.take_sends();
  for (size_t i = 0; i < sends.size();) {
    const elastic::Message& message = sends[i].message;
    const auto* status = std::get_if<elastic::MemberStatus>(&message);
    if (sends[i].to < 0 && status != nullptr) {
      publish(*status);
      ++i;
      continue;
    }
    // One message to several members is sent as one.
    std::vector<int> to;
    for (const std::string text = encode(message); i < sends.size() && sends[i].to >= 0; ++i) {
      const bool same = kind_of(sends[i].message) == kind_of(message) && encode(sends[i].message) == text;
      if (!same) break;
      to.push_back(sends[i].to);
    }
    if (mesh_) mesh_->send(to, message);
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
  for (double looked = 0; !failure;) {
    if (now() - looked >= std::chrono::duration<double>(kLook).count()) {
      look_for_ending();
      looked = now();
    }
    base::Result<Work> work = next_work();
    if (!work) {
      failure = work.failure();
    } else if (work.value().preparation) {
      const base::Status prepared = prepare(*work.value().preparation);
      if (!prepared) failure = prepared.failure();
    } else if (work.value().decision) {
      base::Result<Formed> formed = connect(*work.value().decision);
      if (formed) return formed;
    }
  }
  act([this](elastic::Assembly& assembly) { assembly.withdraw(interrupted()); });
  await_informed();
  return std::move(*failure).because(options_.task.str());
}

void ElasticMembership::Impl::look_for_ending() {
  const auto ending = options_.look_for_ending ? options_.look_for_ending() : std::nullopt;
  if (!ending) return;
  const bool ended_by_user = ending->reason == train::StopReason::interrupted;
  act([&](elastic::Assembly& assembly) { assembly.found_ending(ending->step, ended_by_user, now()); });
}

void ElasticMembership::Impl::await_informed() {
  const double until = now() + kShortFarewell;
  const base::MutexLock lock(mutex_);
  const auto done = [this] {
    mutex_.assert_held();
    return assembly_.all_informed() && assembly_.all_accounted_for();
  };
  while (assembly_.interrupted() && !done() && now() < until) wake_.wait_for(mutex_, kLook);
}

base::Result<ElasticMembership::Impl::Work> ElasticMembership::Impl::next_work() {
  const base::MutexLock lock(mutex_);
  using base::Failure;
  using base::FailureKind;
  if (interrupted()) return Failure{FailureKind::interrupted, "interrupted while forming a group"};
  if (!assembly_.failure().empty()) {
    return Failure{assembly_.over() ? FailureKind::gone : FailureKind::timeout, assembly_.failure()};
  }
  if (assembly_.interrupted()) return Failure{FailureKind::interrupted, "another member was interrupted"};
  if (!failed_.empty()) return Failure{FailureKind::limit, failed_};
  if (!refusal_.empty()) return Failure{FailureKind::usage, refusal_};
  Work work{assembly_.take_preparation(), {}};
  if (!work.preparation) work.decision = assembly_.take_decision();
  if (!work.preparation && !work.decision) wake_.wait_for(mutex_, kLook);
  return work;
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
      base::Failure{base::FailureKind::corrupt, "its addresses belong to another group"};
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
      // Leaving before all have heard of the end would break the step that tells them.
      const bool may_leave = assembly_.all_informed() || now() > until;
      if (interrupted() && may_leave) {
        return base::Failure{base::FailureKind::interrupted, "interrupted while the leader was closing"};
      }
      wake_.wait_for(mutex_, kLook);
    }
  }
  announce_end(kShortFarewell, false);
  return Parting::leaves;
}

void ElasticMembership::Impl::end() {
  act([](elastic::Assembly& assembly) { assembly.end(now()); });
  announce_end(interrupted() ? kShortFarewell : kFarewell, !interrupted());
}

void ElasticMembership::Impl::announce_end(double at_most, bool to_evaluator) {
  double until = now() + at_most;
  const bool was_interrupted = interrupted();
  while (now() < until) {
    if (interrupted() && !was_interrupted) until = std::min(until, now() + kShortFarewell / 2);
    const bool evaluator = publications_.awaited() || (to_evaluator && publications_.expected());
    const base::MutexLock lock(mutex_);
    if (assembly_.may_leave(now()) && !evaluator) return;
    wake_.wait_for(mutex_, kLook);
  }
}

std::string ElasticMembership::Impl::why_not_latest() {
  act([](elastic::Assembly& assembly) { assembly.begin_check(now()); });
  const base::MutexLock lock(mutex_);
  std::optional<std::string> why;
  while (!(why = assembly_.checked(now()))) wake_.wait_for(mutex_, kLook);
  return *why;
}

bool ElasticMembership::Impl::ask(bool (elastic::Assembly::*what)() const) {
  const base::MutexLock lock(mutex_);
  return (assembly_.*what)();
}

// The public class.

ElasticMembership::ElasticMembership(ElasticOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ElasticMembership::~ElasticMembership() = default;
base::Result<Formed> ElasticMembership::form(const Standing& standing) { return impl_->form(standing); }
void ElasticMembership::received() { impl_->received(); }
bool ElasticMembership::wants_regroup() const { return impl_->wants_regroup(); }
base::Result<Parting> ElasticMembership::close(train::StopReason why) { return impl_->close(why); }
void ElasticMembership::end() { impl_->end(); }
bool ElasticMembership::over() const { return impl_->ask(&elastic::Assembly::over); }
bool ElasticMembership::interrupted() const { return impl_->ask(&elastic::Assembly::interrupted); }
bool ElasticMembership::first_survivor() const { return impl_->ask(&elastic::Assembly::first_survivor); }
train::StopReason ElasticMembership::evaluator_stop() const { return impl_->publications().stop_reason(); }
std::string ElasticMembership::why_not_latest() { return impl_->why_not_latest(); }
void ElasticMembership::publish(uint64_t step, std::span<const float> parameters) {
  impl_->publications().publish(step, parameters);
}

}  // namespace lockstep::allreduce
