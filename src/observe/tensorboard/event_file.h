// A file of framed records: u64 length | u32 masked CRC-32C of the length | data | u32 masked CRC-32C of the data, all
// little-endian. The file is new (O_EXCL) and its name sorts after the others in the folder. Records gather in memory
// and reach the file in single writes of whole records. A failure to write is reported once, by `warn`; the file is cut
// back to its last whole record, and later calls do nothing. For one thread at a time.
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

/// Returns true if a folder, or one below it, holds event files.
bool has_event_files(const std::string& folder);

class EventFile {
 public:
  using Warn = std::function<void(const std::string& text)>;

  /// Makes the folder if needed. Throws nothing.
  EventFile(const std::string& folder, Warn warn);
  /// Writes the remaining records.
  ~EventFile() { flush(); }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// False after a failed write.
  [[nodiscard]] bool working() const { return file_.open(); }
  /// Bytes not yet written to the file.
  [[nodiscard]] size_t waiting() const { return buffer_.size(); }

  void append(const google::protobuf::MessageLite& record);
  void flush();
  /// Ends writing for a reason outside of the file.
  void give_up(const std::string& reason);

 private:
  void create(const std::string& folder);
  /// Returns the bytes written; if fewer than wanted, `error` has the system's reason.
  size_t write(int& error);
  void cut_back(size_t written);

  std::string path_;
  Warn warn_;
  base::FileHandle file_;
  uint64_t size_ = 0;  ///< size of the file, without waiting bytes
  std::vector<uint8_t> buffer_;
};

}  // namespace lockstep::observe
