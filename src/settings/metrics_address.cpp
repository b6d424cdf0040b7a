#include "settings/metrics_address.h"

#include <fmt/format.h>

#include "base/address.h"
#include "lockstep/error.h"

namespace lockstep::settings {
namespace {

/// A port alone is one of this machine.
base::Address metrics_place(const std::string& text) {
  const bool port_alone = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  try {
    return base::parse_address(port_alone ? "127.0.0.1:" + text : text);
  } catch (const UsageError& error) {
    throw UsageError(std::string("metrics: ") + error.what());
  }
}

}  // namespace

std::string metrics_address(const Settings& settings, int position) {
  if (settings.metrics.empty()) return "";
  const base::Address address = metrics_place(settings.metrics);
  if (!base::is_loopback(address.host) && !settings.insecure) {
    throw UsageError(
        fmt::format("metrics: {} can be reached from other machines; give --insecure to allow that", settings.metrics));
  }
  const int port = address.port + position;
  if (port > 65535) throw UsageError(fmt::format("metrics: port {} of {} is above 65535", port, settings.metrics));
  return base::join_address(address.host, port);
}

}  // namespace lockstep::settings
