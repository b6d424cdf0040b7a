// The errors that Lockstep throws. Each is one readable line that names the place, the value seen and
// what is allowed; tools/ turns them into an exit code. Network paths return base::Result instead.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A graph was built from values whose shapes or types do not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A flag, a setting or a call that is not allowed.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// More memory was asked for than the machine has.
class MemoryError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A file or message whose content is not what its format promises.
class DataError : public Error {
 public:
  using Error::Error;
};

/// The system refused: cannot open, read, write, create, connect.
class IoError : public Error {
 public:
  using Error::Error;
};

}  // namespace lockstep
