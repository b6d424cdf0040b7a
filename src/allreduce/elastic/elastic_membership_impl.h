// The parts of an elastic member: the training thread's calls and the mesh's events meet in an Assembly, guarded by one
// mutex. Internal to elastic_membership*.cpp.
//
//   elastic_membership.cpp        forming groups and ending, for the training thread
//   elastic_membership_mesh.cpp   events of the mesh, on its threads
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
  std::string why_not_latest();
  [[nodiscard]] bool ask(bool (elastic::Assembly::*what)() const);
  void received() {
    act([](elastic::Assembly& assembly) { assembly.received(); });
  }
  [[nodiscard]] bool wants_regroup() const { return wants_regroup_; }
  elastic::Publications& publications() { return publications_; }

  // Callbacks of the mesh.
  elastic::Message status() override;
  void on_connected(int peer, const elastic::MemberStatus& status) override;
  void on_message(int peer, const elastic::Message& message) override;
  void on_lost(int peer, const std::string& why) override;
  void on_confirmed_dead(int peer) override;
  void on_unreachable(int peer, const std::string& why) override;
  void on_refused(const std::string& line, bool by_member) override;
  void on_failed(const std::string& line) override;
  void serve_guest(transport::Stream& stream, const transport::Frame& first) override;
  void tick() override;

 private:
  /// Returns the time in seconds, on the assembly's clock.
  [[nodiscard]] static double now() {
    return std::chrono::duration<double>(wire::Clock::now().time_since_epoch()).count();
  }
  /// Calls `change` under the lock, then sends messages, writes log lines and aborts a broken group.
  template <class Change>
  void act(const Change& change);
  void send_all() LOCKSTEP_REQUIRES(mutex_);
  void publish(const elastic::MemberStatus& status) LOCKSTEP_REQUIRES(mutex_);
  void ask_authority(const elastic::Question& question);
  /// Work for the thread that forms a group. Without work it is empty after a while, so that the thread checks again. A
  /// failure ends the forming.
  struct Work {
    std::optional<elastic::Preparation> preparation;
    std::optional<elastic::Decision> decision;
  };
  base::Result<Work> next_work();
  base::Status prepare(const elastic::Preparation& preparation);
  base::Result<Formed> connect(const elastic::Decision& decision);
  [[nodiscard]] bool give_up(double until);
  void look_for_ending();
  /// Waits until the others of the group know of this member's interrupt, and it knows which of them went on.
  void await_informed();
  /// Waits until all have heard of the end.
  void announce_end(double at_most, bool to_evaluator);
  [[nodiscard]] bool interrupted() const { return options_.interrupt != nullptr && options_.interrupt->load(); }
  [[nodiscard]] elastic::Publications::Place place();

  ElasticOptions options_;
  const uint64_t incarnation_ = wire::new_incarnation();
  elastic::Publications publications_;
  /// Constant, but for its end after the mesh's. Its thread calls `act`.
  std::unique_ptr<authority::Register> authority_;
  std::unique_ptr<collective::Joining> joining_;  ///< used by the training thread
  uint64_t joining_number_ = 0;
  std::atomic<bool> wants_regroup_ = false;

  base::Mutex mutex_;
  base::Condition wake_;
  elastic::Assembly assembly_ LOCKSTEP_GUARDED_BY(mutex_);
  std::shared_ptr<collective::Collective> collective_
      LOCKSTEP_GUARDED_BY(mutex_);  ///< collective of the group, until it breaks
  elastic::MemberStatus last_status_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string refusal_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string failed_ LOCKSTEP_GUARDED_BY(mutex_);  ///< reason why this member must end
  std::set<std::string> lines_ LOCKSTEP_GUARDED_BY(mutex_);
  std::unique_ptr<elastic::Mesh> mesh_ LOCKSTEP_GUARDED_BY(mutex_);
};

template <class Change>
void ElasticMembership::Impl::act(const Change& change) {
  std::vector<elastic::LogLine> lines;
  std::shared_ptr<collective::Collective> broken;
  std::string why;
  std::optional<elastic::Question> question;
  {
    const base::MutexLock lock(mutex_);
    change(assembly_);
    send_all();
    question = assembly_.take_question();
    lines = assembly_.take_log_lines();
    wants_regroup_ = assembly_.wants_regroup();
    why = assembly_.broken();
    if (!why.empty()) broken = std::exchange(collective_, nullptr);
    if (assembly_.has_work()) wake_.notify_all();
  }
  if (broken) broken->abort(why);
  if (question) ask_authority(*question);
  if (!options_.log) return;
  for (const elastic::LogLine& line : lines) options_.log(line.level, line.text);
}

}  // namespace lockstep::allreduce
