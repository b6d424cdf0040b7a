#include "records/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "base/json.h"
#include "base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::records {
namespace {

using nlohmann::json;

/// Largest number taken for a measurement; larger ones would not fit where numbers are shown.
constexpr double kLargest = 1e18;

/// Returns the number of a key. Counts, times and shares are never below 0; only a loss may be.
double number_of(std::string_view key, const json& value) {
  if (!value.is_number()) return kUnknown;
  const double number = value.get<double>();
  if (number < 0 && key.find("loss") == std::string_view::npos) return kUnknown;
  return std::fabs(number) < kLargest ? number : kUnknown;
}

double number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? kUnknown : number_of(key, *found);
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

void read_scalars(const json& object, const std::string& prefix, RunSummary& summary) {
  for (const auto& [key, value] : object.items()) {
    const double number = number_of(key, value);
    if (known(number)) summary.numbers[prefix + key] = number;
    if (value.is_string()) summary.texts[prefix + key] = printable(value.get<std::string>());
  }
}

WorkerRow worker_of(const json& object) {
  WorkerRow row;
  row.role = text_at(object, "role");
  row.iterations = number_at(object, "iterations");
  row.examples = number_at(object, "examples");
  row.updates = number_at(object, "updates");
  row.dropped = number_at(object, "dropped");
  row.restarts = number_at(object, "restarts");
  row.finished_seconds = number_at(object, "finished_seconds");
  row.staleness_mean = number_at(object, "staleness_mean");
  row.staleness_max = number_at(object, "staleness_max");
  row.wait_share = number_at(object, "wait_share");
  row.load_seconds = number_at(object, "load_seconds");
  row.compute_seconds = number_at(object, "compute_seconds");
  row.loss = number_at(object, "loss");
  row.accuracy = number_at(object, "accuracy");
  return row;
}

/// Returns the objects of a list; empty if it is not a list.
std::vector<json> objects_at(const json& object, const char* key) {
  std::vector<json> result;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return result;
  for (const json& item : *found) {
    if (item.is_object()) result.push_back(item);
  }
  return result;
}

void read_phases(const json& object, RunSummary& summary) {
  for (const json& item : objects_at(object, "phases")) {
    PhaseTotals phase{text_at(item, "phase"),   number_at(item, "count"), number_at(item, "seconds"),
                      number_at(item, "share"), number_at(item, "mean"),  number_at(item, "p50"),
                      number_at(item, "p95"),   number_at(item, "p99")};
    const bool again = std::any_of(summary.phases.begin(), summary.phases.end(),
                                   [&](const PhaseTotals& other) { return other.name == phase.name; });
    if (!phase.name.empty() && known(phase.seconds) && !again) summary.phases.push_back(phase);
  }
  double all = 0;
  for (const PhaseTotals& phase : summary.phases) all += phase.seconds;
  for (PhaseTotals& phase : summary.phases) phase.share = all > 0 ? phase.seconds / all : 0;
}

void read_resources(const json& resources, RunSummary& summary) {
  read_scalars(resources, "resources.", summary);
  for (const auto& [key, value] : resources.items()) {
    if (!value.is_object()) continue;
    summary.resources[printable(key)] = {number_at(value, "mean"), number_at(value, "p50"), number_at(value, "p95"),
                                         number_at(value, "max")};
  }
}

std::string not_what(const char* wanted) {
  return fmt::format(": not a JSON {}; it is damaged, cut off or nested deeper than {} levels", wanted,
                     base::kDeepestJson);
}

json object_of(const std::string& text, const std::string& file) {
  json object = base::parse_json_or_discard(text);
  if (!object.is_object()) throw DataError(file + not_what("object"));
  return object;
}

/// Returns whether a character is a control character (C0, C1), separates lines or changes the direction of text.
bool controls(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (character.size() == 2) return (byte(0) == 0xC2 && byte(1) < 0xA0) || character == "\xD8\x9C";
  if (character.size() != 3 || byte(0) != 0xE2) return false;
  const bool marks = byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE));
  return marks || (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
}

}  // namespace

double RunSummary::number(std::string_view key) const {
  const auto found = numbers.find(key);
  return found == numbers.end() ? kUnknown : found->second;
}

std::string RunSummary::text(std::string_view key) const {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

RunSummary parse_summary(const std::string& text, const std::string& file) {
  const json object = object_of(text, file);
  RunSummary summary;
  read_scalars(object, "", summary);
  for (const json& item : objects_at(object, "workers")) summary.workers.push_back(worker_of(item));
  read_phases(object, summary);
  if (const auto found = object.find("communication"); found != object.end() && found->is_object()) {
    read_scalars(*found, "communication.", summary);
  }
  if (const auto found = object.find("resources"); found != object.end() && found->is_object()) {
    read_resources(*found, summary);
  }
  const auto stragglers = object.find("stragglers");
  if (stragglers == object.end() || !stragglers->is_array()) return summary;
  for (const json& line : *stragglers) {
    if (line.is_string()) summary.stragglers.push_back(printable(line.get<std::string>()));
  }
  return summary;
}

RunSummary lasting_part(const RunSummary& summary) {
  constexpr std::array<std::string_view, 9> kLasting{"host",
                                                     "model",
                                                     "dataset",
                                                     "strategy",
                                                     "mode",
                                                     "role",
                                                     "resources.cores",
                                                     "resources.memory_bytes",
                                                     "communication.engine"};
  RunSummary result;
  for (const std::string_view key : kLasting) {
    if (const auto found = summary.numbers.find(key); found != summary.numbers.end()) result.numbers.insert(*found);
    if (const auto found = summary.texts.find(key); found != summary.texts.end()) result.texts.insert(*found);
  }
  return result;
}

std::map<std::string, Throttling, std::less<>> parse_throttling(const std::string& text, const std::string& file) {
  std::map<std::string, Throttling, std::less<>> result;
  const json object = object_of(text, file);
  for (const auto& [role, value] : object.items()) {
    if (!value.is_object()) continue;
    result[printable(role)] = {number_at(value, "periods"), number_at(value, "throttled_periods"),
                               number_at(value, "throttled_seconds")};
  }
  return result;
}

std::vector<NodeRecord> parse_nodes(const std::string& text, const std::string& file) {
  const json list = base::parse_json_or_discard(text);
  if (!list.is_array()) throw DataError(file + not_what("list"));
  std::vector<NodeRecord> result;
  for (const json& item : list) {
    if (!item.is_object()) continue;
    NodeRecord node{.name = text_at(item, "node"), .address = text_at(item, "address")};
    node.cores = number_at(item, "cores");
    node.machine_cores = number_at(item, "machine_cores");
    node.memory_bytes = number_at(item, "memory_bytes");
    node.rate = number_at(item, "rate");
    node.delay_seconds = number_at(item, "delay_seconds");
    node.loss = number_at(item, "loss");
    node.throttled_seconds = number_at(item, "throttled_seconds");
    const auto roles = item.find("roles");
    if (roles != item.end() && roles->is_array()) {
      for (const json& role : *roles) {
        if (role.is_string()) node.roles.push_back(printable(role.get<std::string>()));
      }
    }
    if (!node.name.empty()) result.push_back(std::move(node));
  }
  return result;
}

std::vector<FaultRecord> parse_faults(const std::string& text) {
  std::vector<FaultRecord> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const json item = base::parse_json_or_discard(line);
    if (!item.is_object() || text_at(item, "fault").empty()) continue;
    const auto ended = item.find("ended");
    result.push_back({number_at(item, "seconds"), text_at(item, "fault"), text_at(item, "kind"),
                      text_at(item, "target"), ended != item.end() && ended->is_boolean() && ended->get<bool>()});
  }
  return result;
}

std::string printable(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = base::character_length(text.substr(at));
    const std::string_view character = text.substr(at, length);
    result += length == 0 || controls(character) ? "?" : character;
    at += std::max<size_t>(length, 1);
  }
  return result;
}

}  // namespace lockstep::records
