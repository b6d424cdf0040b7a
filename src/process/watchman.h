// A process that kills the launcher's process groups when the launcher is gone, also by kill -9. This includes children
// of children, which the system would leave behind. It ends with the launcher. Make it before other threads start. Any
// process and thread may write to its pipe.
#pragma once

#include <sys/types.h>

#include "base/file.h"

namespace lockstep::process {

class Watchman {
 public:
  /// Throws IoError if the system cannot start a process.
  Watchman();
  ~Watchman();
  Watchman(const Watchman&) = delete;
  Watchman& operator=(const Watchman&) = delete;

  /// Pipe to which a new process writes its number, a pid_t, before it becomes another program. The negative number
  /// tells that the group has ended and its number may be reused.
  [[nodiscard]] int fd() const { return pipe_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  base::FileHandle pipe_;
};

}  // namespace lockstep::process
