// Whether a run has ended, as its folder says, for a role that waits for others who may be gone for good: the sign is a
// summary that was written after this was made. Where the folder is not shared it says nothing. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exchange/exchange.h"

namespace lockstep::run {

/// What the summary of a run says; nothing where there is none that can be read.
std::optional<exchange::Ending> read_ending(const std::string& summary_file);

/// The latest step of which a run keeps something: a checkpoint, or its summary.
uint64_t kept_step(const std::string& run);

class RunEnd {
 public:
  explicit RunEnd(const std::string& run);

  /// How it ended; nothing: not yet, or with an error of the one who wrote it, who may come back.
  [[nodiscard]] std::optional<exchange::Ending> look() const;

 private:
  /// Tells one file of that name from the next.
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
