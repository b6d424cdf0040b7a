// A function with a stack of its own, which can wait in the middle: code that blocks runs so in a simulation, in one
// thread. A Fiber that is destroyed while it waits is unwound by an exception that its function must let through.
#pragma once

#include <ucontext.h>

#include <exception>
#include <functional>
#include <memory>

namespace lockstep::simulation {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it waits or ends. From outside. Throws what the function threw.
  void resume();
  /// Goes back to the caller of `resume`. From inside.
  void wait();
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] bool running() const { return running_; }

 private:
  struct Killed {};
  static void enter(unsigned low, unsigned high);
  void run();

  std::function<void()> body_;
  std::unique_ptr<char[]> stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  std::exception_ptr error_;
  bool begun_ = false;
  bool running_ = false;
  bool done_ = false;
  bool killed_ = false;
};

}  // namespace lockstep::simulation
