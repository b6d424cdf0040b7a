// A folder that is filled from an archive of another host and then moved into a run's folder. No path is ever followed
// through a link: parts are opened one by one below the folder (openat, O_NOFOLLOW), and files must not be there yet.
// For one thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "launch/sha256.h"
#include "launch/tar_reader.h"

namespace lockstep::launch {

/// Paths of files and the SHA-256 of each, as hex.
using FileSums = std::map<std::string, std::string>;

class NewFolder final : public TarSink {
 public:
  static constexpr const char* kArriving = ".arriving-";  ///< begins the names of such folders

  /// Makes ".arriving-XXXXXX" in `parent`. Throws IoError if it cannot.
  explicit NewFolder(const std::string& parent);
  /// Removes the files still in it.
  ~NewFolder() override;

  void folder(const std::string& path) override;
  void begin_file(const std::string& path, int64_t modified) override;
  void data(std::string_view bytes) override;
  void end_file() override;

  [[nodiscard]] const FileSums& files() const { return sums_; }
  /// Moves the wanted files and folders into the parent, over those of the same names. Throws DataError if the parent
  /// has a link or a file in place of a folder.
  void move_out(const std::function<bool(const std::string& path)>& wanted);

  /// Removes folders left by killed processes in `parent`, which must be locked.
  static void remove_leftovers(const std::string& parent);

 private:
  [[nodiscard]] std::string shown(const std::string& path) const;

  std::string parent_path_;
  std::string path_;
  base::FileHandle parent_;
  base::FileHandle root_;
  FileSums sums_;
  std::vector<std::string> folders_;

  std::string open_path_;  ///< file being written
  int64_t open_modified_ = 0;
  base::FileHandle open_;
  Sha256 digest_;
};

}  // namespace lockstep::launch
