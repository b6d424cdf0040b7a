#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr size_t kPrefixBytes = 24;
constexpr size_t kTrailerBytes = 4;
constexpr uint32_t kLargestHeader = 64U << 20;

struct Prefix {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t header_bytes = 0;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Prefix) == kPrefixBytes);

uint32_t checksum(uint32_t before, const void* data, size_t size) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const Bytef*>(data), size));
}

[[noreturn]] void reject(const std::string& name, const std::string& why) {
  throw DataError("checkpoint " + name + ": " + why);
}

/// Returns "starts with 'text'", or words for bytes that are no text.
std::string start_of(std::span<const char> bytes) {
  const auto is_text = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (!std::all_of(bytes.begin(), bytes.end(), is_text)) return "starts with other bytes";
  return fmt::format("starts with '{}'", std::string_view(bytes.data(), bytes.size()));
}

/// Returns the prefix after checking it against the file's length.
Prefix read_prefix(std::span<const uint8_t> file, const std::string& name) {
  Prefix prefix;
  if (file.empty()) reject(name, "is empty");
  std::memcpy(&prefix, file.data(), std::min(file.size(), kPrefixBytes));
  const size_t seen = std::min(file.size(), kCheckpointMagic.size());
  if (!std::equal(prefix.magic.begin(), prefix.magic.begin() + static_cast<std::ptrdiff_t>(seen),
                  kCheckpointMagic.begin())) {
    reject(name, fmt::format("is not a checkpoint: {}, expected '{}'", start_of(std::span(prefix.magic).first(seen)),
                             kCheckpointMagic));
  }
  if (file.size() < kPrefixBytes + kTrailerBytes) {
    reject(name,
           fmt::format("is truncated: {} bytes, expected at least {}", file.size(), kPrefixBytes + kTrailerBytes));
  }
  if (prefix.version == 0 || prefix.version > kCheckpointVersion) {
    reject(name, fmt::format("has format version {}; this program reads versions 1 to {}", prefix.version,
                             kCheckpointVersion));
  }
  if (prefix.header_bytes > kLargestHeader) {
    reject(name, fmt::format("is damaged: a header of {} bytes, at most {} are allowed", prefix.header_bytes,
                             kLargestHeader));
  }
  const uint64_t rest = file.size() - kPrefixBytes - kTrailerBytes;
  if (prefix.header_bytes <= rest && prefix.payload_bytes == rest - prefix.header_bytes) return prefix;
  const bool shorter = prefix.header_bytes > rest || prefix.payload_bytes > rest - prefix.header_bytes;
  reject(name, fmt::format("is {}: {} bytes, but its prefix promises {} of header and {} of data",
                           shorter ? "truncated" : "damaged", file.size(), prefix.header_bytes, prefix.payload_bytes));
}

void check_sum(std::span<const uint8_t> file, const std::string& name) {
  const auto content = file.first(file.size() - kTrailerBytes);
  uint32_t stored = 0;
  std::memcpy(&stored, content.data() + content.size(), kTrailerBytes);
  const uint32_t computed = checksum(0, content.data(), content.size());
  if (stored == computed) return;
  reject(name, fmt::format("is damaged: checksum {:08x}, expected {:08x}", computed, stored));
}

}  // namespace

size_t CheckpointHeader::parameter_count() const {
  size_t count = 0;
  for (const ParameterEntry& parameter : parameters) count += static_cast<size_t>(parameter.shape.elements());
  return count;
}

std::span<const float> Checkpoint::parameters() const { return std::span(values).first(header.parameter_count()); }

std::span<const float> Checkpoint::slot(size_t i) const {
  const size_t count = header.parameter_count();
  return std::span(values).subspan((i + 1) * count, count);
}

std::vector<ParameterEntry> parameter_entries(const std::vector<graph::ParameterInfo>& infos) {
  std::vector<ParameterEntry> entries;
  for (const graph::ParameterInfo& info : infos) entries.push_back({info.name, info.shape});
  return entries;
}

size_t write_checkpoint(const std::string& path, const CheckpointHeader& header,
                        std::span<const std::span<const float>> arrays, const std::function<bool()>& may_keep) {
  const std::string json = header_to_json(header);
  Prefix prefix;
  std::copy(kCheckpointMagic.begin(), kCheckpointMagic.end(), prefix.magic.begin());
  prefix.version = kCheckpointVersion;
  prefix.header_bytes = static_cast<uint32_t>(json.size());
  for (const auto array : arrays) prefix.payload_bytes += array.size_bytes();
  base::WholeFile file(path);
  uint32_t sum = 0;
  const auto put = [&](const void* data, size_t size) {
    sum = checksum(sum, data, size);
    file.write(std::span(static_cast<const uint8_t*>(data), size));
  };
  put(&prefix, kPrefixBytes);
  put(json.data(), json.size());
  for (const auto array : arrays) put(array.data(), array.size_bytes());
  const uint32_t total = sum;
  file.write(std::span(reinterpret_cast<const uint8_t*>(&total), kTrailerBytes));
  if (may_keep && !may_keep()) return 0;
  file.commit();
  return kPrefixBytes + json.size() + prefix.payload_bytes + kTrailerBytes;
}

Checkpoint read_checkpoint(const std::string& path) { return parse_checkpoint(base::read_file(path), path); }

Checkpoint parse_checkpoint(std::span<const uint8_t> file, const std::string& name) {
  const Prefix prefix = read_prefix(file, name);
  check_sum(file, name);
  const auto json = file.subspan(kPrefixBytes, prefix.header_bytes);
  const auto payload = file.subspan(kPrefixBytes + prefix.header_bytes, prefix.payload_bytes);
  Checkpoint checkpoint;
  checkpoint.header = header_from_json({reinterpret_cast<const char*>(json.data()), json.size()}, name);
  const size_t arrays = 1 + checkpoint.header.slots.size();
  const size_t count = checkpoint.header.parameter_count();
  // The header reader bounds count and arrays, so this cannot overflow.
  if (payload.size() != count * arrays * sizeof(float)) {
    reject(name, fmt::format("is damaged: {} bytes of data, expected {} for {} arrays of {} values", payload.size(),
                             count * arrays * sizeof(float), arrays, count));
  }
  checkpoint.values.resize(count * arrays);
  if (!payload.empty()) std::memcpy(checkpoint.values.data(), payload.data(), payload.size());
  return checkpoint;
}

}  // namespace lockstep::checkpoint
