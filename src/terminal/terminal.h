// Abilities of standard output: a terminal's width, colours and characters.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::terminal {

struct Terminal {
  bool interactive = false;  ///< a terminal that can redraw a line
  bool colours = false;      ///< and NO_COLOR is not set
  bool unicode = false;      ///< the locale's characters are UTF-8

  /// Examines standard output as it is now.
  static Terminal detect();
  /// Returns the columns of the terminal now; without one, those of COLUMNS, or 100.
  [[nodiscard]] static size_t width();
  /// Returns the lines of the terminal now; 24 without one.
  [[nodiscard]] static size_t height();

  /// Returns how often progress is shown: redrawn on a terminal, as one more line elsewhere.
  [[nodiscard]] std::chrono::milliseconds redraw_every() const {
    return std::chrono::milliseconds(interactive ? 100 : 10'000);
  }

  [[nodiscard]] std::string bold(std::string_view text) const { return styled(text, "1"); }
  [[nodiscard]] std::string dim(std::string_view text) const { return styled(text, "2"); }
  [[nodiscard]] std::string green(std::string_view text) const { return styled(text, "32"); }
  [[nodiscard]] std::string red(std::string_view text) const { return styled(text, "31"); }
  [[nodiscard]] std::string cyan(std::string_view text) const { return styled(text, "36"); }

  /// Returns the text in one of twelve colours, to tell several things apart.
  [[nodiscard]] std::string coloured(std::string_view text, size_t which) const;

  /// Returns a bar of `columns` columns, filled from the left.
  [[nodiscard]] std::string bar(double fraction, size_t columns) const;

 private:
  [[nodiscard]] std::string styled(std::string_view text, std::string_view code) const;
};

}  // namespace lockstep::terminal
