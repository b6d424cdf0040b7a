// A file of framed records: u64 length | u32 masked CRC-32C of the length | data | u32 masked CRC-32C of the data, all
// little-endian. The file is new (O_EXCL) and sorts after those that are in the folder. Records gather in memory and
// reach the file in single writes of whole records. What cannot be written is said once, by `warn`; the file is cut
// back to its last whole record, and everything after that does nothing. For one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"

namespace google::protobuf {
class MessageLite;
}

namespace lockstep::observe {

/// Whether a folder, or one below it, holds event files.
bool has_event_files(const std::string& folder);

class EventFile {
 public:
  using Warn = std::function<void(const std::string& text)>;

  /// Makes the folder where it is not there. Nothing is thrown.
  EventFile(const std::string& folder, Warn warn);
  /// Writes what is left.
  ~EventFile() { flush(); }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// False once something could not be written.
  [[nodiscard]] bool working() const { return file_.open(); }
  /// Bytes that are not in the file yet.
  [[nodiscard]] size_t waiting() const { return buffer_.size(); }

  void append(const google::protobuf::MessageLite& record);
  void flush();
  /// Ends it for a reason that is not the file's.
  void give_up(const std::string& reason);

 private:
  void create(const std::string& folder);
  /// Bytes written; fewer than there are with the system's reason in `error`.
  size_t write(int& error);
  void cut_back(size_t written);

  std::string path_;
  Warn warn_;
  base::FileHandle file_;
  uint64_t size_ = 0;  ///< of the file, without what waits
  std::vector<uint8_t> buffer_;
};

}  // namespace lockstep::observe
