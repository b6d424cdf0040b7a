// The reader of hosts' archives must answer any bytes with entries or a DataError, in pieces of any size. Its paths
// never leave their folder; files have the declared number of bytes and stay within the limits. A checksum hides
// everything behind it from a fuzzer, so each input is read unchanged and with the checksums of all possible headers
// corrected. The first byte is the size of the pieces.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "launch/tar_reader.h"
#include "lockstep/error.h"

namespace {

namespace launch = lockstep::launch;

constexpr launch::TarLimits kLimits{100, 40'000};

class Checker final : public launch::TarSink {
 public:
  void folder(const std::string& path) override { check(path); }
  void begin_file(const std::string& path, int64_t modified) override {
    if (open_ || modified < 0) std::abort();
    check(path);
    open_ = true;
  }
  void data(std::string_view bytes) override {
    if (!open_ || (bytes_ += bytes.size()) > kLimits.bytes) std::abort();
  }
  void end_file() override {
    if (!open_) std::abort();
    open_ = false;
  }

 private:
  void check(const std::string& path) {
    const std::string around = "/" + path + "/";
    for (const char* bad : {"//", "/./", "/../"}) {
      if (around.find(bad) != std::string::npos) std::abort();
    }
    for (const char c : path) {
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
    }
    if (++entries_ > kLimits.entries) std::abort();
  }

  bool open_ = false;
  uint64_t bytes_ = 0;
  uint64_t entries_ = 0;
};

void read(const std::string& archive, size_t piece) {
  Checker checker;
  launch::TarReader reader(checker, kLimits);
  try {
    for (size_t at = 0; at < archive.size(); at += piece) reader.feed(std::string_view(archive).substr(at, piece));
    reader.finish();
  } catch (const lockstep::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{data[0]} * 4 + 1;
  std::string archive(reinterpret_cast<const char*>(data + 1), size - 1);
  read(archive, piece);
  constexpr size_t kBlock = 512;
  constexpr size_t kChecksum = 148;
  for (size_t at = 0; at + kBlock <= archive.size(); at += kBlock) {
    if (archive.compare(at + 257, 5, "ustar") != 0) continue;
    archive.replace(at + kChecksum, 8, "        ");
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(archive[at + i]);
    char text[8];
    std::snprintf(text, sizeof text, "%06o", sum);
    archive.replace(at + kChecksum, 8, std::string(text, 7) + " ");
  }
  read(archive, piece);
  return 0;
}
