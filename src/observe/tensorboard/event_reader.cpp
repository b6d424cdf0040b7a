#include "observe/tensorboard/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"
#include "observe/tensorboard/crc32c.h"
#include "tensorboard.pb.h"

namespace lockstep::observe {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const uint8_t>;

constexpr size_t kHeadBytes = 12;  ///< length and its checksum
constexpr size_t kTailBytes = 4;   ///< checksum of the data
constexpr size_t kLongestTag = 1000;
constexpr size_t kMostNamed = 10;
static_assert(std::endian::native == std::endian::little);

template <class T>
T number_at(Bytes bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
std::optional<double> first_number(const std::string& content) {
  if (content.size() != sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, content.data(), sizeof value);
  return static_cast<double>(value);
}

std::optional<double> number_of(const tensorboard::TensorProto& tensor) {
  for (const auto& dim : tensor.tensor_shape().dim()) {
    if (dim.size() != 1) return std::nullopt;
  }
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  switch (tensor.dtype()) {
    case tensorboard::FLOAT:
      return first_number<float>(tensor.tensor_content());
    case tensorboard::DOUBLE:
      return first_number<double>(tensor.tensor_content());
    case tensorboard::INT32:
      return first_number<int32_t>(tensor.tensor_content());
    case tensorboard::INT64:
      return first_number<int64_t>(tensor.tensor_content());
    default:
      return std::nullopt;
  }
}

std::optional<double> number_of(const tensorboard::Summary::Value& value) {
  if (value.has_simple_value()) return value.simple_value();
  return value.has_tensor() ? number_of(value.tensor()) : std::nullopt;
}

/// Adds an event's scalars.
void take(const tensorboard::Event& event, std::string_view tag, std::set<std::string>& tags, Scalars& result,
          const std::string& file) {
  for (const tensorboard::Summary::Value& value : event.summary().value()) {
    const std::optional<double> number = number_of(value);
    if (!number || value.tag().size() > kLongestTag) continue;
    if (tags.size() < kMostTags) tags.insert(value.tag());
    if (value.tag() != tag) continue;
    if (result.scalars.size() == kMostScalars) {
      throw DataError(fmt::format("{}: has more than {} scalars '{}'", file, kMostScalars, tag));
    }
    result.scalars.push_back({event.wall_time(), event.step(), *number});
  }
}

}  // namespace

Scalars read_scalars(Bytes bytes, std::string_view tag, const std::string& file) {
  Scalars result;
  std::set<std::string> tags;
  size_t record = 0;
  for (size_t at = 0; bytes.size() - at >= kHeadBytes + kTailBytes;) {
    ++record;
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}: record {} at byte {}: {}", file, record, at, what));
    };
    const auto length = number_at<uint64_t>(bytes, at);
    if (number_at<uint32_t>(bytes, at + 8) != masked(crc32c(bytes.subspan(at, 8)))) {
      fail("the checksum of its length is wrong; it is damaged, or not an event file of TensorBoard");
    }
    if (length > kLargestEvent) fail(fmt::format("has {} bytes; at most {} are allowed", length, kLargestEvent));
    if (length > bytes.size() - at - kHeadBytes - kTailBytes) break;  // still being written
    const Bytes data = bytes.subspan(at + kHeadBytes, length);
    if (number_at<uint32_t>(bytes, at + kHeadBytes + length) != masked(crc32c(data))) fail("its checksum is wrong");
    tensorboard::Event event;
    if (!event.ParseFromArray(data.data(), static_cast<int>(data.size()))) fail("is not an event");
    take(event, tag, tags, result, file);
    at += kHeadBytes + length + kTailBytes;
  }
  result.tags.assign(tags.begin(), tags.end());
  return result;
}

Scalars read_scalars_of(const std::string& folder, std::string_view tag) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().find("tfevents") != std::string::npos)
      files.push_back(entry->path().string());
  }
  if (files.empty()) throw DataError(fmt::format("{}: has no event files of TensorBoard (*tfevents*)", folder));
  std::sort(files.begin(), files.end());
  Scalars all;
  std::set<std::string> tags;
  for (const std::string& file : files) {
    const Scalars more = read_scalars(base::read_file(file, kLargestEventFile), tag, file);
    all.scalars.insert(all.scalars.end(), more.scalars.begin(), more.scalars.end());
    tags.insert(more.tags.begin(), more.tags.end());
  }
  all.tags.assign(tags.begin(), tags.end());
  if (all.scalars.empty()) {
    std::string names;
    for (size_t i = 0; i < std::min(all.tags.size(), kMostNamed); ++i)
      names += (i == 0 ? "" : ", ") + base::shown(all.tags[i]);
    throw DataError(fmt::format("{}: has no scalar '{}'; it has {}", folder, base::shown(std::string(tag)),
                                names.empty() ? "no scalars" : names + (all.tags.size() > kMostNamed ? ", ..." : "")));
  }
  std::stable_sort(all.scalars.begin(), all.scalars.end(),
                   [](const Scalar& a, const Scalar& b) { return a.time < b.time; });
  return all;
}

}  // namespace lockstep::observe
