#include "observe/metrics/metrics_server.h"

#include <fmt/format.h>

#include "base/address.h"
#include "http/listen.h"
#include "http/server.h"
#include "lockstep/error.h"

namespace lockstep::observe {
namespace {

constexpr std::chrono::seconds kLongestPart{5};
constexpr http::Limits kLimits{
    .request_bytes = 8192, .connections = 32, .streams = 0, .request = kLongestPart, .answer = kLongestPart};

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPage =
    "<!DOCTYPE html><title>Lockstep</title><p>Metrics of this process, for Prometheus:"
    "<a href=\"/metrics\">/metrics</a></p>\n";

base::Address metrics_address(const std::string& address) {
  try {
    return base::parse_address(address, 0);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("metrics: {}", error.what()));
  }
}

http::Response metrics_page(const http::Request& request, const MetricsServer::Figures& figures) {
  if (request.path.empty()) return {.type = "text/html; charset=utf-8", .body = kPage};
  if (request.path.size() == 1 && request.path[0] == "metrics") {
    return {.type = kMetricsType, .body = prometheus_text(figures())};
  }
  return http::plain_response(404, "there is only /metrics");
}

}  // namespace

MetricsServer::MetricsServer(const std::string& address, Figures figures) {
  base::FileHandle listener = http::listen_at(metrics_address(address), "metrics");
  port_ = http::port_of(listener);
  server_ = std::make_unique<http::Server>(
      std::move(listener), http::ServerOptions{.name = "metrics", .limits = kLimits},
      [figures = std::move(figures)](const http::Request& request) { return metrics_page(request, figures); });
}
MetricsServer::~MetricsServer() = default;

}  // namespace lockstep::observe
