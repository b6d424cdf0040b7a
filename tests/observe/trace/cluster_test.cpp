// The traces of real clusters of processes, merged.
#include <fstream>
#include <set>

#include "e2e/support.h"
#include "observe/trace/trace_checks.h"

namespace lockstep::testing {
namespace {

class ClusterTrace : public ProgramTest {
 protected:
  [[nodiscard]] json trace(const Words& more) const {
    Words words{"train",    "lenet",   "--dataset",     "synthetic", "--train-limit", "1500", "--test-limit", "50",
                "--epochs", "1",       "--batch",       "25",        "--threads",     "1",    "--workers",    "2",
                "--quiet",  "--trace", "--trace-steps", "8",         "--run-dir",     "run"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return json::parse(get_file(folder / "run/trace.json"));
  }
  /// Returns the role of each process.
  static std::map<int, std::string> roles(const json& trace) {
    std::map<int, std::string> roles;
    for (const auto& [track, name] : names_of(trace)) {
      if (track.second == 0) roles[track.first] = name.substr(0, name.find(" @ "));
    }
    return roles;
  }
};

struct Arrow {
  std::string name;
  std::string from;
  std::string to;
  double begin = 0;
  double end = 0;
};

std::vector<Arrow> arrows_of(const json& trace, const std::map<int, std::string>& roles) {
  std::map<std::string, Arrow> arrows;
  std::vector<Arrow> whole;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") arrows[event["id"]] = {event["name"], roles.at(event["pid"]), "", event["ts"], 0};
  }
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "f" || arrows.count(event["id"]) == 0) continue;
    Arrow arrow = arrows.at(event["id"]);
    arrow.to = roles.at(event["pid"]);
    arrow.end = event["ts"];
    whole.push_back(arrow);
  }
  return whole;
}

TEST_F(ClusterTrace, OfServersHasArrowsThereAndBack) {
  const json merged = trace({"--ps", "1", "--sync"});
  const std::map<int, std::string> who = roles(merged);
  EXPECT_EQ(who.size(), 3U);
  for (const auto& [track, spans] : spans_of(merged)) expect_nested(spans);
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const Arrow& arrow : arrows_of(merged, who)) {
    ++counts[{arrow.from, arrow.to}];
    EXPECT_EQ(arrow.name, arrow.to == "ps:0" ? "push" : "pull");
    EXPECT_LE(arrow.begin, arrow.end + kResolution) << arrow.from << " to " << arrow.to;
  }
  for (const char* worker : {"worker:0", "worker:1"}) {
    EXPECT_GE((counts[{worker, "ps:0"}]), 8) << worker;
    EXPECT_GE((counts[{"ps:0", worker}]), 8) << worker;
  }
  EXPECT_EQ(counts.size(), 4U);
}

TEST_F(ClusterTrace, OfServersShowsWhatTheyDo) {
  const json merged = trace({"--ps", "1", "--sync"});
  std::map<std::string, std::set<std::string>> seen;
  const std::map<TrackId, std::string> names = names_of(merged);
  for (const auto& [track, spans] : spans_of(merged)) {
    for (const Span& span : spans) seen[names.at(track)].insert(span.name);
  }
  for (const char* worker : {"pushes of worker:0", "pushes of worker:1"}) {
    EXPECT_EQ(seen[worker], (std::set<std::string>{"receive", "wait for others", "send"}));
  }
  EXPECT_EQ(seen["updates"], (std::set<std::string>{"apply", "store"}));
}

TEST_F(ClusterTrace, OfAllReduceLeadsFromTheLastMemberToTheOthers) {
  const json merged = trace({"--strategy", "allreduce"});
  const std::map<int, std::string> who = roles(merged);
  EXPECT_EQ(who.size(), 2U);
  for (const auto& [track, spans] : spans_of(merged)) expect_nested(spans);
  const std::vector<Arrow> arrows = arrows_of(merged, who);
  EXPECT_EQ(arrows.size(), 8U) << "one for each traced step";
  for (const Arrow& arrow : arrows) {
    EXPECT_NE(arrow.from, arrow.to);
    EXPECT_LE(arrow.begin, arrow.end + kResolution);
  }
  for (const auto& [span, count] : spans_with_arrows(merged)) {
    EXPECT_TRUE(span == "transfer" || span == "wait for others") << count << " in " << span;
  }
}

TEST_F(ClusterTrace, OfOneMachineHasOneClock) {
  const json merged = trace({"--strategy", "allreduce"});
  for (const json& role : merged["otherData"]["roles"]) EXPECT_EQ(role["clock_offset_us"], 0) << role;
}

TEST_F(ClusterTrace, OfARunThatGoesOnIsOfThoseWhoAreThereNow) {
  static_cast<void>(trace({"--ps", "1"}));
  ASSERT_TRUE(std::filesystem::exists(folder / "run/worker-1/trace.json"));
  const Ended ended = run({"train", "--resume", "run", "--epochs", "2", "--workers", "1", "--quiet", "--trace"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, Not(HasSubstr("left out")));
  EXPECT_EQ(roles(json::parse(get_file(folder / "run/trace.json"))).size(), 2U);
}

TEST_F(ClusterTrace, CanBeMergedAgainWithoutARoleThatIsDamaged) {
  static_cast<void>(trace({"--ps", "1", "--async"}));
  std::filesystem::remove(folder / "run/trace.json");
  std::ofstream(folder / "run/worker-1/trace.json") << "{";
  const Ended ended = run({"trace", "run"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("2 roles"), HasSubstr("run/trace.json"), HasSubstr("perfetto")));
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("lockstep: warning: "), HasSubstr("worker-1/trace.json"), HasSubstr("left out")));
  EXPECT_EQ(roles(json::parse(get_file(folder / "run/trace.json"))).size(), 2U);
}

TEST_F(ClusterTrace, IsNotThereWhereNobodyTraced) {
  EXPECT_EQ(run({"train", "lr", "--dataset", "synthetic", "--train-limit", "300", "--test-limit", "50", "--epochs", "1",
                 "--quiet", "--run-dir", "run"})
                .code,
            0);
  EXPECT_THAT(fail({"trace", "run"}, 2), HasSubstr("--trace"));
}

}  // namespace
}  // namespace lockstep::testing
