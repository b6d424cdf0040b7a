#include "ps/applier.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep::ps {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

Applier::Work::Work(Applier& applier, std::shared_ptr<ParameterShard> shard)
    : applier_(applier), shard_(std::move(shard)) {
  const base::MutexLock lock(applier_.mutex_);
  ++applier_.under_way_;
}

Applier::Work::~Work() {
  shard_.reset();  // before the end is told: the next shard takes over its file
  const base::MutexLock lock(applier_.mutex_);
  if (--applier_.under_way_ == 0) applier_.idle_.notify_all();
}

Applier::Done Applier::make(const Work& work, const Task& task) const {
  if (point_) point_();
  std::vector<Contribution> contributions;
  for (const Update::Part& part : task.update.parts) contributions.push_back({*part.values, part.from.weight});
  Done done = clip(work.shard(), task, contributions);
  const auto began = std::chrono::steady_clock::now();
  const Decision& decision = task.update.decision;
  if (task.lock_free) {
    work.shard().commit_in_place(decision.version, bytes_of(task.ledger));
  } else if (contributions.empty()) {
    const View same = work.shard().current();
    work.shard().initialise(decision.version, same.parameters, same.slots, bytes_of(task.ledger));
  } else {
    work.shard().apply(contributions, decision.mean_scale, done.how, bytes_of(task.ledger));
    done.stored = work.shard().commit_seconds();
    return done;
  }
  done.stored = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return done;
}

Applier::Done Applier::clip(ParameterShard& shard, const Task& task, const std::vector<Contribution>& contributions) {
  Done done{task.how, std::numeric_limits<float>::quiet_NaN()};
  if (contributions.empty() || task.clip_norm <= 0) return done;
  constexpr double kTiny = 1e-6;
  const double norm = std::sqrt(shard.sum_of_squares(contributions, task.update.decision.mean_scale));
  done.gradient_norm = static_cast<float>(norm);
  done.how.gradient_scale = static_cast<float>(std::min(1.0, static_cast<double>(task.clip_norm) / (norm + kTiny)));
  return done;
}

void Applier::apply_in_place(const Work& work, const Booked& booked) {
  work.shard().apply_in_place(*booked.values, booked.how);
}

void Applier::wait_until_idle() {
  const base::MutexLock lock(mutex_);
  while (under_way_ > 0) idle_.wait(mutex_);
}

}  // namespace lockstep::ps
