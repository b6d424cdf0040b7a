// UTF-8 from outside, which may be none. Free functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::base {

/// U+FFFD, which stands for what is no character.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the character that a text, which is not empty, begins with; 0 where it is none. Overlong forms, surrogates
/// and what is beyond U+10FFFF are none.
size_t character_length(std::string_view text);

bool is_utf8(std::string_view text);

/// The text with a replacement for each byte that belongs to no character.
std::string as_utf8(std::string_view text);

}  // namespace lockstep::base
