#include "schedule/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/parallel.h"
#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::schedule {
namespace {

constexpr int64_t kCut = 16;  // elements per cut: whole cache lines, so that all shards are aligned alike

using Ranges = std::vector<ParameterRange>;

size_t total(const std::vector<graph::ParameterInfo>& parameters) {
  size_t end = 0;
  for (const auto& parameter : parameters) end = std::max(end, parameter.offset + parameter.count());
  return end;
}

/// Returns one server's part. Parts differ by at most one line: the elements after the last whole line go to the last
/// server, whose part is one of the small ones. With less than a line per server, the first servers get a line.
base::Range balanced_part(int64_t count, int server, int servers) {
  const int64_t lines = count / kCut;
  if (lines < servers) return base::share(count, server, servers, kCut);
  const base::Range part = base::share(lines, server, servers);
  return {part.begin * kCut, server + 1 == servers ? count : part.end * kCut};
}

std::vector<Ranges> place_balanced(size_t count, int servers) {
  std::vector<Ranges> placed(static_cast<size_t>(servers));
  for (int server = 0; server < servers; ++server) {
    const base::Range part = balanced_part(static_cast<int64_t>(count), server, servers);
    if (part.size() == 0) continue;
    placed[static_cast<size_t>(server)].push_back({static_cast<size_t>(part.begin), static_cast<size_t>(part.size())});
  }
  return placed;
}

/// Appends a range; neighbours in the buffer become one range.
void append(Ranges& ranges, ParameterRange range) {
  if (range.count == 0) return;
  if (!ranges.empty() && ranges.back().offset + ranges.back().count == range.offset) {
    ranges.back().count += range.count;
  } else {
    ranges.push_back(range);
  }
}

std::vector<Ranges> place_round_robin(const std::vector<graph::ParameterInfo>& parameters, int servers) {
  std::vector<Ranges> placed(static_cast<size_t>(servers));
  for (size_t i = 0; i < parameters.size(); ++i) {
    append(placed[i % placed.size()], {parameters[i].offset, parameters[i].count()});
  }
  return placed;
}

}  // namespace

Placement parse_placement(std::string_view text) {
  const std::vector<std::string> names{"balanced", "round-robin"};
  if (text == "balanced") return Placement::balanced;
  if (text == "round-robin" || text == "round_robin") return Placement::round_robin;
  throw UsageError("unknown placement '" + std::string(text) + "'" + base::hint(text, names));
}

std::vector<std::vector<ParameterRange>> place(const std::vector<graph::ParameterInfo>& parameters, int servers,
                                               Placement placement) {
  if (servers < 1) throw UsageError(fmt::format("placement: {} servers; 1 or more is allowed", servers));
  if (placement == Placement::balanced) return place_balanced(total(parameters), servers);
  return place_round_robin(parameters, servers);
}

std::vector<Slice> intersect(const std::vector<ParameterRange>& ranges, ParameterRange within) {
  std::vector<Slice> slices;
  size_t local = 0;
  for (const auto& range : ranges) {
    const size_t begin = std::max(range.offset, within.offset);
    const size_t end = std::min(range.offset + range.count, within.offset + within.count);
    if (begin < end) slices.push_back({{begin, end - begin}, local + (begin - range.offset)});
    local += range.count;
  }
  return slices;
}

}  // namespace lockstep::schedule
