// A file of /proc that is read repeatedly: it stays open, and each read is one pread into the same buffer. For one
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lockstep::observe {

class ProcFile {
 public:
  /// A missing file reads as empty.
  explicit ProcFile(const std::string& path);

  /// Returns the current content, empty if it cannot be read. Valid until the next call.
  std::string_view read();

 private:
  base::FileHandle file_;
  std::vector<char> buffer_;
};

}  // namespace lockstep::observe
