// A dashboard that serves on a thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>

#include "base/file.h"
#include "dash/dash.h"

namespace lockstep::testing {

/// Runs `dash::serve` on a thread until it is destroyed.
class Served {
 public:
  explicit Served(dash::Options options) : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    options.port = 0;
    options.stop = stop_.get();
    std::promise<std::string> ready;
    std::future<std::string> address = ready.get_future();
    thread_ = std::thread([options, &ready] {
      try {
        dash::serve(options, [&](const std::string& url) { ready.set_value(url); });
      } catch (...) {
        ready.set_exception(std::current_exception());
      }
    });
    try {
      url_ = address.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Served() { end(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void end() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] int port() const {
    const size_t colon = url_.find(':', 7);
    return std::stoi(url_.substr(colon + 1));
  }

 private:
  base::FileHandle stop_;
  std::string url_;
  std::thread thread_;
};

}  // namespace lockstep::testing
