// The register that the launcher of a job holds, asked over the role's standard output and input (launcher_lines.h).
// The launcher's death ends all roles, so its memory is enough.
#pragma once

#include <atomic>
#include <string>

#include "authority/asking_thread.h"

namespace lockstep::authority {

class LauncherRegister final : public Register {
 public:
  /// `tell` writes a line to the launcher, from any thread. `input` is the descriptor of the answers, borrowed.
  LauncherRegister(std::function<void(const std::string& line)> tell, int input);
  ~LauncherRegister() override;

  void read(Done done) override { thread_.ask({}, std::move(done)); }
  void swap(const Group& expected, const Group& next, Done done) override {
    thread_.ask(Swap{expected, next}, std::move(done));
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  Answer answer(const Question& question);
  /// Waits for a line until `until`; nothing if there is none, or the launcher is gone.
  std::optional<std::string> next_line(std::chrono::steady_clock::time_point until);

  const std::string name_ = "the launcher";
  const std::function<void(const std::string&)> tell_;
  const int input_;
  uint64_t asked_ = 0;
  std::string unread_;  ///< bytes of lines not looked at yet
  bool gone_ = false;   ///< its end of the pipe is closed
  std::atomic<bool> ending_ = false;
  AskingThread thread_;
};

}  // namespace lockstep::authority
