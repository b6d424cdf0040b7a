// A register in this process, for tests: an authority with clients, which can be away or lose answers.
#pragma once

#include <memory>
#include <string>

#include "authority/asking_thread.h"
#include "authority/cell.h"

namespace lockstep::authority {

/// The authority's side. Outlives its clients. Any thread.
class MemoryAuthority {
 public:
  /// While it is away, questions are unanswered and nothing happens.
  void set_away(bool away);
  /// The answers of the next `count` swaps get lost; the swaps happen.
  void lose_answers(int count);
  [[nodiscard]] Group group();

 private:
  friend class MemoryRegister;
  Answer answer(const Question& question, const std::string& name);

  base::Mutex mutex_;
  Cell cell_ LOCKSTEP_GUARDED_BY(mutex_);
  bool away_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int lost_answers_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
};

class MemoryRegister final : public Register {
 public:
  explicit MemoryRegister(MemoryAuthority& authority);

  void read(Done done) override { thread_.ask({}, std::move(done)); }
  void swap(const Group& expected, const Group& next, Done done) override {
    thread_.ask(Swap{expected, next}, std::move(done));
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  const std::string name_ = "the authority of this test";
  AskingThread thread_;
};

}  // namespace lockstep::authority
