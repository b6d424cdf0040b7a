// Options of a model as values. Free functions over a request whose options are resolved; each throws UsageError that
// names the option, the text seen and what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/nn.h"

namespace lockstep::nn {

/// "true" or "false".
bool flag(const BuildRequest& request, const std::string& option);
/// A number in [0, 1).
float fraction(const BuildRequest& request, const std::string& option);
/// One or more sizes, from 1: "200", "400-200".
std::vector<int64_t> sizes(const BuildRequest& request, const std::string& option);

}  // namespace lockstep::nn
