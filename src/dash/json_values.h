// Helpers for the page's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "records/statistics.h"

namespace lockstep::dash {

using nlohmann::ordered_json;

inline ordered_json number(double value) { return records::known(value) ? ordered_json(value) : ordered_json(nullptr); }

/// Dumps JSON; invalid UTF-8 is replaced rather than refused.
inline std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace lockstep::dash
