// A mirror on this machine, for tests of fetching. It starts to serve at the first request for its address; set its
// files before.
#pragma once

#include <httplib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace lockstep::testing {

class Mirror {
 public:
  explicit Mirror(std::unique_ptr<httplib::Server> server = std::make_unique<httplib::Server>(),
                  std::string scheme = "http")
      : server_(std::move(server)), scheme_(std::move(scheme)) {
    server_->set_pre_routing_handler([this](const httplib::Request&, httplib::Response&) {
      ++requests_;
      return httplib::Server::HandlerResponse::Unhandled;
    });
    port_ = server_->bind_to_any_port("127.0.0.1");
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  ~Mirror() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

  httplib::Server& server() { return *server_; }
  std::string url(const std::string& path = "/") {
    if (!thread_.joinable()) start();
    return scheme_ + "://localhost:" + std::to_string(port_) + path;
  }
  [[nodiscard]] int requests() const { return requests_; }

  void serve(const std::string& path, const std::string& content) {
    server_->Get(path, [content](const httplib::Request&, httplib::Response& response) {
      response.set_content(content, "application/octet-stream");
    });
  }

 private:
  void start() {
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }

  std::unique_ptr<httplib::Server> server_;
  std::string scheme_;
  std::atomic<int> requests_{0};
  int port_ = 0;
  std::thread thread_;
};

}  // namespace lockstep::testing
