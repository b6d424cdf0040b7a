// The part of the zip format that numpy writes: entries found through the central directory, stored or deflated.
//
// Checks all offsets and sizes against the file before use. Free functions over borrowed bytes, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct ZipEntry {
  std::string name;
  uint32_t method = 0;  ///< 0 stored, 8 deflated
  uint32_t crc = 0;
  uint32_t packed_size = 0;
  uint32_t size = 0;
  uint32_t header_offset = 0;
};

/// Returns the entries. Throws DataError if the file is not a zip archive, is damaged, or is zip64, encrypted or split.
std::vector<ZipEntry> zip_entries(std::span<const uint8_t> file, const std::string& file_name);

/// Returns the unpacked content of an entry, after checking its checksum.
std::vector<uint8_t> zip_unpack(std::span<const uint8_t> file, const ZipEntry& entry, const std::string& file_name);

}  // namespace lockstep::data
