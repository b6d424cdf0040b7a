// Formats numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::terminal {

/// 61706 -> "61,706".
std::string grouped(uint64_t number);
/// 44.73 -> "44.7", 61706.2 -> "61,706".
std::string rate_text(double per_second);
/// 0.9902 -> "99.02 %".
std::string percent(double fraction, int digits = 2);
/// 1536 -> "1.5 kB"; decimal units.
std::string bytes_text(uint64_t bytes);
/// 8.5e6 -> "8.5 M", with a unit "8.5 MB".
std::string scaled(double number, std::string_view unit = "");
/// 4.2 -> "4.2 s", 75 -> "1:15", 3700 -> "1:01:40".
std::string duration_text(double seconds);
/// Returns a loss with four decimals, or in scientific notation if those would show nothing.
std::string loss_text(double loss);
/// "1 epoch", "2 epochs".
std::string counted(uint64_t count, std::string_view noun);

/// Returns the columns that a text takes on a terminal: UTF-8 characters without escape sequences.
size_t display_width(std::string_view text);
std::string padded_left(std::string_view text, size_t width);
std::string padded_right(std::string_view text, size_t width);

/// Returns at most `width` columns of the text; escape sequences take no column and are all kept.
std::string clipped(std::string_view text, size_t width);

/// Replaces each `from` with `to`.
std::string replaced(std::string text, std::string_view from, std::string_view to);

/// Breaks text at spaces into lines of at most `width` columns; a number keeps its unit.
std::vector<std::string> wrapped(std::string_view text, size_t width);

}  // namespace lockstep::terminal
