// What people write about a run: tags and a note, in labels.json of the run's folder. Training neither reads nor writes
// it, so that a run can be labelled while it trains. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep::records {

struct RunLabels {
  std::vector<std::string> tags = {};  ///< sorted, each once
  std::string note = {};
  [[nodiscard]] bool empty() const { return tags.empty() && note.empty(); }
};

/// Reads the file; no labels if there is none. Throws DataError or IoError if it cannot be read.
RunLabels read_labels(const std::string& run);
/// Replaces the file, or removes it if there is no label left. Throws IoError if that fails, UsageError for a tag that
/// is not allowed (letters, digits and . _ -) or a note that is too long or has control characters.
void write_labels(const std::string& run, RunLabels labels);

}  // namespace lockstep::records
