#include "authority/memory_register.h"

namespace lockstep::authority {

void MemoryAuthority::set_away(bool away) {
  const base::MutexLock lock(mutex_);
  away_ = away;
}

void MemoryAuthority::lose_answers(int count) {
  const base::MutexLock lock(mutex_);
  lost_answers_ = count;
}

Group MemoryAuthority::group() {
  const base::MutexLock lock(mutex_);
  return cell_.group();
}

Answer MemoryAuthority::answer(const Question& question, const std::string& name) {
  const base::MutexLock lock(mutex_);
  const Answer none{Outcome::unanswered, {}, {.kind = base::FailureKind::unreachable, .text = name + " is away"}};
  if (away_) return none;
  if (!question.swap) return {Outcome::present, cell_.group(), {}};
  const Answer answer = cell_.swap(question.swap->expected, question.swap->next);
  if (lost_answers_ == 0) return answer;
  --lost_answers_;
  return none;
}

MemoryRegister::MemoryRegister(MemoryAuthority& authority)
    : thread_([this, &authority](const Question& question) { return authority.answer(question, name_); }) {}

}  // namespace lockstep::authority
