// A record of what every version was made of: contributions.csv in the folder of ps:0, with --contributions. A
// version's rows are written, in one piece, before the version counts, so a server that is killed in between writes
// them again when the version is made: of several blocks of rows for one version the last is true, and a block makes
// all earlier ones of later versions void (training went back). Owned by the server; its mutex guards it.
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
  std::vector<data::PassPart> parts;  ///< the positions of each batch
};

class ContributionsFile {
 public:
  /// Goes on in the file where there is one. Throws IoError.
  explicit ContributionsFile(std::string path);
  /// Columns: version, row of the version from 1, rows of it, member, examples, loss sum, batches as
  /// "pass:begin-end+begin-end" with spaces between.
  void add(uint64_t version, const std::vector<Contributed>& contributions);

 private:
  void write(const std::string& text) const;

  std::string path_;
  base::FileHandle file_;
};

}  // namespace lockstep::ps
