// Merging of traces of roles with different clocks.
#include "observe/trace/merge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/temp_dir.h"

namespace lockstep::observe {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::TempDir;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void put_file(const std::string& path, const std::string& text) { base::write_whole_file(path, text); }

constexpr int64_t kEpoch = 1'800'000'000'000'000'000;

constexpr int64_t kMinute = 60'000'000'000;

/// Makes a role's trace with one event `at` microseconds after its beginning; it lasts a minute. `clocks` is JSON.
std::string role_trace(const std::string& role, int64_t began, double at, const std::string& clocks) {
  return fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"role\":\"{}\",\"host\":\"h\",\"began_ns\":{},\"ended_ns\":{},"
      "\"clocks\":{}}},\"traceEvents\":[\n"
      "{{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{{\"name\":\"{} @ h\"}}}},\n"
      "{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{},\"dur\":1,\"name\":\"{}\",\"cat\":\"c\"}}\n]}}\n",
      role, began, began + kMinute, clocks, role, at, role);
}

/// Returns the time of each role's event, by its name.
std::map<std::string, double> times(const json& trace) {
  std::map<std::string, double> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") found[event["name"]] = event["ts"];
  }
  return found;
}

class MergeTraces : public ::testing::Test {
 protected:
  void put(const std::string& role_folder, const std::string& text) {
    std::filesystem::create_directories(folder / role_folder);
    put_file(folder / (role_folder + "/trace.json"), text);
  }
  [[nodiscard]] json merged() const { return json::parse(get_file(folder / "trace.json")); }

  TempDir folder;
};

TEST_F(MergeTraces, PutsAllRolesOnOneClock) {
  // The same moment in all: 1000 us after the server began. worker:0's clock is 3 s behind, worker:1's 2 s ahead. ps:1,
  // known only to worker:1, is an hour ahead.
  put("ps-0", role_trace("ps:0", kEpoch, 1000, "{}"));
  put_file(folder / "trace-chief.json", role_trace("worker:0", kEpoch - 3'000'000'000, 1000, "{\"ps:0\": 3e6}"));
  put("worker-1", role_trace("worker:1", kEpoch + 2'000'000'000, 1000, "{\"ps:0\": -2e6, \"ps:1\": 3598e6}"));
  put("ps-1", role_trace("ps:1", kEpoch + 3'600'000'000'000 + 400'000, 600, "{}"));
  const MergedTrace result = merge_traces(folder.path());
  EXPECT_EQ(result.roles, 4U);
  EXPECT_THAT(result.problems, IsEmpty());
  const std::map<std::string, double> found = times(merged());
  ASSERT_EQ(found.size(), 4U);
  for (const auto& [role, at] : found) EXPECT_NEAR(at, 1000, 0.001) << role;
}

TEST_F(MergeTraces, GivesEachRoleItsOwnProcess) {
  put("ps-0", role_trace("ps:0", kEpoch, 0, "{}"));
  put("worker-1", role_trace("worker:1", kEpoch, 0, "{\"ps:0\": 0}"));
  merge_traces(folder.path());
  std::map<int, std::string> names;
  const json trace = merged();
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") names[event["pid"]] = event["args"]["name"];
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{1, "ps:0 @ h"}, {2, "worker:1 @ h"}}));
}

TEST_F(MergeTraces, TakesWhatCanBeReadOfADamagedOne) {
  const std::string whole = role_trace("worker:1", kEpoch, 5, "{\"ps:0\": 0}");
  put("ps-0", role_trace("ps:0", kEpoch, 7, "{}"));
  for (size_t cut = 0; cut < whole.size(); cut += 3) {
    put("worker-1", whole.substr(0, cut));
    const MergedTrace result = merge_traces(folder.path());
    ASSERT_EQ(result.problems.size(), cut + 1 < whole.size() ? 1U : 0U) << cut;
    for (const std::string& problem : result.problems) EXPECT_THAT(problem, HasSubstr("worker-1/trace.json"));
    EXPECT_EQ(times(merged()).count("ps:0"), 1U) << cut;
  }
}

TEST_F(MergeTraces, LeavesOutWhatIsNoTrace) {
  put("ps-0", role_trace("ps:0", kEpoch, 7, "{}"));
  for (const char* text :
       {"[]", "{}", "{\"otherData\":3}", "\xff\xfe", "{\"otherData\":{\"role\":\"w\"},\"traceEvents\":[",
        "{\"otherData\":{\"role\":\"w\",\"began_ns\":-5},\"traceEvents\":[",
        "{\"otherData\":{\"role\":\"w\",\"began_ns\":9e18,\"ended_ns\":9e18},\"traceEvents\":[",
        "{\"otherData\":{\"role\":\"w\",\"began_ns\":5,\"ended_ns\":9223372036854775807},\"traceEvents\":["}) {
    put("worker-1", text);
    const MergedTrace result = merge_traces(folder.path());
    EXPECT_EQ(result.roles, 1U) << text;
    ASSERT_EQ(result.problems.size(), 1U) << text;
    EXPECT_THAT(result.problems[0], HasSubstr("left out"));
  }
}

TEST_F(MergeTraces, LeavesOutWhatAnEarlierStartHasLeftBehind) {
  // The current start has a server and its first worker, and a worker that joined after the other had left. Their
  // clocks are an hour ahead of worker:2's, which belongs to an earlier start, as does worker:3.
  constexpr int64_t kHour = 60 * kMinute;
  put("ps-0", role_trace("ps:0", kEpoch + kHour, 1000, "{}"));
  put("worker-1", role_trace("worker:1", kEpoch + kHour - kMinute / 2, 1000, "{\"ps:0\": 0}"));
  put("worker-4", role_trace("worker:4", kEpoch + kHour + kMinute / 2 + 1, 1000, "{\"ps:0\": 0}"));
  put("worker-2", role_trace("worker:2", kEpoch - 2 * kMinute, 1000, "{\"ps:0\": 3600e6}"));
  put("worker-3", role_trace("worker:3", kEpoch + kHour - 2 * kMinute, 1000, "{\"ps:0\": 0}"));
  const MergedTrace result = merge_traces(folder.path());
  EXPECT_EQ(result.roles, 3U);
  EXPECT_THAT(result.problems, UnorderedElementsAre(AllOf(HasSubstr("worker-2/trace.json"), HasSubstr("earlier")),
                                                    AllOf(HasSubstr("worker-3/trace.json"), HasSubstr("earlier"))));
  const std::map<std::string, double> found = times(merged());
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(found.count("ps:0") + found.count("worker:1") + found.count("worker:4"), 3U);
}

TEST_F(MergeTraces, AreGoneOnceRemoved) {
  put("ps-0", role_trace("ps:0", kEpoch, 7, "{}"));
  put_file(folder / "trace-chief.json", role_trace("worker:0", kEpoch, 7, "{}"));
  merge_traces(folder.path());
  remove_traces(folder.path());
  EXPECT_EQ(merge_traces(folder.path()).path, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "trace.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "ps-0"));
}

TEST_F(MergeTraces, ClocksThatAreNoTimesDoNoHarm) {
  put("ps-0", role_trace("ps:0", kEpoch, 7, "{}"));
  for (const char* offset : {"9e17", "-9e17", "9.9e14", "-9.9e14", "1e300", "1e999"}) {
    put("worker-1", role_trace("worker:1", kEpoch, 7, fmt::format("{{\"ps:0\": {}}}", offset)));
    put("worker-2", role_trace("worker:2", kEpoch, 7, fmt::format("{{\"worker:1\": {}}}", offset)));
    merge_traces(folder.path());
    for (const auto& [role, at] : times(merged())) EXPECT_GE(at, 0) << role << " " << offset;
  }
}

TEST_F(MergeTraces, ALineOfBracketsIsDamage) {
  put("ps-0", role_trace("ps:0", kEpoch, 7, "{}"));
  std::string deep = role_trace("worker:1", kEpoch, 5, "{}");
  constexpr size_t kDepth = 500'000;
  const std::string brackets = std::string(kDepth, '[') + std::string(kDepth, ']');
  deep.insert(deep.find("\n]}"), ",\n{\"ph\":\"X\",\"args\":" + brackets + "}");
  put("worker-1", deep);
  const MergedTrace result = merge_traces(folder.path());
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0], HasSubstr("damaged after line 3"));
  EXPECT_EQ(times(merged()).count("worker:1"), 1U) << "what was before it";
}

TEST_F(MergeTraces, BracketsInNamesAreNone) {
  const std::string name = std::string(100, '[') + "\\\"" + std::string(100, '{');
  put("ps-0", role_trace("ps:0", kEpoch, 7, "{}"));
  std::string text = role_trace("worker:1", kEpoch, 5, "{}");
  text.insert(text.find("\n]}"), ",\n{\"ph\":\"i\",\"name\":\"" + name + "\"}");
  put("worker-1", text);
  EXPECT_THAT(merge_traces(folder.path()).problems, IsEmpty());
}

TEST_F(MergeTraces, WritesNothingWithoutTraces) {
  std::filesystem::create_directories(folder / "worker-1");
  EXPECT_EQ(merge_traces(folder.path()).path, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "trace.json"));
}

}  // namespace
}  // namespace lockstep::observe
