#include "authority/asking_thread.h"

#include <algorithm>

namespace lockstep::authority {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::hours kNever{24};

/// Holds the answer for a thread that waits.
struct Awaited {
  base::Mutex mutex;
  base::Condition wake;
  std::optional<Answer> answer LOCKSTEP_GUARDED_BY(mutex);

  void take(const Answer& given) {
    const base::MutexLock lock(mutex);
    answer = given;
    wake.notify_all();
  }
  Answer await(const std::string& name) {
    const Clock::time_point until = Clock::now() + 2 * kAnswerWithin;
    const base::MutexLock lock(mutex);
    while (!answer && Clock::now() < until) wake.wait_for(mutex, until - Clock::now());
    if (answer) return *answer;
    return {Outcome::unanswered, {}, {.kind = base::FailureKind::timeout, .text = name + " does not answer"}};
  }
};

}  // namespace

AskingThread::AskingThread(Answering answering, Idle idle)
    : answering_(std::move(answering)), idle_(std::move(idle)), thread_([this] { run(); }) {}

AskingThread::~AskingThread() {
  end();
  thread_.join();
}

void AskingThread::end() {
  const base::MutexLock lock(mutex_);
  ended_ = true;
  wake_.notify_all();
}

void AskingThread::ask(std::optional<Swap> swap, Register::Done done) {
  const base::MutexLock lock(mutex_);
  waiting_.push_back({{std::move(swap), Clock::now()}, std::move(done)});
  wake_.notify_all();
}

std::optional<AskingThread::Waiting> AskingThread::next(Clock::time_point until) {
  const base::MutexLock lock(mutex_);
  while (waiting_.empty() && !ended_ && Clock::now() < until) wake_.wait_for(mutex_, until - Clock::now());
  if (ended_ || waiting_.empty()) return std::nullopt;
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

bool AskingThread::ended() {
  const base::MutexLock lock(mutex_);
  return ended_;
}

void AskingThread::run() {
  Clock::time_point idle_at = Clock::now();
  while (!ended()) {
    if (const std::optional<Waiting> waiting = next(idle_ ? idle_at : Clock::now() + kNever)) {
      const Answer answer = answering_(waiting->question);
      if (!ended()) waiting->done(answer);
    } else if (idle_ && !ended()) {
      idle_at = Clock::now() + idle_();
    }
  }
}

Answer read_now(Register& from) {
  const auto awaited = std::make_shared<Awaited>();
  from.read([awaited](const Answer& answer) { awaited->take(answer); });
  return awaited->await(from.name());
}

Answer swap_now(Register& from, const Group& expected, const Group& next) {
  const auto awaited = std::make_shared<Awaited>();
  from.swap(expected, next, [awaited](const Answer& answer) { awaited->take(answer); });
  return awaited->await(from.name());
}

}  // namespace lockstep::authority
