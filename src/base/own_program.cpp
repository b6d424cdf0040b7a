#include "base/own_program.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lockstep::base {

std::string own_program() {
  static constexpr const char* kSelf = "/proc/self/exe";
  const char* script = std::getenv("LOCKSTEP_BUNDLE_PROGRAM");  // NOLINT(concurrency-mt-unsafe): never set here
  if (script == nullptr) return kSelf;
  // A program outside the bundle inherits the variable where a bundled one starts it.
  std::error_code error;
  const std::string running = std::filesystem::read_symlink(kSelf, error).filename().string();
  return running.starts_with("ld-linux") ? script : kSelf;
}

}  // namespace lockstep::base
