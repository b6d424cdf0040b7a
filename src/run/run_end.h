// Looks in a run's folder for a sign that the run has ended, for a role that waits for others that may be gone for
// good. The sign is a summary written after this object was made. If the folder is not shared there is no sign. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exchange/exchange.h"

namespace lockstep::run {

/// Returns the ending in a run's summary; nothing if there is no readable summary.
std::optional<exchange::Ending> read_ending(const std::string& summary_file);

/// Returns the latest step with something kept: a checkpoint, or the summary.
uint64_t kept_step(const std::string& run);

class RunEnd {
 public:
  explicit RunEnd(const std::string& run);

  /// Returns how the run ended; nothing if it has not ended, or ended with an error of its writer, which may come back.
  [[nodiscard]] std::optional<exchange::Ending> look() const;

 private:
  /// Identifies one version of the file.
  struct Stamp {
    uint64_t file = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;

    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  [[nodiscard]] Stamp stamp() const;

  std::string file_;
  Stamp before_;
};

}  // namespace lockstep::run
