// The address of a role's metrics server. A free function; any thread.
#pragma once

#include <string>

#include "settings/settings.h"

namespace lockstep::settings {

/// Where a role serves its metrics; "" where the settings ask for none. Throws UsageError for what is no address, or
/// one beyond this machine without --insecure.
std::string metrics_address(const Settings& settings, int position);

}  // namespace lockstep::settings
