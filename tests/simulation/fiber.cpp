#include "simulation/fiber.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::simulation {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

/// Stacks of fibers that have ended, for the next ones.
std::vector<std::unique_ptr<char[]>>& spare_stacks() {
  static std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  auto& spare = spare_stacks();
  if (spare.empty()) {
    stack_.reset(new char[kStackBytes]);  // not cleared: only the pages that are used take memory
  } else {
    stack_ = std::move(spare.back());
    spare.pop_back();
  }
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = &outside_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(static_cast<uint64_t>(self) >> 32U));
}

Fiber::~Fiber() {
  killed_ = true;
  if (begun_ && !done_) swapcontext(&outside_, &inside_);
  spare_stacks().push_back(std::move(stack_));
}

void Fiber::enter(unsigned low, unsigned high) {
  reinterpret_cast<Fiber*>(static_cast<uintptr_t>(uint64_t{high} << 32U | low))->run();
}

void Fiber::run() {
  try {
    body_();
  } catch (const Killed&) {  // NOLINT(bugprone-empty-catch): its stack is unwound now
  } catch (...) {
    error_ = std::current_exception();
  }
  done_ = true;
}

void Fiber::resume() {
  if (done_) return;
  begun_ = running_ = true;
  swapcontext(&outside_, &inside_);
  running_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::wait() {
  swapcontext(&inside_, &outside_);
  if (killed_) throw Killed();
}

}  // namespace lockstep::simulation
