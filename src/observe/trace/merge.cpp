#include "observe/trace/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "lockstep/error.h"

namespace lockstep::observe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kLongestLine = size_t{1} << 20;
constexpr double kMostTime = 1e15;  ///< limit of a time in an event or between clocks, in microseconds
constexpr int64_t kLatest = 4'000'000'000'000'000'000;  ///< limit in nanoseconds since 1970; half of the type's range

/// One role's trace, open after its first line.
struct Part {
  std::string path;
  std::string role;
  std::string host;
  std::ifstream file;
  int64_t began = 0;                     ///< nanoseconds since 1970 by its clock
  int64_t ended = 0;                     ///< likewise, when it wrote this
  std::map<std::string, double> clocks;  ///< nanoseconds to add to its own clock, by other role
  double offset = 0;                     ///< nanoseconds to add for the common clock
  int number = 0;

  [[nodiscard]] int64_t start() const { return began + static_cast<int64_t>(offset); }
  [[nodiscard]] int64_t end() const { return ended + static_cast<int64_t>(offset); }
};

/// Reads a line; returns false at the end, or at a line too long to be one of ours.
bool next_line(std::ifstream& file, std::string& line) {
  return std::getline(file, line) && line.size() <= kLongestLine;
}

double number(const json& from, const char* key) {
  const auto found = from.find(key);
  const double value = found != from.end() && found->is_number() ? found->get<double>() : 0;
  return value > -kMostTime && value < kMostTime ? value : 0;
}

std::string text(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Returns nanoseconds since 1970; 0 if missing.
int64_t moment(const json& from, const char* key) {
  const auto found = from.find(key);
  const int64_t value = found != from.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  return value > 0 && value <= kLatest ? value : 0;
}

/// Throws DataError unless the file begins as one of our traces.
Part open_part(const std::string& path) {
  Part part;
  part.path = path;
  part.file.open(path);
  std::string line;
  if (!part.file || !next_line(part.file, line)) throw DataError("it cannot be read, or is empty");
  const json head = base::parse_json_or_discard(line + "]}");
  const auto other = head.is_object() ? head.find("otherData") : head.end();
  if (!head.is_object() || other == head.end() || !other->is_object() || text(*other, "role").empty()) {
    throw DataError("its first line does not name a role");
  }
  part.role = text(*other, "role");
  part.host = text(*other, "host");
  part.began = moment(*other, "began_ns");
  part.ended = moment(*other, "ended_ns");
  if (part.began == 0 || part.ended < part.began) throw DataError("its times of begin and end are missing or invalid");
  const auto clocks = other->find("clocks");
  if (clocks != other->end() && clocks->is_object()) {
    for (const auto& [name, offset] : clocks->items()) part.clocks[name] = number(*clocks, name.c_str()) * 1000;
  }
  return part;
}

std::vector<std::string> find_parts(const std::string& run_folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder, ignored)) {
    const fs::path file = entry.path() / kTraceFile;
    if (entry.is_directory(ignored) && fs::is_regular_file(file, ignored)) paths.push_back(file.string());
  }
  const fs::path chief = fs::path(run_folder) / kChiefTraceFile;
  if (fs::is_regular_file(chief, ignored)) paths.push_back(chief.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Each role has estimated the offset of its clock from others'. The reference is the clock that most roles know;
/// offsets are added along chains of roles that know each other. A role without a chain keeps its own clock.
void find_offsets(std::vector<Part>& parts) {
  std::map<std::string, int> known;
  for (const Part& part : parts) {
    for (const auto& [name, offset] : part.clocks) ++known[name];
  }
  const auto by_references = [&](const Part& a, const Part& b) { return known[a.role] < known[b.role]; };
  std::map<std::string, double> found{{std::max_element(parts.begin(), parts.end(), by_references)->role, 0.0}};
  for (bool more = true; more;) {
    more = false;
    for (const Part& part : parts) {
      for (const auto& [name, offset] : part.clocks) {
        const auto mine = found.find(part.role);
        const auto other = found.find(name);
        if ((mine == found.end()) == (other == found.end())) continue;
        more = true;
        if (mine == found.end()) {
          found[part.role] = other->second + offset;
        } else {
          found[name] = mine->second - offset;
        }
      }
    }
  }
  for (Part& part : parts) {
    const auto at = found.find(part.role);
    part.offset = at == found.end() ? 0 : std::clamp(at->second, -kMostTime * 1000, kMostTime * 1000);
  }
}

/// Roles that train together overlap in time, if only in chains. A part that ended before any part of the newest start
/// began is left over from an earlier start.
void leave_out_earlier(std::vector<Part>& parts, std::vector<std::string>& problems) {
  std::vector<const Part*> newest_first;
  for (const Part& part : parts) newest_first.push_back(&part);
  std::sort(newest_first.begin(), newest_first.end(), [](const Part* a, const Part* b) { return a->end() > b->end(); });
  int64_t began = newest_first.front()->start();
  for (const Part* part : newest_first) {
    if (part->end() >= began) began = std::min(began, part->start());
  }
  std::erase_if(parts, [&](const Part& part) {
    const bool earlier = part.end() < began;
    if (earlier) {
      problems.push_back(
          fmt::format("{} is left out of the trace: it ended before the others began, so it belongs to an "
                      "earlier start of the run",
                      part.path));
    }
    return earlier;
  });
}

/// Copies the events of a part, moved by `shift` microseconds. Returns the number of lines before a damaged one;
/// nothing if all lines are fine.
std::optional<size_t> copy(Part& part, double shift, bool& first, base::WholeFile& to) {
  std::string line;
  std::string out;
  std::optional<size_t> damaged;
  for (size_t lines = 1;; ++lines) {
    const bool more = next_line(part.file, line);
    if (more && line == "]}") break;
    if (!line.empty() && line.back() == ',') line.pop_back();
    json event = more ? base::parse_json_or_discard(line) : json();
    if (!event.is_object()) {
      damaged = lines;
      break;
    }
    event["pid"] = part.number;
    if (event.contains("ts")) event["ts"] = std::round((number(event, "ts") + shift) * 1000) / 1000;
    out += first ? "" : ",\n";
    out += event.dump(-1, ' ', false, json::error_handler_t::replace);
    first = false;
    if (out.size() < kLongestLine) continue;
    to.write(out);
    out.clear();
  }
  to.write(out);
  return damaged;
}

}  // namespace

MergedTrace merge_traces(const std::string& run_folder) {
  MergedTrace merged;
  std::vector<Part> parts;
  for (const std::string& path : find_parts(run_folder)) {
    try {
      parts.push_back(open_part(path));
    } catch (const Error& error) {
      merged.problems.push_back(fmt::format("{} is left out of the trace: {}", path, error.what()));
    }
  }
  if (parts.empty()) return merged;
  find_offsets(parts);
  leave_out_earlier(parts, merged.problems);
  find_offsets(parts);
  // Times count from the first beginning, so that they have few digits: readers use doubles.
  int64_t earliest = parts.front().start();
  for (Part& part : parts) {
    part.number = static_cast<int>(&part - parts.data()) + 1;
    earliest = std::min(earliest, part.start());
  }
  json other{{"roles", json::array()}, {"began_ns", earliest}};
  for (const Part& part : parts) {
    other["roles"].push_back({{"role", part.role}, {"host", part.host}, {"clock_offset_us", part.offset / 1000}});
  }
  merged.path = (fs::path(run_folder) / kTraceFile).string();
  base::WholeFile file(merged.path);
  file.write(fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n",
                         other.dump(-1, ' ', false, json::error_handler_t::replace)));
  bool first = true;
  for (Part& part : parts) {
    const double shift = static_cast<double>(part.start() - earliest) / 1000;
    const std::optional<size_t> damaged = copy(part, shift, first, file);
    ++merged.roles;
    if (!damaged) continue;
    merged.problems.push_back(
        fmt::format("{} is damaged after line {}: the rest of it is left out of the trace", part.path, *damaged));
  }
  file.write("\n]}\n");
  file.commit();
  return merged;
}

void remove_traces(const std::string& run_folder) {
  std::error_code ignored;
  for (const std::string& path : find_parts(run_folder)) fs::remove(path, ignored);
  fs::remove(fs::path(run_folder) / kTraceFile, ignored);
}

}  // namespace lockstep::observe
