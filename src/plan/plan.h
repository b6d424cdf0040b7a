// `lockstep plan`: what clusters would give, by the model of src/predict. Every choice is simulated three times, as the
// basis says and at both ends of what it leaves open, which gives the intervals. Plain values; any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/basis.h"
#include "plan/goal.h"
#include "predict/simulate.h"

namespace lockstep::plan {

struct Choices {
  std::vector<int64_t> nodes = {1, 2, 4, 8};
  std::vector<double> rates = {};   ///< bytes per second; empty: the basis'
  std::vector<double> delays = {};  ///< seconds one way; empty: the basis'
  std::vector<predict::Strategy> strategies = {predict::Strategy::servers, predict::Strategy::all_reduce};
  std::vector<bool> sync = {true};
  std::vector<double> batches = {};  ///< of a worker; empty: the basis'
  std::vector<int64_t> servers = {1};
  int64_t backups = 0;                                       ///< sync: gradients of each update that are not waited for
  std::vector<std::pair<int64_t, double>> other_cores = {};  ///< nodes, from 1, with other cores than the rest
  double cores = 0;                                          ///< of a node; 0: the basis'
  double machine_cores = 0;       ///< cores of the machine that emulates all nodes; 0: none does
  double memory = 0;              ///< bytes of a node; 0: the basis'
  double speed = 1;               ///< a core's, relative to the basis'
  double price = 0;               ///< an hour of a node; 0: costs are not asked for
  double epochs = 0;              ///< 0: the basis'
  std::optional<Goal> goal = {};  ///< a loss or accuracy to reach
};

struct Interval {
  double low = 0;
  double value = 0;
  double high = 0;
};

struct Row {
  int64_t nodes = 1;
  int64_t workers = 1;
  int64_t servers = 0;
  double rate = 0;
  double delay = 0;
  predict::Strategy strategy = predict::Strategy::local;
  bool sync = true;
  double batch = 1;
  Interval step = {};        ///< seconds, without evaluations and checkpoints
  Interval examples = {};    ///< per second, likewise
  double speed_up = 0;       ///< over one node
  double efficiency = 0;     ///< over the nodes
  double network = 0;        ///< share of the fullest link
  double server = 0;         ///< share of the fullest server's node
  double memory = kUnknown;  ///< bytes of the fullest node
  bool fits = true;
  Interval seconds = {kUnknown, kUnknown, kUnknown};  ///< to the epochs or the goal
  double money = kUnknown;
  std::string limit = {};  ///< "network 62 %"
  predict::Training training = {};
};

struct Plan {
  Basis basis;
  Choices choices;
  std::vector<Row> rows = {};
  std::optional<size_t> fastest = {};  ///< by time, or by examples per second where no end is known
  std::optional<size_t> cheapest = {};
  std::optional<size_t> knee =
      {};  ///< of the fastest way: beyond it, a node adds less than half of what the first gives
  std::vector<std::string> notes = {};
  double slower_machines = kUnknown;  ///< step of the fastest row on slower processors, over that on quotas
};

/// Throws UsageError if no layout is possible: more servers than nodes, without a single node and without all-reduce.
void check(const Choices& choices);

/// Throws UsageError if no choice is possible, with the reason.
Plan make_plan(const Basis& basis, const Choices& choices);

/// Returns "ps 2 sync", "all-reduce" or "one process".
std::string way_text(const Row& row);

}  // namespace lockstep::plan
