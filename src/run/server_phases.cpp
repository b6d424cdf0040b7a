#include "run/server_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::run {

ServerPhases::ServerPhases(const std::string& folder, uint64_t every, std::function<void(const std::string&)> warn)
    : path_(folder + "/phases.csv"), every_(every), warn_(std::move(warn)) {}

void ServerPhases::open(uint64_t version) {
  version_ = version;
  try {
    file_ = base::CsvFile::resume(path_, fmt::format("step,seconds,pushes,{}", fmt::join(kStages, ",")), version);
  } catch (const Error& error) {
    fail(error.what());
  }
}

void ServerPhases::fail(const std::string& why) {
  file_.reset();
  every_ = 0;
  warn_(why);
}

void ServerPhases::look(const ServerTotals& totals) {
  if (every_ > 0 && !file_) open(totals.version);
  if (file_ && totals.version / every_ != version_ / every_) add_line(totals);
}

void ServerPhases::end(const ServerTotals& totals) {
  if (every_ > 0 && !file_) open(totals.version);
  if (file_) add_line(totals);
}

void ServerPhases::add_line(const ServerTotals& totals) {
  std::string line = fmt::format("{},{:.6f},{}", totals.version, totals.seconds, totals.pushes - pushes_);
  for (size_t i = 0; i < kStages.size(); ++i) {
    const auto stage = std::find_if(totals.stages.begin(), totals.stages.end(),
                                    [&](const base::DurationRecord& record) { return record.name == kStages[i]; });
    const double seconds = stage == totals.stages.end() ? 0 : stage->seconds;
    line += fmt::format(",{:.9g}", seconds - std::exchange(seconds_[i], seconds));
  }
  version_ = totals.version;
  pushes_ = totals.pushes;
  try {
    file_->add(line);
    file_->flush();
  } catch (const Error& error) {
    fail(error.what());
  }
}

}  // namespace lockstep::run
