// Bytes of a pipe as lines of safe text: partial lines are kept until their end comes, a very long one is cut, and what
// is no printable UTF-8 is replaced, so that a line can go to a terminal or a parser as it is. For one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::process {

/// The text with control characters as '?' (a tab as a space) and bytes that are no UTF-8 as U+FFFD.
std::string printable(std::string_view text);

class LineReader {
 public:
  using Sink = std::function<void(const std::string& line)>;
  static constexpr size_t kLongest = 64UL * 1024;

  /// Gives each line that the bytes complete. Of a line longer than kLongest, its beginning and "...".
  void feed(std::string_view bytes, const Sink& sink);
  /// What is left without an end of line is a line too.
  void finish(const Sink& sink);

 private:
  void take(std::string_view bytes);
  void give(const Sink& sink);

  std::string partial_;
  bool cut_ = false;  ///< the rest of this line is passed over
};

}  // namespace lockstep::process
