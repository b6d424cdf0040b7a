// Fetches files over https or http into a folder, once, however many processes start together.
//
// Each file is verified (size and md5 of its unpacked content) before it gets its name. A lock file in the folder lets
// one process fetch while the others wait, with a deadline, and then find the files. Every wait has a limit, and no
// mirror can send more bytes than the file can have.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

struct RemoteFile {
  std::string name;  ///< name under the mirror and in the folder
  std::string md5;   ///< md5 of the unpacked content, in hex
  uint64_t size;     ///< unpacked size in bytes

  /// Returns the most bytes of a download: data that gzip cannot shrink grows by less than 1/1000.
  [[nodiscard]] uint64_t max_download() const { return size + size / 100 + 4096; }
};

struct FetchProgress {
  enum class Phase { kWaiting, kDownloading, kDone };  ///< kWaiting: another process is fetching

  Phase phase = Phase::kDownloading;
  std::string file;
  std::string url;
  uint64_t bytes = 0;
  uint64_t total = 0;  ///< 0: the server does not say
};

using FetchCallback = std::function<void(const FetchProgress&)>;

struct FetchLimits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds read{20'000};            ///< between two pieces of data
  std::chrono::milliseconds whole_file{600'000};     ///< for one file from one mirror, headers included
  std::chrono::milliseconds other_process{900'000};  ///< for the lock
};

/// Fetches the files missing in `folder`, each from the first mirror (base URL, "https://host[:port]/path/") that has
/// it. Throws IoError with each mirror's reason if none has it. `proxy` ("http://host:port") serves https mirrors.
void fetch_files(const std::vector<RemoteFile>& files, const std::string& folder,
                 const std::vector<std::string>& mirrors, const FetchLimits& limits, const std::string& proxy,
                 const FetchCallback& progress);

}  // namespace lockstep::data
