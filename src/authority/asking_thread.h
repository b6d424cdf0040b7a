// The one thread of a register's client: it takes the questions in their order and passes on the answers. The owner
// supplies a function that answers one question, waiting as it must. Any thread may ask.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "authority/register.h"
#include "base/mutex.h"

namespace lockstep::authority {

struct Question {
  std::optional<Swap> swap = {};  ///< none: a read
  std::chrono::steady_clock::time_point asked = {};
};

class AskingThread {
 public:
  using Answering = std::function<Answer(const Question& question)>;
  /// Called when no question has come for `idle_every`; returns the time until the next call.
  using Idle = std::function<std::chrono::milliseconds()>;

  explicit AskingThread(Answering answering, Idle idle = {});
  /// Waits for the call of `answering` under way, which the owner has to cut short.
  ~AskingThread();
  AskingThread(const AskingThread&) = delete;
  AskingThread& operator=(const AskingThread&) = delete;

  void ask(std::optional<Swap> swap, Register::Done done);
  /// Gives up all questions: no answer is passed on any more, but one that is being passed on now.
  void end();

 private:
  struct Waiting {
    Question question;
    Register::Done done;
  };
  void run();
  /// Waits for a question; nothing if it is time for `idle` or for the end.
  std::optional<Waiting> next(std::chrono::steady_clock::time_point until);
  [[nodiscard]] bool ended();

  const Answering answering_;
  const Idle idle_;
  base::Mutex mutex_;
  base::Condition wake_;
  std::deque<Waiting> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::authority
