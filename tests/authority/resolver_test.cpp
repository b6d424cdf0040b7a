// Names of hosts that nobody answers for: each is looked up by one thread, however often it is asked for. The system's
// function is replaced here, because no lookup takes long on a test machine.
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>

#include "authority/time_limit.h"
#include "base/mutex.h"

namespace {

lockstep::base::Mutex mutex;
lockstep::base::Condition changed;
bool answers LOCKSTEP_GUARDED_BY(mutex) = false;
int asked LOCKSTEP_GUARDED_BY(mutex) = 0;

}  // namespace

/// Finds numbers, and the loopback address for every name, once `answers` is true.
extern "C" int getaddrinfo(const char* host, const char* /*service*/, const addrinfo* hints, addrinfo** found) {
  if ((hints->ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
  {
    const lockstep::base::MutexLock lock(mutex);
    ++asked;
    changed.notify_all();
    while (!answers) changed.wait(mutex);
  }
  static sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *found = new addrinfo{0,       AF_INET, SOCK_STREAM, 0, sizeof(loopback), reinterpret_cast<sockaddr*>(&loopback),
                        nullptr, nullptr};
  return host == nullptr ? EAI_NONAME : 0;
}
extern "C" void freeaddrinfo(addrinfo* one) noexcept { delete one; }

namespace lockstep::authority {
namespace {

using Clock = TimeLimit::Clock;

void set_answers(bool on) {
  const base::MutexLock lock(mutex);
  answers = on;
  changed.notify_all();
}
int times_asked() {
  const base::MutexLock lock(mutex);
  return asked;
}

TEST(Resolver, LooksANameUpOnceHoweverOftenItIsAskedMeanwhile) {
  Resolver resolver;
  const auto given_up = [] { return true; };
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(resolver.resolve_until("a.example", Clock::now(), given_up).empty());
  EXPECT_TRUE(resolver.resolve_until("b.example", Clock::now(), given_up).empty());
  set_answers(true);
  const auto never = [] { return false; };
  const std::vector<std::string> loopback{"127.0.0.1"};
  EXPECT_EQ(resolver.resolve_until("a.example", Clock::now() + std::chrono::hours(1), never), loopback);
  EXPECT_EQ(resolver.resolve_until("b.example", Clock::now() + std::chrono::hours(1), never), loopback);
  EXPECT_EQ(times_asked(), 2) << "once for each name";
  EXPECT_EQ(resolver.resolve_until("a.example", Clock::now() + std::chrono::hours(1), never), loopback);
  EXPECT_EQ(times_asked(), 3) << "an answer is not kept";
}

}  // namespace
}  // namespace lockstep::authority
