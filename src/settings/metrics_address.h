// The address of a role's metrics server. A free function; any thread.
#pragma once

#include <string>

#include "settings/settings.h"

namespace lockstep::settings {

/// Returns the address at which a role serves its metrics; "" if the settings ask for none. Throws UsageError for an
/// invalid address, or one beyond this machine without --insecure.
std::string metrics_address(const Settings& settings, int position);

}  // namespace lockstep::settings
