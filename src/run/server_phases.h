// The phases.csv of a parameter server: seconds in each stage of its pushes since the line before, so that a run can be
// read while it trains. A failure to write is reported once and ends the file. For one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/csv_file.h"
#include "base/durations.h"

namespace lockstep::run {

/// Totals of a server since its process began.
struct ServerTotals {
  uint64_t version = 0;  ///< updates of the parameters, by all workers
  uint64_t pushes = 0;
  double seconds = 0;
  std::span<const base::DurationRecord> stages;  ///< those that took time
};

class ServerPhases {
 public:
  /// Writes to `folder` a line every `every` updates, as far as it is called; 0: none.
  ServerPhases(const std::string& folder, uint64_t every, std::function<void(const std::string&)> warn);

  /// Writes a line if one is due. The first call keeps the lines of an earlier process up to its version.
  void look(const ServerTotals& totals);
  /// Writes what came after the last line.
  void end(const ServerTotals& totals);

 private:
  static constexpr std::array<std::string_view, 5> kStages = {"receive", "wait", "apply", "send", "store"};

  void open(uint64_t version);
  void add_line(const ServerTotals& totals);
  void fail(const std::string& why);

  std::string path_;
  uint64_t every_;
  std::function<void(const std::string&)> warn_;
  std::optional<base::CsvFile> file_;
  uint64_t version_ = 0;  ///< version and totals at the last line
  uint64_t pushes_ = 0;
  std::array<double, kStages.size()> seconds_ = {};
};

}  // namespace lockstep::run
