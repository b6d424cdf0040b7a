// The list of runs as JSON for the page: those that a filter lets through, with chosen values. The filter's words are
// those of `lockstep runs` (records/run_filter.h). Free functions; any thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dash/run_store.h"

namespace lockstep::dash {

/// What a page asks of the list.
struct ListQuestion {
  std::string filter = {};                        ///< terms with spaces between
  std::vector<std::string> keys = {};             ///< values to add to each row
  std::optional<std::set<std::string>> ids = {};  ///< only these runs; nothing: all
};

/// Lists runs. A filter or a key that cannot be used gives `problem`, which says why, and no runs.
std::string list_json(const std::string& runs_dir, const std::vector<RowPtr>& rows, const ListQuestion& question);

/// Lists the keys of filters and columns: those of every run, and the settings of these runs.
std::string keys_json(const std::vector<RowPtr>& rows);

}  // namespace lockstep::dash
