#include "authority/time_limit.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>

namespace lockstep::authority {
namespace {

constexpr std::chrono::milliseconds kAgain{10};  ///< between cuts, until the call has returned
constexpr std::chrono::milliseconds kLook{100};  ///< between looks at whether a lookup is given up
constexpr std::chrono::hours kNoCall{24};

std::vector<std::string> addresses_of(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  std::vector<std::string> found;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) return found;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(first, &freeaddrinfo);
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    const int failed = getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    if (failed == 0 && std::find(found.begin(), found.end(), text.data()) == found.end())
      found.emplace_back(text.data());
  }
  return found;
}

}  // namespace

TimeLimit::TimeLimit() : thread_([this] { run(); }) {}

TimeLimit::~TimeLimit() {
  {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void TimeLimit::begin(Clock::time_point until) {
  const base::MutexLock lock(mutex_);
  until_ = until;
  cut_ = false;
  wake_.notify_all();
}

void TimeLimit::watch(int socket) {
  const base::MutexLock lock(mutex_);
  socket_ = base::FileHandle(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
}

bool TimeLimit::end() {
  const base::MutexLock lock(mutex_);
  until_.reset();
  return cut_;
}

void TimeLimit::forget() {
  const base::MutexLock lock(mutex_);
  socket_ = base::FileHandle();
}

void TimeLimit::stop() {
  const base::MutexLock lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
}

void TimeLimit::run() {
  const base::MutexLock lock(mutex_);
  while (!ended_) {
    const Clock::time_point now = Clock::now();
    const bool late = until_ && (stopped_ || now >= *until_);
    if (late) {
      cut_ = true;
      if (socket_.open()) ::shutdown(socket_.get(), SHUT_RDWR);
    }
    if (late) {
      wake_.wait_for(mutex_, kAgain);
    } else {
      wake_.wait_for(mutex_, until_ ? *until_ - now : kNoCall);
    }
  }
}

/// The addresses that a thread finds for a name.
struct Resolver::Lookup {
  base::Mutex mutex;
  base::Condition wake;
  std::optional<std::vector<std::string>> found LOCKSTEP_GUARDED_BY(mutex);
};

std::vector<std::string> Resolver::resolve_until(const std::string& host, TimeLimit::Clock::time_point until,
                                                 const std::function<bool()>& given_up) {
  std::vector<std::string> number = addresses_of(host, AI_NUMERICHOST);
  if (!number.empty()) return number;
  std::shared_ptr<Lookup>& lookup = under_way_[host];
  if (!lookup) {
    lookup = std::make_shared<Lookup>();
    try {
      std::thread([host, mine = lookup] {
        std::vector<std::string> found = addresses_of(host, 0);
        const base::MutexLock lock(mine->mutex);
        mine->found = std::move(found);
        mine->wake.notify_all();
      }).detach();
    } catch (const std::system_error&) {
      lookup.reset();
      return {};
    }
  }
  std::optional<std::vector<std::string>> found;
  {
    const base::MutexLock lock(lookup->mutex);
    while (!lookup->found && TimeLimit::Clock::now() < until && !given_up()) {
      lookup->wake.wait_for(lookup->mutex, kLook);
    }
    found = lookup->found;
  }
  if (!found) return {};
  lookup.reset();  // the next question looks again
  return std::move(*found);
}

}  // namespace lockstep::authority
