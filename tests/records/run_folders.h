// Handwritten run folders as today's clusters leave them: small, with numbers that are easy to follow.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/temp_dir.h"

namespace lockstep::testing {

inline void put_text(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  put_file(path, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

inline constexpr std::string_view kStepsCsv =
    "step,epoch,seconds,loss,accuracy,learning_rate,examples_per_second,seconds_per_step\n"
    "1,1,0.100000,2.3025851,0.1,0.1,2000.0,0.1\n"
    "100,1,0.300000,0.56,0.86,0.1,100000.0,0.002\n"
    "200,1,0.500000,0.54,0.865,0.1,100000.0,0.002\n";

inline constexpr std::string_view kEvalsCsv =
    "step,epoch,seconds,loss,accuracy,examples,eval_seconds,best\n"
    "100,1,0.31,0.5,0.87,10000,0.004,1\n"
    "200,1,0.51,0.42,0.892,10000,0.004,1\n";

inline constexpr std::string_view kPhasesCsv =
    "step,seconds,steps,data,forward,backward,optimizer,push,pull,transfer,others,evaluation,checkpoint,rest\n"
    "100,0.3,100,0.01,0.02,0.03,0.001,0.02,0.08,0,0.03,0.005,0.002,0.002\n"
    "200,0.5,100,0.01,0.02,0.03,0.001,0.02,0.08,0,0.03,0.005,0.002,0.002\n";

inline constexpr std::string_view kMonitorCsv =
    "time,seconds,cpu_percent,rss_bytes,wire_received,wire_sent,node_cpu_percent,gpu0_percent\n"
    "1794787200.5,0.5,80,90000000,1000000,1000000,60,\n"
    "1794787201.0,1.0,100,95000000,2000000,1000000,80,\n"
    "1794787201.5,1.5,90,93000000,3000000,1000000,70,\n";

inline constexpr std::string_view kWorkersJson =
    R"([{"role": "worker:0", "iterations": 200, "examples": 20000, "updates": 200, "dropped": 0, "restarts": 0,
         "finished_seconds": 0.5, "wait_share": 0.6, "staleness_mean": 0.0, "staleness_max": 0},
        {"role": "worker:1", "iterations": 200, "examples": 20000, "updates": 200, "dropped": 0, "restarts": 1,
         "finished_seconds": 0.5, "wait_share": 0.55, "staleness_mean": 0.0, "staleness_max": 0}])";

inline std::string phase_json(std::string_view name, double seconds) {
  return fmt::format(
      R"({{"phase": "{}", "count": 200, "seconds": {}, "share": 0.1, "mean": {}, "p50": 0.001, "p95": 0.002,
                        "p99": 0.003}})",
      name, seconds, seconds / 200);
}

/// A finished run of two workers and a server.
inline void write_cluster_run(const std::string& path) {
  put_text(path + "/config.yaml",
           "model: lr\noptions: {hidden: 3}\ndataset: mnist\nbatch: 100\naccumulate: 1\nmode: sync\n");
  put_text(path + "/cluster.yaml", "worker:\n  - \"127.0.0.1:1\"\n  - \"127.0.0.1:2\"\nps:\n  - \"127.0.0.1:3\"\n");
  const std::string phases = "[" + phase_json("forward", 0.05) + "," + phase_json("pull", 0.15) + "]";
  const std::string resources =
      R"({"every": 0.5, "samples": 12, "cpu_percent": {"mean": 85, "p50": 84, "p95": 99, "max": 101}})";
  put_text(
      path + "/summary.json",
      fmt::format(R"({{"model": "lr", "dataset": "mnist", "steps": 200, "epochs": 1, "examples": 40000, "seconds": 0.55,
                          "aside_seconds": 0.05, "examples_per_second": 80000.0, "train_loss": 0.65, "test_loss": 0.42,
                          "test_accuracy": 0.892, "best_accuracy": 0.892, "best_step": 200, "strategy": "ps", "mode": "sync",
                          "workers": {}, "stop_reason": "epochs", "peak_memory_bytes": 93208576, "threads": 1,
                          "host": "north", "phases": {}, "resources": {}, "started": "2026-11-16T00:30:17Z"}})",
                  kWorkersJson, phases, resources));
  for (const std::string& folder : {path, path + "/worker-1"}) {
    put_text(folder + "/steps.csv", kStepsCsv);
    put_text(folder + "/evals.csv", kEvalsCsv);
    put_text(folder + "/phases.csv", kPhasesCsv);
    put_text(folder + "/monitor.csv", kMonitorCsv);
  }
  put_text(path + "/worker-1/config.yaml", "model: lr\n");
  put_text(path + "/worker-1/summary.json", R"({"steps": 200, "host": "south", "threads": 1})");
  put_text(path + "/ps-0/summary.json",
           fmt::format(R"({{"role": "ps:0", "host": "north", "updates": 200, "pushes": 400, "seconds": 0.5,
                          "phases": [{}], "resources": {}}})",
                       phase_json("apply", 0.1), resources));
}

}  // namespace lockstep::testing
