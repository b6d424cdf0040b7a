// Converts values to JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "lab/experiment.h"

namespace lockstep::tools {

inline nlohmann::ordered_json as_json(const lab::Values& values) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

}  // namespace lockstep::tools
