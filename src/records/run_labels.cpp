#include "records/run_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "lockstep/error.h"
#include "records/run_summary.h"

namespace lockstep::records {
namespace {

constexpr uint64_t kLargestLabels = 1 << 20;
constexpr size_t kLongestTag = 64;
constexpr size_t kMostTags = 100;
constexpr size_t kLongestNote = 10'000;

std::string labels_file(const std::string& run) { return run + "/labels.json"; }

void check_tag(const std::string& tag) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  if (tag.empty() || tag.size() > kLongestTag || tag.front() == '-' || !std::all_of(tag.begin(), tag.end(), fits)) {
    throw UsageError(
        fmt::format("tag '{}' is not allowed; it takes 1 to {} letters, digits and . _ -, and does not "
                    "begin with -",
                    printable(tag), kLongestTag));
  }
}

}  // namespace

RunLabels read_labels(const std::string& run) {
  const std::string path = labels_file(run);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const std::vector<uint8_t> bytes = base::read_file(path, kLargestLabels);
  const auto json = base::parse_json_or_discard({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!json.is_object()) throw DataError(path + ": not a JSON object");
  RunLabels labels;
  const auto tags = json.find("tags");
  if (tags != json.end() && tags->is_array()) {
    for (const auto& tag : *tags) {
      if (tag.is_string() && labels.tags.size() < kMostTags) labels.tags.push_back(printable(tag.get<std::string>()));
    }
  }
  const auto note = json.find("note");
  if (note != json.end() && note->is_string()) labels.note = printable(note->get<std::string>());
  return labels;
}

void write_labels(const std::string& run, RunLabels labels) {
  for (const std::string& tag : labels.tags) check_tag(tag);
  if (labels.note.size() > kLongestNote)
    throw UsageError(fmt::format("the note is longer than {} bytes", kLongestNote));
  if (printable(labels.note) != labels.note) throw UsageError("the note holds control characters or is not UTF-8");
  std::sort(labels.tags.begin(), labels.tags.end());
  labels.tags.erase(std::unique(labels.tags.begin(), labels.tags.end()), labels.tags.end());
  if (labels.tags.size() > kMostTags) throw UsageError(fmt::format("a run has at most {} tags", kMostTags));
  if (labels.empty()) {
    std::error_code ignored;
    std::filesystem::remove(labels_file(run), ignored);
    return;
  }
  const nlohmann::ordered_json json{{"tags", labels.tags}, {"note", labels.note}};
  base::write_whole_file(labels_file(run), json.dump(2) + "\n");
}

}  // namespace lockstep::records
