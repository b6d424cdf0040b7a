// Helpers for the tests of real clusters: runs of one process and of a cluster, and comparison of their results.
#pragma once

#include <algorithm>
#include <fstream>
#include <sstream>

#include "checkpoint/checkpoint.h"
#include "e2e/support.h"

namespace lockstep::testing {

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The result of a run, bit for bit.
struct Result {
  uint64_t steps = 0;
  uint64_t examples = 0;
  std::vector<std::string> losses;  ///< step, loss and learning rate of each line of steps.csv
  std::vector<float> values;        ///< parameters and optimizer state
  nlohmann::json summary;
};

class ClusterTest : public ProgramTest {
 protected:
  [[nodiscard]] Words data(int examples = 600) const {
    return {"--dataset",    "synthetic", "--train-limit", std::to_string(examples),
            "--test-limit", "100",       "--threads",     "1",
            "--log-every",  "1",         "--quiet"};
  }
  /// Trains as `name`, which must be new, and returns the result.
  [[nodiscard]] Result train(const std::string& name, const Words& words) const {
    const Ended ended = run(Words{"train"} + words + Words{"--run-dir", name});
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    return result(name);
  }
  [[nodiscard]] Result result(const std::string& name) const {
    Result result;
    const std::string text = get_file(folder / (name + "/summary.json"));
    if (text.empty()) {
      ADD_FAILURE() << name << " has no summary";
      return result;
    }
    result.summary = nlohmann::json::parse(text);
    result.steps = result.summary["steps"];
    result.examples = result.summary["examples"];
    std::istringstream lines(get_file(folder / (name + "/steps.csv")));
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> fields;
      std::istringstream parts(line);
      for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
      if (fields.size() > 5) result.losses.push_back(fields[0] + " " + fields[3] + " " + fields[5]);
    }
    result.values = checkpoint::read_checkpoint(newest_checkpoint(name)).values;
    return result;
  }
  [[nodiscard]] std::string newest_checkpoint(const std::string& name) const {
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder / (name + "/checkpoints"))) {
      newest = std::max(newest, entry.path().string());
    }
    return newest;
  }
};

inline void expect_same_bits(const Result& a, const Result& b) {
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.examples, b.examples);
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.values.size(), b.values.size());
  EXPECT_TRUE(std::equal(a.values.begin(), a.values.end(), b.values.begin()));
}

/// Returns the largest difference of two elements, relative to the largest element.
inline double distance(const Result& a, const Result& b) {
  if (a.values.size() != b.values.size()) return 1e9;
  double most = 0;
  double largest = 1e-30;
  for (size_t i = 0; i < a.values.size(); ++i) {
    most = std::max(most, std::abs(double{a.values[i]} - double{b.values[i]}));
    largest = std::max(largest, std::abs(double{a.values[i]}));
  }
  return most / largest;
}

}  // namespace lockstep::testing
