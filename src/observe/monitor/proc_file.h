// A file of /proc that is read again and again: it stays open, and a look is one pread into a buffer that is kept. For
// one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lockstep::observe {

class ProcFile {
 public:
  /// One that is not there reads as nothing.
  explicit ProcFile(const std::string& path);

  /// What it says now; empty where it cannot be read. Until the next call.
  std::string_view read();

 private:
  base::FileHandle file_;
  std::vector<char> buffer_;
};

}  // namespace lockstep::observe
