// How an elastic member works: the training thread's calls and what the mesh tells meet in an Assembly, which one mutex
// guards. Internal to elastic_membership*.cpp.
//
//   elastic_membership.cpp        forming groups and ending, for the training thread
//   elastic_membership_mesh.cpp   what the mesh tells, on its threads
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/elastic/assembly.h"
#include "allreduce/elastic/elastic_membership.h"
#include "allreduce/elastic/mesh.h"
#include "allreduce/elastic/publications.h"
#include "base/mutex.h"
#include "wire/liveness.h"

namespace lockstep::allreduce {

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
  elastic::Message status() override;
  void arrived(int peer, const elastic::MemberStatus& status) override;
  void took(int peer, const elastic::Message& message) override;
  void lost(int peer, const std::string& why) override;
  void certain(int peer) override;
  void absent(int peer, const std::string& why) override;
  void refused(const std::string& line, bool by_member) override;
  void failed(const std::string& line) override;
  void serve_guest(transport::Stream& stream, const transport::Frame& first) override;
  void tick() override;

 private:
  /// Seconds on the assembly's clock.
  [[nodiscard]] static double now() {
    return std::chrono::duration<double>(wire::Clock::now().time_since_epoch()).count();
  }
  /// Calls `change` under the lock, then does what follows from it.
  template <class Change>
  void act(const Change& change);
  void send_all() LOCKSTEP_REQUIRES(mutex_);
  /// What the thread that forms a group has to do; after a while, if only to look again. A failure ends the forming.
  struct Errand {
    std::optional<elastic::Preparation> preparation;
    std::optional<elastic::Decision> decision;
  };
  base::Result<Errand> next_errand();
  base::Status prepare(const elastic::Preparation& preparation);
  base::Result<Formed> connect(const elastic::Decision& decision);
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

}  // namespace lockstep::allreduce
