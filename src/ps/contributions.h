// Records what every version was made of: contributions.csv in the folder of ps:0, with --contributions. The rows of a
// version are written in one piece before the version counts. So a server that is killed in between writes them again
// when it makes the version again: if a version has several blocks of rows, the last one is valid, and a block
// invalidates all earlier blocks of later versions (training went back). Owned by the server; its mutex guards it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/plan.h"

namespace lockstep::ps {

/// The batches of one push.
struct Contributed {
  int member = 0;
  uint64_t examples = 0;
  double loss_sum = 0;
  std::vector<data::PassPart> parts;  ///< positions of each batch
};

class ContributionsFile {
 public:
  /// Opens the file and appends to the whole rows of an existing one. Throws IoError.
  explicit ContributionsFile(std::string path);
  /// Appends the rows of one version. Columns: version, number of the row (from 1), rows of the version, member,
  /// examples, loss sum, batches as "pass:begin-end+begin-end" with spaces between.
  void add(uint64_t version, const std::vector<Contributed>& contributions);

 private:
  void cut_torn_row() const;
  void write(const std::string& text) const;

  std::string path_;
  base::FileHandle file_;
};

}  // namespace lockstep::ps
