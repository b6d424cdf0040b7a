// Reads event files back, for tests: whole records with valid checksums, up to the first broken one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/temp_dir.h"
#include "tensorboard.pb.h"

namespace lockstep::observe::testing {

/// Computes the checksum bit by bit, following the definition.
inline uint32_t plain_crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

inline uint32_t plain_mask(uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U; }

struct Contents {
  std::vector<tensorboard::Event> events;
  std::vector<size_t> ends;  ///< end of each record, in bytes
  size_t left_over = 0;      ///< bytes after the last whole record
};

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

inline Contents parse_events(std::string_view bytes) {
  Contents contents;
  size_t at = 0;
  while (bytes.size() - at >= 16) {
    const auto length = number_at<uint64_t>(bytes, at);
    if (number_at<uint32_t>(bytes, at + 8) != plain_mask(plain_crc32c(bytes.substr(at, 8)))) break;
    if (bytes.size() - at - 16 < length) break;
    const std::string_view data = bytes.substr(at + 12, length);
    if (number_at<uint32_t>(bytes, at + 12 + length) != plain_mask(plain_crc32c(data))) break;
    tensorboard::Event event;
    if (!event.ParseFromArray(data.data(), static_cast<int>(data.size()))) break;
    contents.events.push_back(event);
    at += 16 + length;
    contents.ends.push_back(at);
  }
  contents.left_over = bytes.size() - at;
  return contents;
}

/// Returns the event files of a folder in the order in which readers take them.
inline std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

inline Contents read_events(const std::string& path) { return parse_events(lockstep::testing::get_file(path)); }

/// Returns the events of all files of a folder.
inline std::vector<tensorboard::Event> events_of(const std::string& folder) {
  std::vector<tensorboard::Event> events;
  for (const std::string& path : event_files(folder)) {
    const Contents contents = read_events(path);
    events.insert(events.end(), contents.events.begin(), contents.events.end());
  }
  return events;
}

}  // namespace lockstep::observe::testing
