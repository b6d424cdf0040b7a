#include "run/run_end.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/checkpoint_store.h"
#include "lockstep/error.h"

namespace lockstep::run {
namespace {

constexpr uint64_t kLargestSummary = 64'000'000;

train::StopReason reason_of(const std::string& named) {
  for (int i = 0; i <= static_cast<int>(train::StopReason::error); ++i) {
    if (text(static_cast<train::StopReason>(i)) == named) return static_cast<train::StopReason>(i);
  }
  return train::StopReason::none;
}

}  // namespace

std::optional<exchange::Ending> read_ending(const std::string& summary_file) {
  std::vector<uint8_t> bytes;
  try {
    bytes = base::read_file(summary_file, kLargestSummary);
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto summary = base::parse_json_or_discard({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!summary.is_object()) return std::nullopt;
  const auto reason = summary.find("stop_reason");
  const auto steps = summary.find("steps");
  if (reason == summary.end() || !reason->is_string()) return std::nullopt;
  if (steps == summary.end() || !steps->is_number_unsigned()) return std::nullopt;
  return exchange::Ending{reason_of(reason->get<std::string>()), steps->get<uint64_t>()};
}

uint64_t kept_step(const std::string& run) {
  const std::vector<checkpoint::CheckpointStore::File> files = checkpoint::CheckpointStore(run + "/checkpoints").list();
  const std::optional<exchange::Ending> ended = read_ending(run + "/summary.json");
  return std::max(files.empty() ? 0 : files.back().step, ended ? ended->step : 0);
}

RunEnd::RunEnd(const std::string& run) : file_(run + "/summary.json"), before_(stamp()) {}

RunEnd::Stamp RunEnd::stamp() const {
  struct stat found {};
  if (::stat(file_.c_str(), &found) != 0) return {};
  return {found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

std::optional<exchange::Ending> RunEnd::look() const {
  if (stamp() == before_) return std::nullopt;
  std::optional<exchange::Ending> ending = read_ending(file_);
  if (ending && (ending->reason == train::StopReason::none || ending->reason == train::StopReason::error))
    ending.reset();
  return ending;
}

}  // namespace lockstep::run
