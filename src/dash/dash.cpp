#include "dash/dash.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/mutex.h"
#include "base/signals.h"
#include "dash/site.h"
#include "http/listen.h"
#include "http/server.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

constexpr std::chrono::milliseconds kLookEvery{500};
constexpr size_t kWorkers = 4;

/// Looks at the folders twice a second while a page is open, and tells the pages about changes.
class Watcher {
 public:
  Watcher(Site& site, http::Server& server) : site_(site), server_(server) {
    const base::SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  }
  ~Watcher() {
    {
      const base::MutexLock lock(mutex_);
      ended_ = true;
    }
    end_.notify_all();
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  void run() {
    while (!wait()) {
      if (server_.streams() == 0) continue;
      const std::string event = site_.changes();
      if (!event.empty()) server_.publish(event);
    }
  }
  /// Waits for the next look; returns true if the server is to stop.
  bool wait() {
    const base::MutexLock lock(mutex_);
    if (!ended_) end_.wait_for(mutex_, kLookEvery);
    return ended_;
  }

  Site& site_;
  http::Server& server_;
  base::Mutex mutex_;
  base::Condition end_;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

void wait_until_readable(int descriptor) {
  pollfd waits{descriptor, POLLIN, 0};
  while (::poll(&waits, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

void serve(const Options& options, const std::function<void(const std::string& url)>& ready) {
  const Access checked(options.host, options.token, options.port);  // checked before listening
  base::FileHandle listener =
      http::listen_at({options.host, options.port}, "dash", "; `lockstep dash --port 0` takes a free one");
  const Access access(options.host, options.token, http::port_of(listener));
  Site site(options, access);
  http::Server server(std::move(listener), {.name = "dash", .workers = kWorkers},
                      [&site](const http::Request& request) { return site.answer(request); });
  const Watcher watcher(site, server);
  if (ready) ready(access.url());
  wait_until_readable(options.stop);
}

}  // namespace lockstep::dash
