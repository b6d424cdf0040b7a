#include "base/team.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "base/cpu_quota.h"
#include "base/denormals.h"
#include "base/loops.h"

namespace lockstep::base {
namespace {

/// Cache lines come in pairs: processors fetch the neighbour of a line, too.
constexpr size_t kLines = 128;

constexpr int64_t kBriefSpins = 4000;  ///< as base/wait_policy.h sets it
/// Some milliseconds. OpenMP's threads may need the same cores, so a team never spins for ever.
constexpr int64_t kMostSpins = 300'000;
constexpr int64_t kCrowdedPart = 16;  ///< with more threads than cores, the share of the spins that remains

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

/// Sleeps while `word` is `value`; may return early.
void sleep_while(const std::atomic<uint32_t>& word, uint32_t value) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_sleeper(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// Returns the number before libgomp's suffix k, m, g or t, times what the suffix stands for.
int64_t number_of(const char* text) {
  constexpr std::string_view kSuffixes = "kmgtKMGT";
  char* end = nullptr;
  int64_t number = std::min<int64_t>(std::strtoll(text, &end, 10), kMostSpins);
  const size_t suffix = *end == 0 ? std::string_view::npos : kSuffixes.find(*end);
  if (suffix == std::string_view::npos) return number;
  for (size_t i = 0; i <= suffix % 4; ++i) number = std::min(1000 * number, kMostSpins);
  return number;
}

int64_t spins_of_environment() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets them any more
  return spins_of(std::getenv("GOMP_SPINCOUNT"), std::getenv("OMP_WAIT_POLICY"));
}

/// Threads of all teams, and the cores that the process may use (before main, as threads may be kept to fewer).
std::atomic<int> threads_of_all{0};
const int cores_of_process = available_cores();

int64_t spins() {
  static const int64_t chosen = spins_of_environment();
  static const int most = useful_threads(cores_of_process, own_allowed_cores());
  return threads_of_all.load(std::memory_order_relaxed) > most ? chosen / kCrowdedPart : chosen;
}

/// Looks at `word` until it is `wanted` or it has looked often enough.
bool spin_until(const std::atomic<uint32_t>& word, uint32_t wanted) {
  int64_t left = spins();
  while (word.load(std::memory_order_acquire) != wanted) {
    if (left-- <= 0) return false;
    pause();
  }
  return true;
}

/// Sleeps until `word` is `wanted`, and says so in `sleeps`.
void sleep_until(const std::atomic<uint32_t>& word, uint32_t wanted, std::atomic<uint32_t>& sleeps) {
  if (word.load(std::memory_order_acquire) == wanted) return;
  sleeps.store(1, std::memory_order_seq_cst);
  for (uint32_t seen = word.load(std::memory_order_seq_cst); seen != wanted;
       seen = word.load(std::memory_order_seq_cst)) {
    sleep_while(word, seen);
  }
  sleeps.store(0, std::memory_order_relaxed);
}

/// Waits until `word` is `wanted`: spins, then sleeps.
void wait_until(const std::atomic<uint32_t>& word, uint32_t wanted, std::atomic<uint32_t>& sleeps) {
  if (!spin_until(word, wanted)) sleep_until(word, wanted, sleeps);
}

}  // namespace

int64_t spins_of(const char* count, const char* policy) {
  if (count != nullptr && (*count == 'i' || *count == 'I')) return kMostSpins;
  if (count != nullptr && *count >= '0' && *count <= '9') return number_of(count);
  if (policy != nullptr && (*policy == 'a' || *policy == 'A')) return kMostSpins;
  if (policy != nullptr && (*policy == 'p' || *policy == 'P')) return 0;
  return kBriefSpins;
}

/// A thread and its place. The owner writes the first lines, the thread the last.
struct Team::Seat {
  alignas(kLines) std::atomic<uint32_t> called{0};  ///< counts the loops that the thread has a part of
  std::atomic<uint32_t> sleeps{0};                  ///< the thread sleeps until it is called
  std::optional<Body> body;                         ///< none: the thread ends
  int first = 0;
  int parts = 0;
  int step = 1;
  uint32_t calls = 0;                             ///< the owner's copy of `called`
  alignas(kLines) std::atomic<uint32_t> done{0};  ///< the last loop whose parts are done
  std::atomic<uint32_t> awaited{0};               ///< the owner sleeps until they are
  alignas(kLines) std::thread thread;
};

Team::Team() { threads_of_all.fetch_add(1, std::memory_order_relaxed); }

Team::~Team() {
  for (const auto& seat : seats_) {
    seat->body.reset();
    seat->called.store(++seat->calls, std::memory_order_seq_cst);
    wake_sleeper(seat->called);
  }
  for (const auto& seat : seats_) seat->thread.join();
  threads_of_all.fetch_sub(1 + static_cast<int>(seats_.size()), std::memory_order_relaxed);
}

void Team::start_threads(int threads) {
  while (static_cast<int>(seats_.size()) + 1 < threads) {
    auto seat = std::make_unique<Seat>();
    seat->thread = std::thread([place = seat.get()] { serve(*place); });
    seats_.push_back(std::move(seat));
    threads_of_all.fetch_add(1, std::memory_order_relaxed);
  }
}

void Team::serve(Seat& seat) {
  never_share_loops();
  const FlushDenormals flush;
  for (uint32_t next = 1;; ++next) {
    wait_until(seat.called, next, seat.sleeps);
    if (!seat.body) return;
    for (int part = seat.first; part < seat.parts; part += seat.step) (*seat.body)(part, seat.parts);
    seat.done.store(next, std::memory_order_seq_cst);
    if (seat.awaited.load(std::memory_order_seq_cst) != 0) wake_sleeper(seat.done);
  }
}

void Team::run(int parts, int threads, Body body) {
  start_threads(threads);
  call(parts, threads, body);
}

void Team::call(int parts, int threads, Body body) noexcept {
  for (int i = 1; i < threads; ++i) {
    Seat& seat = *seats_[static_cast<size_t>(i - 1)];
    seat.body.emplace(body);
    seat.first = i;
    seat.parts = parts;
    seat.step = threads;
    seat.called.store(++seat.calls, std::memory_order_release);
  }
  // Either a thread that falls asleep now sees its call, or it is seen here. The thread sanitizer does not know fences,
  // and need not: what threads hand over is ordered by `called` and `done`.
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int i = 1; i < threads; ++i) {
    const Seat& seat = *seats_[static_cast<size_t>(i - 1)];
    if (seat.sleeps.load(std::memory_order_relaxed) != 0) wake_sleeper(seat.called);
  }
  for (int part = 0; part < parts; part += threads) body(part, parts);
  for (int64_t left = spins(); !all_done(threads) && left > 0; --left) pause();
  for (int i = 1; i < threads; ++i) {
    Seat& seat = *seats_[static_cast<size_t>(i - 1)];
    sleep_until(seat.done, seat.calls, seat.awaited);
  }
}

/// Looks at every seat, so that the processor fetches their lines at the same time.
bool Team::all_done(int threads) const {
  uint32_t missing = 0;
  for (int i = 1; i < threads; ++i) {
    const Seat& seat = *seats_[static_cast<size_t>(i - 1)];
    missing |= seat.done.load(std::memory_order_acquire) ^ seat.calls;
  }
  return missing == 0;
}

}  // namespace lockstep::base
