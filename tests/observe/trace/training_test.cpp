// The trace of one process that trains.
#include <gmock/gmock.h>

#include <set>

#include "observe/trace/trace_checks.h"
#include "train/support.h"

namespace lockstep::train {
namespace {

using lockstep::testing::json;
using lockstep::testing::Span;
using ::testing::Contains;
using testing::Flags;
using testing::get_file;
using ::testing::HasSubstr;
using testing::TempDir;

struct Traced {
  explicit Traced(const Flags& more) {
    Flags flags{{"model", "lenet"},   {"dataset", "synthetic"}, {"train-limit", "320"}, {"test-limit", "50"},
                {"batch", "10"},      {"epochs", "1"},          {"threads", "1"},       {"trace", "true"},
                {"trace-steps", "4"}, {"run-dir", dir / "run"}};
    for (const auto& [name, text] : more) flags[name] = text;
    Request request;
    request.settings = flags;
    train(request);
    trace = json::parse(get_file(dir / "run/trace.json"));
    for (const auto& [track, name] : lockstep::testing::names_of(trace)) tracks[name] = track;
    spans = lockstep::testing::spans_of(trace);
  }
  [[nodiscard]] std::vector<Span> of(const std::string& track, const std::string& category) {
    std::vector<Span> found;
    for (const Span& span : spans[tracks.at(track)]) {
      if (span.category == category) found.push_back(span);
    }
    return found;
  }

  TempDir dir;
  json trace;
  std::map<std::string, lockstep::testing::TrackId> tracks;
  std::map<lockstep::testing::TrackId, std::vector<Span>> spans;
};

std::set<std::string> kernels_of_lenet() {
  testing::Training training(Flags{{"model", "lenet"}, {"batch", "10"}, {"epochs", "1"}});
  std::set<std::string> names;
  for (const program::KernelInfo& kernel : training.setup.parts().programs->for_batch(10).kernels()) {
    if (!kernel.once && !kernel.implementation.empty()) names.insert(kernel.name);
  }
  return names;
}

TEST(Trace, HasEveryKernelOfEveryTracedStep) {
  Traced traced({});
  const std::vector<Span> steps = traced.of("training", "step");
  ASSERT_EQ(steps.size(), 4U);
  const std::set<std::string> expected = kernels_of_lenet();
  ASSERT_GT(expected.size(), 10U);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].arguments["step"], 11 + i);
    std::set<std::string> seen;
    for (const Span& op : traced.of("training", "op")) {
      if (!lies_in(op, steps[i])) continue;
      seen.insert(op.name);
      for (const char* detail : {"op", "implementation", "shape"}) EXPECT_TRUE(op.arguments[detail].is_string());
    }
    EXPECT_EQ(seen, expected);
  }
}

TEST(Trace, NestsKernelsInPhasesInSteps) {
  for (const char* accumulate : {"1", "2"}) {
    Traced traced(Flags{{"accumulate", accumulate}});
    for (const auto& [track, spans] : traced.spans) lockstep::testing::expect_nested(spans);
    const std::vector<Span> steps = traced.of("training", "step");
    const std::vector<Span> phases = traced.of("training", "phase");
    for (const Span& step : steps) {
      std::set<std::string> names;
      for (const Span& phase : phases) {
        if (lies_in(phase, step)) names.insert(phase.name);
      }
      for (const char* phase : {"data wait", "forward", "backward", "optimizer"}) EXPECT_THAT(names, Contains(phase));
    }
    for (const Span& op : traced.of("training", "op")) {
      EXPECT_TRUE(std::any_of(phases.begin(), phases.end(), [&](const Span& phase) {
        return (phase.name == "forward" || phase.name == "backward") && lies_in(op, phase);
      })) << op.name;
    }
  }
}

TEST(Trace, OfAllStepsBeginsAfterTheFirstTen) {
  Traced traced(Flags{{"trace-steps", "0"}, {"model", "lr"}, {"train-limit", "4000"}});
  EXPECT_EQ(traced.of("training", "step").size(), 390U);
  // The loader is ahead, but not by the whole data.
  EXPECT_FALSE(traced.of("data (training)", "data").empty());
}

TEST(Trace, OfReplicasHasThemAllWithTheirArrows) {
  Traced traced(Flags{{"replicas", "2"}, {"batch", "5"}, {"bucket-mb", "0.1"}});
  EXPECT_EQ(traced.of("training", "step").size(), 4U);
  EXPECT_FALSE(traced.of("replica 1", "step").empty());
  EXPECT_FALSE(traced.of("communication (training)", "exchange").empty());
  std::map<std::string, double> begins;
  int arrows = 0;
  for (const json& event : traced.trace["traceEvents"]) {
    if (event["ph"] == "s") begins[event["id"]] = event["ts"];
  }
  for (const json& event : traced.trace["traceEvents"]) {
    if (event["ph"] != "f" || begins.count(event["id"]) == 0) continue;
    EXPECT_LE(begins.at(event["id"]), event["ts"].get<double>() + lockstep::testing::kResolution);
    ++arrows;
  }
  for (const auto& [span, count] : lockstep::testing::spans_with_arrows(traced.trace)) {
    EXPECT_TRUE(span == "transfer" || span == "wait for others") << count << " in " << span;
  }
  EXPECT_FALSE(traced.trace["otherData"].contains("clock_reference")) << "one process has one clock";
  EXPECT_GE(arrows, 2) << "the replicas may turn to tracing a step apart";
}

TEST(Trace, IsNotThereUnlessAskedFor) {
  TempDir dir;
  Request request;
  request.settings = {{"model", "lr"}, {"dataset", "synthetic"}, {"train-limit", "300"},  {"test-limit", "50"},
                      {"epochs", "1"}, {"threads", "1"},         {"run-dir", dir / "run"}};
  train(request);
  EXPECT_FALSE(std::filesystem::exists(dir / "run/trace.json"));
}

}  // namespace
}  // namespace lockstep::train
