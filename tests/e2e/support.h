// Helpers for the tests of the real program: a working folder, small data sets, and access to runs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "data/formats.h"
#include "e2e/process.h"

namespace lockstep::testing {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

/// Each test has a working folder, where runs/ appears.
class ProgramTest : public ::testing::Test {
 protected:
  [[nodiscard]] ProcessOptions options() const {
    ProcessOptions options;
    options.folder = folder.path();
    return options;
  }
  [[nodiscard]] Ended run(const Words& arguments) const { return lockstep(arguments, options()); }
  /// Runs and expects success.
  [[nodiscard]] Ended succeed(const Words& arguments) const {
    Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    return ended;
  }
  /// Runs, expects that exit code and one line on standard error, and returns the line.
  [[nodiscard]] std::string fail(const Words& arguments, int code) const {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, code) << ended.out << ended.err;
    expect_one_line(ended.err);
    return ended.err;
  }
  static void expect_one_line(const std::string& error) {
    EXPECT_THAT(error, AllOf(StartsWith("lockstep: "), EndsWith("\n")));
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
  }
  /// Returns why this machine does not allow a feature of `lockstep info` ("emulate", "cpu_quota"); "" if it does.
  [[nodiscard]] std::string why_not(const std::string& what) const {
    const std::string said = nlohmann::json::parse(succeed({"info", "--json"}).out)[what];
    return said.starts_with("no: ") ? said.substr(4) : "";
  }
  [[nodiscard]] nlohmann::json summary(const std::string& run) const {
    return nlohmann::json::parse(get_file(folder / ("runs/" + run + "/summary.json")));
  }

  TempDir folder;
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A run of a second or less on data that needs no file.
inline Words quick_train(const std::string& model, const Words& more = {}) {
  Words words{"train",     model, "--dataset", "synthetic", "--train-limit", "1000", "--test-limit", "200",
              "--threads", "1",   "--epochs",  "2",         "--batch",       "50"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Makes the four idx files of a small data set; labels count up.
struct SmallData {
  uint32_t train = 60;
  uint32_t test = 20;
  uint8_t largest_label = 9;

  void write(const std::string& path) const {
    std::filesystem::create_directories(path);
    write_pair(path + "/train-images-idx3-ubyte", path + "/train-labels-idx1-ubyte", train);
    write_pair(path + "/t10k-images-idx3-ubyte", path + "/t10k-labels-idx1-ubyte", test);
  }

 private:
  void write_pair(const std::string& images, const std::string& labels, uint32_t count) const {
    put_file(images, make_idx({count, 28, 28}, ramp(size_t{count} * 784)));
    put_file(labels, make_idx({count}, ramp(count, largest_label + 1U)));
  }
};

/// Returns a folder with mnist/ in it, or "" if the machine has none.
inline std::string real_mnist() {
  const char* folder = std::getenv("LOCKSTEP_TEST_DATA");  // NOLINT(concurrency-mt-unsafe)
  const bool there = folder != nullptr && std::filesystem::exists(std::string(folder) + "/mnist");
  return there ? folder : "";
}
inline bool has_fashion_mnist() { return std::filesystem::exists("/usr/share/datasets/fashion-mnist"); }

}  // namespace lockstep::testing
