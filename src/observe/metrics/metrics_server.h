// A small web server (http/server.h) that answers GET /metrics with figures in Prometheus' text format. It has its own
// thread, which asks for the figures at each request. No client can block it: a request is at most 8 kB and must arrive
// within 5 s, its answer must be read within 5 s, and with too many connections the oldest is closed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::http {
class Server;
}

namespace lockstep::observe {

/// One figure: lockstep_steps_total{role="worker:1"} 1200.
struct Metric {
  enum class Kind : uint8_t { counter, gauge };
  std::string name;  ///< without the prefix lockstep_
  Kind kind = Kind::gauge;
  std::string help;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

/// Returns the text format: metrics of one name follow each other, with one HELP and one TYPE line. Characters not
/// allowed in names become underscores.
std::string prometheus_text(const std::vector<Metric>& metrics);

class MetricsServer {
 public:
  using Figures = std::function<std::vector<Metric>()>;

  /// Listens at "host:port" (port 0: any free one). Throws UsageError for an invalid address, IoError naming the
  /// address if it cannot listen. The server's thread calls `figures`; an exception is answered with status 500.
  MetricsServer(const std::string& address, Figures figures);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  int port_ = 0;
  std::unique_ptr<http::Server> server_;
};

}  // namespace lockstep::observe
