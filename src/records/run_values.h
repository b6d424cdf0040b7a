// The values by which runs are listed, filtered and sorted, in `lockstep runs` and on the dashboard: results, settings
// and labels, by key. Plain values; any thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lockstep::records {

struct RunValue {
  std::string text = {};                ///< empty for a number that is not known
  double number = kUnknown;             ///< known if the value is a number
  std::vector<std::string> words = {};  ///< of a list: each of its words; of a state: all that a filter may call it
};

/// Settings have their name in config.yaml as key; the keys of run_keys() go before settings of the same name.
using RunValues = std::map<std::string, RunValue, std::less<>>;

RunValues values_of(const RunRecord& run);

enum class KeyKind : uint8_t { text, number, share, list, time };

struct RunKey {
  std::string_view name;
  KeyKind kind;
  std::string_view title;  ///< of a column
  std::string_view help;
  std::vector<std::string> choices = {};  ///< empty: any
};

/// Returns the keys that every run has, settings apart.
const std::vector<RunKey>& run_keys();
/// Returns nullptr for a setting or an unknown key.
const RunKey* find_run_key(std::string_view name);

/// Returns the name of a key: with underscores, and with the prefix of a model's option if only that is known to one
/// of the runs. Throws UsageError with a hint if no run knows it.
std::string known_key(const std::string& name, std::span<const RunValues> runs);

/// Returns "ended", "running" or "broken".
std::string state_text(RunState state);
/// Returns the state as a value, which a filter also finds by a bad end, as the dashboard shows it: "interrupted".
RunValue state_value(RunState state, const std::string& end);
/// Returns how the run trained: "ps sync", "all-reduce", "replicas", "one process".
std::string how_text(const RunRecord& run);

}  // namespace lockstep::records
