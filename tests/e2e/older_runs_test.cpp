// Runs written by an older build are resumed by this one with the older build's bits. older_runs/README.md describes
// the archives.
#include "e2e/cluster.h"

namespace lockstep::testing {
namespace {

constexpr const char* kArchives[] = {"0.1.0.tar.gz"};
constexpr double kRounding = 1e-3;  ///< relative, for another compiler or instruction set

struct OlderRun {
  std::string name;
  Words more;  ///< besides --resume NAME
  uint64_t steps;
};

/// Returns the lines of a CSV file without the columns that hold times.
std::vector<std::vector<double>> values_of(const std::string& path, const std::vector<size_t>& columns) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(get_file(path));
  std::string line;
  std::getline(lines, line);  // names
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    std::vector<double> row;
    for (const size_t column : columns) row.push_back(column < fields.size() ? std::stod(fields[column]) : -1);
    rows.push_back(row);
  }
  return rows;
}

class OlderRuns : public ClusterTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string source = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
    Process tar("/bin/tar", {"-xzf", source + "/tests/e2e/older_runs/" + GetParam()}, options());
    ASSERT_EQ(tar.finish().code, 0);
    const auto theirs = nlohmann::json::parse(get_file(folder / "expected/info.json"));
    const auto ours = nlohmann::json::parse(succeed({"info", "--json"}).out);
    for (const char* what : {"build", "compiler", "isa"}) same_bits_ = same_bits_ && theirs[what] == ours[what];
  }

  void expect_same(double value, double expected, const std::string& what) const {
    if (same_bits_) {
      EXPECT_EQ(value, expected) << what;
    } else {
      EXPECT_NEAR(value, expected, kRounding * std::max(1.0, std::abs(expected))) << what;
    }
  }

  void expect_same_rows(const std::string& run, const std::string& file, const std::vector<size_t>& columns) const {
    const auto rows = values_of(folder / (run + "/" + file), columns);
    const auto expected = values_of(folder / ("expected/" + run + "." + file), columns);
    ASSERT_EQ(rows.size(), expected.size()) << file;
    ASSERT_FALSE(rows.empty());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t k = 0; k < columns.size(); ++k) expect_same(rows[i][k], expected[i][k], file + std::to_string(i));
    }
  }

  /// Returns what was printed.
  [[nodiscard]] std::string resume(const OlderRun& run) const {
    const std::string printed = succeed(Words{"train", "--resume", run.name} + run.more).out;
    const Result result = this->result(run.name);
    EXPECT_EQ(result.steps, run.steps);
    expect_same_rows(run.name, "steps.csv", {0, 1, 3, 4, 5});
    expect_same_rows(run.name, "evals.csv", {0, 1, 3, 4, 5, 7});
    const std::vector<float> expected = checkpoint::read_checkpoint(folder / ("expected/" + run.name + ".ckpt")).values;
    EXPECT_EQ(result.values.size(), expected.size());
    for (size_t i = 0; i < std::min(expected.size(), result.values.size()); ++i) {
      expect_same(result.values[i], expected[i], "parameter");
    }
    return printed;
  }

 private:
  bool same_bits_ = true;
};

TEST_P(OlderRuns, OneProcessIsResumed) { (void)resume({"one", {"--epochs", "4"}, 80}); }

TEST_P(OlderRuns, AllReduceIsResumed) { (void)resume({"all-reduce", {"--epochs", "4"}, 40}); }

TEST_P(OlderRuns, ACheckpointStartsARunOfItsOwn) {
  const Ended ended = succeed({"eval", "one/checkpoints/step-000000040.ckpt", "--json"});
  const auto evals = values_of(folder / "expected/one.evals.csv", {0, 3});
  const auto at_40 = std::find_if(evals.begin(), evals.end(), [](const auto& row) { return row[0] == 40; });
  ASSERT_NE(at_40, evals.end());
  EXPECT_NEAR(nlohmann::json::parse(ended.out)["loss"].get<double>(), (*at_40)[1], kRounding);
}

/// The server resumes from its own state, not from the checkpoint, which is older.
TEST_P(OlderRuns, AServersStateIsResumed) {
  const uint64_t newest = checkpoint::read_checkpoint(newest_checkpoint("servers")).header.state.step;
  const std::string printed = resume({"servers", {}, 800});
  const std::string back = "ps:0 is back at step ";
  const size_t at = printed.find(back);
  ASSERT_NE(at, std::string::npos) << printed;
  EXPECT_GT(std::stoull(printed.substr(at + back.size())), newest);
}

INSTANTIATE_TEST_SUITE_P(Archives, OlderRuns, ::testing::ValuesIn(kArchives),
                         [](const auto& each) { return "Archive" + std::to_string(each.index); });

}  // namespace
}  // namespace lockstep::testing
