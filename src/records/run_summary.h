// A summary.json as it is read: any key may be absent or of another type, and is then not known. Plain values; any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "records/statistics.h"

namespace lockstep::records {

/// A phase of a role over the whole run; times in seconds.
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

/// A column of the monitor over the whole run.
struct ResourceUse {
  double mean = kUnknown;
  double p50 = kUnknown;
  double p95 = kUnknown;
  double max = kUnknown;
};

/// What the chief's summary says of a worker.
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
  std::map<std::string, double, std::less<>> numbers = {};  ///< of the top level, and "communication.*", "resources.*"
  std::map<std::string, std::string, std::less<>> texts = {};  ///< likewise; without control characters
  std::vector<WorkerRow> workers = {};
  std::vector<std::string> stragglers = {};
  std::vector<PhaseTotals> phases = {};
  std::map<std::string, ResourceUse, std::less<>> resources = {};

  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
};

/// What is left of a summary where the run went on after it was written: what stays as it is, no results.
RunSummary lasting_part(const RunSummary& summary);

/// How long a role was held back by its CPU quota.
struct Throttling {
  double periods = kUnknown;
  double throttled_periods = kUnknown;
  double seconds = kUnknown;
};

/// A node of an emulated cluster, of nodes.json.
struct NodeRecord {
  std::string name;  ///< "node1"
  std::string address;
  double cores = kUnknown;
  double memory_bytes = kUnknown;   ///< 0: no limit
  double rate = kUnknown;           ///< bits per second; 0: no limit
  double delay_seconds = kUnknown;  ///< one way
  double loss = kUnknown;           ///< share of packets
  std::vector<std::string> roles = {};
  double throttled_seconds = kUnknown;  ///< known at the end
};

/// A fault that was made on purpose (--faults), or its end, of faults.jsonl.
struct FaultRecord {
  double seconds = kUnknown;  ///< since all roles were started
  std::string text;           ///< "cut node2 for 10s", "node2 is back"
  std::string kind = {};      ///< "kill", "stop", "cut" or "slow"; empty: a file of an older build does not say
  std::string target = {};    ///< role or node
  bool ended = false;         ///< its end
};

/// Throws DataError "FILE: ..." where the text is no JSON object.
RunSummary parse_summary(const std::string& text, const std::string& file);
/// throttling.json, by role; throws likewise.
std::map<std::string, Throttling, std::less<>> parse_throttling(const std::string& text, const std::string& file);
/// nodes.json; throws where it is no list.
std::vector<NodeRecord> parse_nodes(const std::string& text, const std::string& file);
/// faults.jsonl; lines that are no faults, as the last of a launcher that was killed, are passed over.
std::vector<FaultRecord> parse_faults(const std::string& text);

/// For a terminal: what is no UTF-8, and characters that control it or turn the direction of text, become '?'.
std::string printable(std::string_view text);

}  // namespace lockstep::records
