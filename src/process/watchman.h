// A process that does one thing: when its launcher is gone, also by kill -9, it kills the process groups that the
// launcher had started, with the children of children that the system would leave behind. It ends with the launcher.
// Make it before other threads exist. Its pipe may be written to by any process and thread.
#pragma once

#include <sys/types.h>

#include "base/file.h"

namespace lockstep::process {

class Watchman {
 public:
  /// Throws IoError where the system has no process left.
  Watchman();
  ~Watchman();
  Watchman(const Watchman&) = delete;
  Watchman& operator=(const Watchman&) = delete;

  /// Where a new process writes its number, a pid_t, before it becomes another program; the negative of it says that
  /// the group has ended and its number may soon be another's.
  [[nodiscard]] int fd() const { return pipe_.get(); }

 private:
  pid_t pid_ = -1;
  base::FileHandle pipe_;
};

}  // namespace lockstep::process
