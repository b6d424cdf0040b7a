// Turns bytes of a pipe into lines of safe text. Keeps partial lines until their end arrives, cuts very long ones, and
// replaces everything that is not printable UTF-8, so that a line is safe for a terminal or a parser. For one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::process {

/// Returns the text with control characters as '?' (a tab as a space) and invalid UTF-8 as U+FFFD.
std::string printable(std::string_view text);

class LineReader {
 public:
  using Sink = std::function<void(const std::string& line)>;
  static constexpr size_t kLongest = 64UL * 1024;

  /// Passes on each line that the bytes complete. A line longer than kLongest is cut and ends in "...".
  void feed(std::string_view bytes, const Sink& sink);
  /// Passes on the rest, a last line without its end.
  void finish(const Sink& sink);

 private:
  void take(std::string_view bytes);
  void give(const Sink& sink);

  std::string partial_;
  bool cut_ = false;  ///< true while the rest of a cut line is skipped
};

}  // namespace lockstep::process
