// Invented results of experiments for tests, with numbers that are easy to follow.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/results.h"

namespace lockstep::testing {

struct MadeRun {
  std::string group = "g";
  std::string label = {};
  lab::Values varied = {};
  lab::Values tags = {};
  lab::Measured values = {};
  std::vector<lab::RoleMeasured> roles = {};
  int repeat = 1;
  lab::RunState state = lab::RunState::done;
};

inline lab::RunResult made_run(const MadeRun& made) {
  lab::RunResult run;
  run.plan.group = made.group;
  run.plan.label = made.label;
  run.plan.varied = made.varied;
  run.plan.settings = made.varied;
  run.plan.tags = made.tags;
  run.plan.repeat = made.repeat;
  run.plan.key = made.group + "-" + made.label;
  for (const auto& [name, value] : made.varied) run.plan.key += "-" + name + "=" + value;
  run.plan.key += fmt::format("-r{}", made.repeat);
  run.state = made.state;
  run.measured.values = made.values;
  run.measured.roles = made.roles;
  return run;
}

inline lab::Results made_results(const std::vector<MadeRun>& runs) {
  lab::Results results;
  results.experiment.name = "made";
  results.experiment.title = "Made up";
  for (const MadeRun& run : runs) results.runs.push_back(made_run(run));
  return results;
}

/// Three repeats of each run with the same values, so that their means are certain. Runs of a later repeat stay alone.
inline lab::Results repeated(const std::vector<MadeRun>& runs) {
  std::vector<MadeRun> all;
  for (const MadeRun& run : runs) {
    for (int repeat = 1; repeat <= 3; ++repeat) {
      all.push_back(run);
      all.back().repeat = repeat;
    }
  }
  return made_results(all);
}

struct MadeTest {
  lab::TestKind kind = lab::TestKind::compare;
  std::string field = {};
  lab::Filter first = {};
  lab::Filter second = {};
  std::string over = {};
  std::vector<std::string> by = {};
  std::string is = {};
  std::optional<double> at_least = {};
  std::optional<double> at_most = {};
  double within = 0.05;

  operator lab::FindingTest() const {  // NOLINT(google-explicit-constructor)
    return {kind, field, first, second, over, by, is, at_least, at_most, within, 0};
  }
};

inline lab::Filter where(std::vector<std::pair<std::string, std::vector<std::string>>> conditions) {
  return {{}, std::move(conditions)};
}

}  // namespace lockstep::testing
