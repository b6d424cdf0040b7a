#include "data/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEntryMark = 0x02014b50;
constexpr uint32_t kLocalMark = 0x04034b50;
constexpr size_t kEndSize = 22;
constexpr size_t kEntrySize = 46;
constexpr size_t kLocalSize = 30;
constexpr size_t kMaxComment = 0xffff;

/// Read little-endian fields at an offset; the caller has checked that they lie inside the file.
uint32_t u16(std::span<const uint8_t> bytes, size_t at) { return bytes[at] | uint32_t{bytes[at + 1]} << 8; }
uint32_t u32(std::span<const uint8_t> bytes, size_t at) { return u16(bytes, at) | u16(bytes, at + 2) << 16; }

[[noreturn]] void fail(const std::string& file_name, const std::string& reason) {
  throw DataError(file_name + ": " + reason);
}

/// Returns the position of the end record; only its comment follows.
size_t find_end(std::span<const uint8_t> file, const std::string& file_name) {
  if (file.size() >= kEndSize) {
    const size_t last = file.size() - kEndSize;
    const size_t first = last - std::min(last, kMaxComment);
    for (size_t at = last + 1; at-- > first;) {
      if (u32(file, at) == kEndMark && at + kEndSize + u16(file, at + 20) == file.size()) return at;
    }
  }
  fail(file_name, "not a zip archive, or cut off: it has no end record");
}

struct Directory {
  size_t begin = 0;
  size_t end = 0;
  uint32_t entries = 0;
};

Directory find_directory(std::span<const uint8_t> file, const std::string& file_name) {
  const size_t end = find_end(file, file_name);
  const uint32_t entries = u16(file, end + 10);
  const uint64_t size = u32(file, end + 12);
  const uint64_t offset = u32(file, end + 16);
  if (entries == 0xffff || size == 0xffffffff || offset == 0xffffffff) {
    fail(file_name,
         "a zip64 archive (more than 4 GB or 65534 entries); these are not supported: save fewer or smaller "
         "arrays");
  }
  if (u16(file, end + 4) != 0 || u16(file, end + 8) != entries)
    fail(file_name, "a split zip archive; it must be in one file");
  if (offset + size > end) {
    fail(file_name, fmt::format("damaged: its directory ({} bytes from {} on) lies outside the file of {} bytes", size,
                                offset, file.size()));
  }
  return {static_cast<size_t>(offset), static_cast<size_t>(offset + size), entries};
}

ZipEntry read_entry(std::span<const uint8_t> record, const std::string& file_name) {
  ZipEntry entry;
  entry.name.assign(record.begin() + kEntrySize,
                    record.begin() + kEntrySize + static_cast<std::ptrdiff_t>(u16(record, 28)));
  entry.method = u16(record, 10);
  entry.crc = u32(record, 16);
  entry.packed_size = u32(record, 20);
  entry.size = u32(record, 24);
  entry.header_offset = u32(record, 42);
  if (entry.packed_size == 0xffffffff || entry.size == 0xffffffff || entry.header_offset == 0xffffffff) {
    fail(file_name, fmt::format("entry '{}' is zip64 (more than 4 GB); that is not supported", entry.name));
  }
  if ((u16(record, 8) & 1) != 0) fail(file_name, fmt::format("entry '{}' is encrypted", entry.name));
  if (entry.method != 0 && entry.method != 8) {
    fail(file_name, fmt::format("entry '{}' is packed with method {}; 0 (stored) and 8 (deflated) are allowed",
                                entry.name, entry.method));
  }
  return entry;
}

std::vector<uint8_t> inflate_raw(std::span<const uint8_t> packed, const ZipEntry& entry, const std::string& file_name) {
  std::vector<uint8_t> content(entry.size);
  uint8_t nothing = 0;
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw IoError("cannot unpack " + file_name + ": out of memory");
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = content.empty() ? &nothing : content.data();
  stream.avail_out = static_cast<uInt>(content.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.total_out == entry.size;
  inflateEnd(&stream);
  if (!whole)
    fail(file_name, fmt::format("entry '{}' is damaged: it does not unpack to {} bytes", entry.name, entry.size));
  return content;
}

}  // namespace

std::vector<ZipEntry> zip_entries(std::span<const uint8_t> file, const std::string& file_name) {
  const Directory directory = find_directory(file, file_name);
  std::vector<ZipEntry> entries;
  size_t at = directory.begin;
  for (uint32_t i = 0; i < directory.entries; ++i) {
    const std::span<const uint8_t> rest = file.subspan(at, directory.end - at);
    if (rest.size() < kEntrySize || u32(rest, 0) != kEntryMark)
      fail(file_name, fmt::format("damaged entry {} of its directory", i));
    const size_t size = kEntrySize + u16(rest, 28) + u16(rest, 30) + u16(rest, 32);
    if (rest.size() < size) fail(file_name, fmt::format("damaged entry {} of its directory", i));
    entries.push_back(read_entry(rest.first(size), file_name));
    at += size;
  }
  return entries;
}

std::vector<uint8_t> zip_unpack(std::span<const uint8_t> file, const ZipEntry& entry, const std::string& file_name) {
  const size_t header = entry.header_offset;
  if (header + kLocalSize > file.size() || u32(file, header) != kLocalMark) {
    fail(file_name, fmt::format("entry '{}' is damaged: no header at {}", entry.name, header));
  }
  const size_t begin = header + kLocalSize + u16(file, header + 26) + u16(file, header + 28);
  if (begin + entry.packed_size > file.size()) fail(file_name, fmt::format("entry '{}' is cut off", entry.name));
  const std::span<const uint8_t> packed = file.subspan(begin, entry.packed_size);
  const bool stored = entry.method == 0;
  if (stored ? entry.size != packed.size() : entry.size > uint64_t{packed.size()} * 1032) {
    fail(file_name, fmt::format("entry '{}' is damaged: {} bytes cannot come from {} packed ones", entry.name,
                                entry.size, packed.size()));
  }
  std::vector<uint8_t> content =
      stored ? std::vector<uint8_t>(packed.begin(), packed.end()) : inflate_raw(packed, entry, file_name);
  if (crc32_z(0, content.data(), content.size()) != entry.crc) {
    fail(file_name, fmt::format("entry '{}' is damaged: its checksum does not match", entry.name));
  }
  return content;
}

}  // namespace lockstep::data
