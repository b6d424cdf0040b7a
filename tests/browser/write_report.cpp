// write_report OUT SINGLE CLUSTER SECOND: a report with every kind of table, plot and finding. Its runs' folders are
// those of real trainings: of a process, of a cluster, and of the second repeat of a cluster; its figures are made up,
// so that they never change.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "lab/results.h"
#include "lockstep/error.h"
#include "report/report.h"

namespace {

using namespace lockstep;

constexpr const char* kExperiment = R"(
name: sample
title: "Every part of a report, <b>escaped</b> & drawn"
about: |
  LeNet on one to three nodes, by all-reduce and by a synchronous parameter server.

  The figures are made up; the curves are those of two small trainings.
repeats: 3
base: {model: lr, dataset: synthetic, epochs: 2}
groups:
  - name: nodes
    title: By nodes
    cases:
      - {label: one node, tags: {nodes: 1, by: one process}}
      - {label: 2 nodes, workers: 2, strategy: allreduce, tags: {nodes: 2, by: all-reduce}}
      - {label: 3 nodes, workers: 3, strategy: allreduce, tags: {nodes: 3, by: all-reduce}}
      - {label: "2 nodes, sync ps", workers: 2, ps: 1, mode: sync, tags: {nodes: 2, by: sync ps}}
      - {label: "3 nodes, sync ps", workers: 3, ps: 1, mode: sync, tags: {nodes: 3, by: sync ps}}
  - name: batch
    title: By batch
    grid: {batch: [32, 64, 128, 256]}
    cases: [{workers: 3, strategy: allreduce, tags: {nodes: 3, by: all-reduce}}]
report:
  findings:
    - name: faster
      says: An epoch takes 0.71 of one node's time on three nodes.
      tests:
        - {ratio: epoch_seconds, group: nodes, first: {nodes: 3, by: all-reduce}, second: {nodes: 1}, at_most: 0.71}
        - {ratio: epoch_seconds, group: nodes, first: {nodes: 3, by: sync ps}, second: {nodes: 1}, at_most: 0.71}
      explain: [share_compute, share_exchange]
    - name: same
      says: The accuracy does not depend on the number of nodes.
      tests: [{compare: accuracy, group: nodes, first: {nodes: 3}, second: {nodes: 1}, is: same, within: 0.01}]
      explain: [loss]
    - name: network
      says: The network grows with the batch.
      tests: [{trend: network_per_second, group: batch, over: batch, is: grows}]
      explain: [step_seconds, network_per_step]
    - name: server
      says: The server's memory shrinks with the workers.
      tests: [{trend: ps_memory, group: batch, over: batch, is: falls}]
    - name: equal
      says: All workers of a run make the same number of iterations.
      tests: [{spread: iterations, group: nodes, where: {nodes: [2, 3]}, is: together, within: 0.01}]
  tables:
    - name: nodes
      title: LeNet by nodes
      text: Reported figures are those of a study that nobody made.
      group: nodes
      rows: [by, nodes]
      columns: [accuracy, epoch_seconds, cpu_percent, memory, network_per_second, speed_up, efficiency]
      reported: reported.csv
      reported_columns: {nodes: nodes, accuracy: accuracy_percent, epoch_seconds: epoch_seconds, network_per_second: network}
    - {name: workers, title: Each worker, group: nodes, where: {nodes: 3}, per: worker, rows: [label, worker], columns: [iterations, cpu_percent, memory]}
  plots:
    - {name: accuracy, title: Accuracy over epochs, kind: curves, group: nodes, x: epoch, y: accuracy, series: label}
    - {name: loss, title: Loss of batches over time, kind: curves, group: nodes, where: {nodes: [1, 3]}, x: seconds, y: train_loss, series: label, log_y: true}
    - {name: two axes, title: Accuracy and runtime by batch size, kind: lines, group: batch, x: batch, y: accuracy, y2: epoch_seconds, log_x: true}
    - {name: epoch, title: Time of an epoch, kind: bars, group: nodes, x: nodes, y: epoch_seconds, series: by, reported: reported.csv, reported_columns: {nodes: nodes, epoch_seconds: epoch_seconds}}
    - {name: speed-up, title: Scaling, kind: speed_up, group: nodes, x: nodes, series: by}
    - {name: phases, title: Where the time of a step goes, kind: phases, group: nodes, series: label}
    - {name: each worker, title: Loss of each worker, kind: curves, group: nodes, where: {nodes: 3, by: sync ps}, x: step, y: train_loss, per: worker}
    - {name: many, title: Where the time of each run goes, kind: phases, group: nodes, series: [label, repeat]}
    - {name: cpu, title: CPU over time, kind: usage, group: nodes, where: {nodes: [1, 2], by: [one process, sync ps]}, y: cpu_percent, facets: label}
    - {name: timeline, title: Workers over time, kind: timeline, group: nodes, where: {nodes: 2, by: sync ps}}
    - {name: nothing, title: Of runs whose folder is gone, kind: curves, group: batch, x: epoch, y: loss}
)";

constexpr const char* kReported =
    "nodes,accuracy_percent,epoch_seconds,network\n1,99.08,17,21K\n2,99.13,12,9.2M;9.5M\n3,98.9,12,8M;8M;8M\n4,98.9,12,"
    "8M\n";

double number(const lab::RunResult& run, const char* field) { return run.number(field); }

/// Figures of a run by what is set, a little off in each repeat.
void measure(lab::RunResult& run) {
  const double nodes = number(run, "nodes");
  const bool server = run.text("by") == "sync ps";
  const bool grid = run.plan.group == "batch";
  const double batch = grid ? number(run, "batch") : 64;
  const double wobble = 1 + 0.01 * (run.plan.repeat - 2);
  const double compute = 3.74 * 64 / (batch < 64 ? 0.8 * batch : 64) / nodes;
  const double exchange = nodes > 1 ? (server ? 0.9 : 0.18) * 64 / batch : 0;
  const double epoch = (compute + exchange) * wobble;
  run.measured.values = {
      {"accuracy", 0.991 - 0.0004 * nodes - (grid ? batch / 256 * 0.01 : 0) + 0.0005 * (run.plan.repeat - 2)},
      {"loss", 0.031 + 0.002 * nodes * wobble},
      {"epoch_seconds", epoch},
      {"step_seconds", epoch / 938 * nodes},
      {"seconds", 20 * epoch},
      {"examples_per_second", 60000 / epoch},
      {"cpu_percent", 96 - 9 * (nodes - 1) * wobble},
      {"memory", 9.1e7 * wobble + 1e5 * batch},
      {"network_per_second", nodes > 1 ? 2.1e8 / epoch / batch * 64 : 0},
      {"network_per_step", nodes > 1 ? 3.4e6 : 0},
      {"share_compute", compute / (compute + exchange)},
      {"share_exchange", exchange / (compute + exchange)},
      {"iterations", 18760}};
  for (int i = 0; i < static_cast<int>(nodes); ++i) {
    const std::string role = nodes > 1 ? "worker:" + std::to_string(i) : "process";
    run.measured.roles.push_back({role,
                                  "node" + std::to_string(i + 1),
                                  {{"iterations", 18760 / nodes}, {"cpu_percent", 96 - 3.0 * i}, {"memory", 9.1e7}}});
  }
  if (server) run.measured.roles.push_back({"ps:0", "node1", {}});
}

lab::Results results(const std::string& single, const std::string& cluster, const std::string& second) {
  const lab::Values reported{{"reported.csv", kReported}};
  lab::Results made;
  made.experiment = lab::parse_experiment(kExperiment, "sample.yaml", "", {.models = {}, .reported = &reported});
  made.experiment.reported = reported;
  made.environment = {"lockstep 0.1.0", "north", "Debian GNU/Linux 12", "A processor <of some kind>", 2, 16e9,
                      "gcc 12"};
  made.started = 1794787200;
  made.ended = made.started + 1260;
  made.command = "lockstep lab run sample.yaml";
  double at = made.started;
  for (const lab::Group& group : made.experiment.groups) {
    for (const lab::RunPlan& plan : group.runs) {
      lab::RunResult run;
      run.plan = plan;
      run.state = lab::RunState::done;
      run.started = at;
      run.ended = at += 28;
      measure(run);
      run.folder = run.number("nodes") < 2 ? single : plan.repeat == 2 ? second : cluster;
      if (plan.group == "batch") run.folder = "/nowhere/" + plan.key;
      if (plan.group == "batch" && run.text("batch") == "256" && plan.repeat == 3) {
        run.state = lab::RunState::failed;
        run.reason = "worker:2 was killed by signal 9 <see its log>";
        run.measured = {};
      }
      made.runs.push_back(std::move(run));
    }
  }
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "write_report OUT SINGLE CLUSTER SECOND\n");
    return 2;
  }
  try {
    const std::string page = report::html(results(argv[2], argv[3], argv[4]));
    base::write_whole_file(argv[1], page);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
