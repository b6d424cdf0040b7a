// The disk of a simulated machine: whole files by name. A write is there for other processes at once, and survives a
// power cut only once it is synced; what was not synced is then the old file, the new one, or a torn one. Owned by the
// World; one thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulation/random.h"

namespace lockstep::simulation {

class Disk {
 public:
  /// Replaces a file, as a rename into place does. Returns false if the disk is full.
  bool write(const std::string& name, std::string bytes) {
    if (full) return false;
    File& file = files_[name];
    if (!file.before) file.before = Old{file.there, file.bytes};
    file.there = true;
    file.bytes = std::move(bytes);
    return true;
  }
  bool append(const std::string& name, const std::string& bytes) {
    return write(name, read(name).value_or(std::string()) + bytes);
  }
  void remove(const std::string& name) {
    const auto found = files_.find(name);
    if (found == files_.end()) return;
    if (!found->second.before) found->second.before = Old{found->second.there, found->second.bytes};
    found->second.there = false;
    found->second.bytes.clear();
  }
  /// Makes the file survive a power cut.
  void sync(const std::string& name) { files_[name].before.reset(); }
  [[nodiscard]] std::optional<std::string> read(const std::string& name) const {
    const auto found = files_.find(name);
    if (found == files_.end() || !found->second.there) return std::nullopt;
    return found->second.bytes;
  }
  /// Returns the names of all files that are there.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, file] : files_) {
      if (file.there) found.push_back(name);
    }
    return found;
  }
  /// The power fails: each file that was not synced may be old, new or torn.
  void power_cut(Random& random) {
    for (auto& [name, file] : files_) {
      if (!file.before) continue;
      const size_t fate = random.below(3);
      if (fate == 0) std::tie(file.there, file.bytes) = std::tie(file.before->there, file.before->bytes);
      if (fate == 1 && file.there) file.bytes.resize(random.below(file.bytes.size() + 1));
      file.before.reset();
    }
  }
  /// The disk is replaced by an empty one.
  void lose() { files_.clear(); }

  bool full = false;       ///< writes fail
  double write_delay = 0;  ///< seconds that a caller should let a write or sync take

 private:
  struct Old {
    bool there = false;
    std::string bytes;
  };
  struct File {
    bool there = false;
    std::string bytes;
    std::optional<Old> before;  ///< content since the last sync; nothing: it is synced
  };
  std::map<std::string, File> files_;
};

}  // namespace lockstep::simulation
