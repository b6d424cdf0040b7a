// UTF-8 from outside, possibly invalid. Free functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::base {

/// U+FFFD, the replacement for invalid bytes.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Returns the number of bytes of the first character of a text that is not empty; 0 if it is invalid. Overlong forms,
/// surrogates and values beyond U+10FFFF are invalid.
size_t character_length(std::string_view text);

bool is_utf8(std::string_view text);

/// Returns the text with a replacement for each invalid byte.
std::string as_utf8(std::string_view text);

}  // namespace lockstep::base
