// Shared by the tests of real traces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::testing {

using nlohmann::json;
using TrackId = std::pair<int, int>;  ///< numbers of process and thread

struct Span {
  std::string name;
  std::string category;
  double begin = 0;
  double end = 0;
  json arguments;
};

constexpr double kResolution = 0.0015;  ///< resolution of times in a trace, in microseconds

inline std::map<TrackId, std::vector<Span>> spans_of(const json& trace) {
  std::map<TrackId, std::vector<Span>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    tracks[{event["pid"], event["tid"]}].push_back(
        {event["name"], event["cat"], begin, begin + event["dur"].get<double>(), event.value("args", json::object())});
  }
  return tracks;
}

/// Returns "training", "updates", ... by track, or the processes' names with thread 0.
inline std::map<TrackId, std::string> names_of(const json& trace) {
  std::map<TrackId, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") names[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  return names;
}

/// Expects that any two spans are nested or disjoint.
inline void expect_nested(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<const Span*> open;
  for (const Span& span : spans) {
    EXPECT_GE(span.end, span.begin);
    while (!open.empty() && open.back()->end <= span.begin + kResolution) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(span.end, open.back()->end + kResolution) << span.name << " in " << open.back()->name;
    }
    open.push_back(&span);
  }
}

inline bool lies_in(const Span& inner, const Span& outer) {
  return inner.begin >= outer.begin - kResolution && inner.end <= outer.end + kResolution;
}

/// Counts, by name, the innermost spans that arrows begin or end in.
inline std::map<std::string, int> spans_with_arrows(const json& trace) {
  const std::map<TrackId, std::vector<Span>> tracks = spans_of(trace);
  std::map<std::string, int> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    const double at = event["ts"];
    const Span* innermost = nullptr;
    for (const Span& span : tracks.at({event["pid"], event["tid"]})) {
      const bool around = span.begin < at && at < span.end;
      if (around && (innermost == nullptr || span.begin >= innermost->begin)) innermost = &span;
    }
    ++found[innermost == nullptr ? "nothing" : innermost->name];
  }
  return found;
}

}  // namespace lockstep::testing
