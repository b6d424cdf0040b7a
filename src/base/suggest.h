// "Did you mean ...?": the nearest of the allowed names to one that is not.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::base {

/// The nearest allowed name within a small edit distance, or empty.
std::string nearest(std::string_view name, std::span<const std::string> allowed);

/// " (did you mean 'x'?)", or " (allowed: a, b, c)" when nothing is near.
std::string hint(std::string_view name, std::span<const std::string> allowed);

}  // namespace lockstep::base
