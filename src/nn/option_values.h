// Reads a model's options as values. Free functions over a request with resolved options. Each throws UsageError that
// names the option, the text seen and what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/nn.h"

namespace lockstep::nn {

/// Returns the option "true" or "false".
bool flag(const BuildRequest& request, const std::string& option);
/// Returns a number in [0, 1).
float fraction(const BuildRequest& request, const std::string& option);
/// Returns one or more sizes, each at least 1: "200", "400-200".
std::vector<int64_t> sizes(const BuildRequest& request, const std::string& option);

}  // namespace lockstep::nn
