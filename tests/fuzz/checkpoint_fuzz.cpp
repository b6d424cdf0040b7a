// The checkpoint reader must answer any bytes with a checkpoint or a DataError. A checksum hides everything behind it
// from a fuzzer, so each input is read three ways: as a file, as a file with a corrected checksum, and as the JSON
// header alone.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "lockstep/error.h"

namespace {

void read_file(std::span<const uint8_t> file) {
  try {
    const auto checkpoint = lockstep::checkpoint::parse_checkpoint(file, "fuzz");
    if (checkpoint.values.size() != checkpoint.parameters().size() * (1 + checkpoint.header.slots.size())) std::abort();
  } catch (const lockstep::DataError&) {
  }
}

void read_header(std::string_view json) {
  try {
    const auto header = lockstep::checkpoint::header_from_json(json, "fuzz");
    const std::string again = lockstep::checkpoint::header_to_json(header);
    if (lockstep::checkpoint::header_to_json(lockstep::checkpoint::header_from_json(again, "fuzz")) != again)
      std::abort();
  } catch (const lockstep::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_file(std::span(data, size));
  read_header({reinterpret_cast<const char*>(data), size});
  constexpr size_t kPrefix = 24;
  constexpr size_t kTrailer = 4;
  if (size < kPrefix + kTrailer) return 0;
  std::vector<uint8_t> file(data, data + size);
  const auto sum = static_cast<uint32_t>(crc32_z(0, file.data(), size - kTrailer));
  std::memcpy(file.data() + size - kTrailer, &sum, kTrailer);
  read_file(file);
  return 0;
}
