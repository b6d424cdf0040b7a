// The contents of a summary.json. Any key may be absent or of another type; its value is then unknown. Plain values;
// any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "records/statistics.h"

namespace lockstep::records {

/// Totals of a phase of a role over the whole run; times in seconds.
struct PhaseTotals {
  std::string name;
  double count = kUnknown;
  double seconds = 0;
  double share = 0;
  double mean = kUnknown;
  double p50 = kUnknown;
  double p95 = kUnknown;
  double p99 = kUnknown;
};

/// Statistics of a monitor column over the whole run.
struct ResourceUse {
  double mean = kUnknown;
  double p50 = kUnknown;
  double p95 = kUnknown;
  double max = kUnknown;
};

/// The chief's figures about a worker.
struct WorkerRow {
  std::string role;
  double iterations = kUnknown;
  double examples = kUnknown;
  double updates = kUnknown;
  double dropped = kUnknown;
  double restarts = kUnknown;
  double finished_seconds = kUnknown;
  double staleness_mean = kUnknown;
  double staleness_max = kUnknown;
  double wait_share = kUnknown;
  double load_seconds = kUnknown;
  double compute_seconds = kUnknown;
  double loss = kUnknown;
  double accuracy = kUnknown;
};

struct RunSummary {
  std::map<std::string, double, std::less<>> numbers = {};  ///< top-level numbers, and "communication.*", "resources.*"
  std::map<std::string, std::string, std::less<>> texts = {};  ///< texts, named likewise; without control characters
  std::vector<WorkerRow> workers = {};
  std::vector<std::string> stragglers = {};
  std::vector<PhaseTotals> phases = {};
  std::map<std::string, ResourceUse, std::less<>> resources = {};

  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
};

/// Returns the part of a summary that stays valid when the run goes on afterwards: no results.
RunSummary lasting_part(const RunSummary& summary);

/// Time for which a CPU quota held a role back.
struct Throttling {
  double periods = kUnknown;
  double throttled_periods = kUnknown;
  double seconds = kUnknown;
};

/// A node of an emulated cluster, from nodes.json.
struct NodeRecord {
  std::string name;  ///< "node1"
  std::string address;
  double cores = kUnknown;
  double machine_cores = kUnknown;  ///< cores of the machine that emulates all nodes
  double memory_bytes = kUnknown;   ///< 0: no limit
  double rate = kUnknown;           ///< bits per second; 0: no limit
  double delay_seconds = kUnknown;  ///< one way
  double loss = kUnknown;           ///< share of packets
  std::vector<std::string> roles = {};
  double throttled_seconds = kUnknown;  ///< known at the end
};

/// A scheduled fault (--faults), or its end, from faults.jsonl.
struct FaultRecord {
  double seconds = kUnknown;  ///< since all roles were started
  std::string text;           ///< "cut node2 for 10s", "node2 is back"
  std::string kind = {};      ///< "kill", "stop", "cut" or "slow"; empty in files of older builds
  std::string target = {};    ///< the role or node
  bool ended = false;         ///< true: the fault's end
};

/// Throws DataError "FILE: ..." if the text is not a JSON object.
RunSummary parse_summary(const std::string& text, const std::string& file);
/// Reads throttling.json, by role; throws likewise.
std::map<std::string, Throttling, std::less<>> parse_throttling(const std::string& text, const std::string& file);
/// Reads nodes.json; throws DataError if it is not a list.
std::vector<NodeRecord> parse_nodes(const std::string& text, const std::string& file);
/// Reads faults.jsonl. Skips lines that are not faults, such as the cut-off last line of a killed launcher.
std::vector<FaultRecord> parse_faults(const std::string& text);

/// Makes text safe for a terminal: bytes that are not UTF-8, and characters that control a terminal or change the
/// direction of text, become '?'.
std::string printable(std::string_view text);

}  // namespace lockstep::records
