#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "plan/output.h"

namespace lockstep::plan {

std::string trace_json(const Row& row) {
  using nlohmann::ordered_json;
  constexpr int kTracedSteps = 6;
  constexpr double kMicroseconds = 1e6;
  const predict::Prediction played = predict::simulate(row.training, {.steps = kTracedSteps, .spans = true});
  double begin = played.spans.empty() ? 0 : played.spans.front().begin;
  for (const predict::Span& span : played.spans) begin = std::min(begin, span.begin);
  std::map<std::string, int> tracks;
  ordered_json events = ordered_json::array();
  for (const predict::Span& span : played.spans) {
    const auto [found, fresh] = tracks.try_emplace(span.track, static_cast<int>(tracks.size()) + 1);
    if (fresh) {
      events.push_back({{"ph", "M"},
                        {"name", "process_name"},
                        {"pid", found->second},
                        {"tid", 1},
                        {"args", {{"name", span.track}}}});
    }
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"cat", "predicted"},
                      {"pid", found->second},
                      {"tid", 1},
                      {"ts", (span.begin - begin) * kMicroseconds},
                      {"dur", (span.end - span.begin) * kMicroseconds}});
  }
  return ordered_json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump() + "\n";
}

}  // namespace lockstep::plan
