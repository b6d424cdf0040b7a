// "Did you mean ...?": finds the allowed name nearest to an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::base {

/// Returns the nearest allowed name within a small edit distance; empty if none is near.
std::string nearest(std::string_view name, std::span<const std::string> allowed);

/// Returns " (did you mean 'x'?)", or " (allowed: a, b, c)" if nothing is near.
std::string hint(std::string_view name, std::span<const std::string> allowed);

}  // namespace lockstep::base
